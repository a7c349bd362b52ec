/* What compilations do to the process that they are in:
 *
 *   signals        they leave the dispositions of all signals as they are
 *   fork           the child of a process in which another thread compiles can compile
 *   exit           the process may end while another thread compiles
 *   limit N        after N kernels, so many of them are loaded; one that is in use stays
 *   done           functions of an asynchronous call that fails may call the library */

#include "BNGrad/Runtime/Runtime.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  bngradHandle_t handle;
  bngradBatchNormBackwardDescriptor_t gradient;
} Plan;

/* The gradient of a problem that has no ready kernel; each epsilon has a kernel of its own. */
static bngradStatus_t make(double epsilon, Plan *plan) {
  const int64_t shape[] = {2, 3, 5, 4}, channels[] = {2, 4};
  bngradTensorDescriptor_t tensor, vector;
  bngradBatchNormBackwardOptions_t options = {
      .struct_size = sizeof options, .epsilon = epsilon, .num_feature_dims = 2, .feature_dims = {0, 3}};
  bngradCreateHandle(&plan->handle, BNGRAD_DEVICE_CPU, 0);
  bngradCreateTensorDescriptor(&tensor, BNGRAD_DTYPE_F32, 4, shape, NULL);
  bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 2, channels, NULL);
  plan->gradient = NULL;
  bngradStatus_t status = bngradCreateBatchNormBackwardDescriptor(
      plan->handle, &plan->gradient, &options, tensor, vector, vector, tensor, tensor, vector, vector, vector, NULL);
  bngradDestroyTensorDescriptor(tensor);
  bngradDestroyTensorDescriptor(vector);
  return status;
}

static bngradStatus_t run(const Plan *plan, const bngradCompletion_t *done) {
  float data[3][120], vectors[5][8];
  size_t size;
  for (int i = 0; i < 120; ++i)
    data[0][i] = data[1][i] = (float)i;
  for (int i = 0; i < 8; ++i)
    vectors[0][i] = vectors[1][i] = vectors[2][i] = 1;
  bngradGetBatchNormBackwardWorkspaceSize(plan->gradient, &size);
  void *workspace = malloc(size);
  bngradStatus_t status =
      done ? bngradBatchNormBackwardAsync(plan->gradient, workspace, size, data[2], vectors[3], vectors[4], data[0],
                                          data[1], vectors[0], vectors[1], vectors[2], NULL, NULL, NULL, done)
           : bngradBatchNormBackward(plan->gradient, workspace, size, data[2], vectors[3], vectors[4], data[0],
                                     data[1], vectors[0], vectors[1], vectors[2], NULL, NULL);
  free(workspace);
  return status;
}

static void destroy(Plan *plan) {
  bngradDestroyBatchNormBackwardDescriptor(plan->gradient);
  bngradDestroyHandle(plan->handle);
}

static bngradStatus_t compute(double epsilon) {
  Plan plan;
  bngradStatus_t status = make(epsilon, &plan);
  if (!status)
    status = run(&plan, NULL);
  if (status)
    fprintf(stderr, "%s\n", bngradGetLastError());
  destroy(&plan);
  return status;
}

static atomic_int next = 1;

static void *compute_on(void *unused) {
  for (;;)
    if (compute(atomic_fetch_add(&next, 1)))
      return unused;
}

static void wait_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static int test_signals(void) {
  struct sigaction before[65], after;
  for (int i = 1; i < 65; ++i)
    sigaction(i, NULL, &before[i]);
  bngradStatus_t status = compute(1);
  int changed = 0;
  for (int i = 1; i < 65; ++i) {
    sigaction(i, NULL, &after);
    changed += after.sa_handler != before[i].sa_handler || after.sa_flags != before[i].sa_flags;
  }
  printf("%s, %d signals changed\n", bngradGetStatusName(status), changed);
  return 0;
}

static int test_fork(void) {
  pthread_t thread;
  int right = 0, count = 10;
  pthread_create(&thread, NULL, compute_on, NULL);
  for (int i = 0; i < count; ++i) {
    wait_ms(1 + 13 * i % 90);
    pid_t child = fork();
    if (child == 0) {
      alarm(300);
      /* The kernel that the other thread was at, and a new one. */
      int last = atomic_load(&next) - 1;
      _exit(compute(last) || compute(1e6 + i));
    }
    int status = 1;
    waitpid(child, &status, 0);
    right += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  printf("%d of %d children computed\n", right, count);
  fflush(stdout);
  _exit(0);
}

static int test_exit(int ms) {
  pthread_t thread;
  pthread_create(&thread, NULL, compute_on, NULL);
  pthread_detach(thread);
  wait_ms(ms);
  return 0;
}

static int count_kernels(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  *(int *)count += strstr(info->dlpi_name, "/fd/") != NULL;
  return 0;
}

static int test_limit(int number) {
  Plan first;
  int loaded = 0;
  bngradStatus_t status = make(0, &first);
  for (int i = 1; i <= number && !status; ++i)
    status = compute(i);
  dl_iterate_phdr(count_kernels, &loaded);
  bngradStatus_t again = status ? status : run(&first, NULL);
  printf("%s, %s, %d loaded\n", bngradGetStatusName(status), bngradGetStatusName(again), loaded);
  destroy(&first);
  return 0;
}

static void report(void *context, bngradStatus_t status, const char *message) {
  char before[256];
  snprintf(before, sizeof before, "%s", message);
  bngradCreateHandle(NULL, BNGRAD_DEVICE_CPU, 0);
  printf("%s: %s: %s, then %s\n", (const char *)context, bngradGetStatusName(status), before, message);
}

static int test_done(void) {
  Plan plan;
  bngradCompletion_t done[] = {{report, "grad_input"}, {report, "grad_scale"}, {report, "grad_offset"}};
  bngradStatus_t status = make(1, &plan);
  if (!status)
    status = run(&plan, done);
  printf("call: %s: %s\n", bngradGetStatusName(status), bngradGetLastError());
  destroy(&plan);
  return 0;
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  int number = argc > 2 ? atoi(argv[2]) : 0;
  return strcmp(name, "signals") == 0 ? test_signals()
         : strcmp(name, "fork") == 0  ? test_fork()
         : strcmp(name, "exit") == 0  ? test_exit(number)
         : strcmp(name, "limit") == 0 ? test_limit(number)
         : strcmp(name, "done") == 0  ? test_done()
                                      : 1;
}
