/* What compilations do to the process that they are in:
 *
 *   signals        they leave the dispositions of all signals as they are
 *   fork           the child of a process in which another thread compiles can compile
 *   load           the same while it loads the compiler
 *   late           a fork that begins before the compiler is loaded waits for the compilation
 *   hold           no compilation ends or begins while the compiler is held
 *   exit           the process may end while another thread compiles
 *   limit N        after N kernels, so many of them are loaded; one that is in use stays
 *   epsilon N      gradients with N epsilons are right, and have one kernel
 *   narrow N       the same with parameters of bf16
 *   done           functions of an asynchronous call that fails may call the library */

#include "BNGrad/Runtime/Runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <math.h>
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
  int has_bf16_parameters;
} Plan;

enum { NUM_TYPES = 4, NUM_KERNELS = NUM_TYPES * NUM_TYPES * NUM_TYPES * NUM_TYPES * NUM_TYPES };

/* The gradient of a problem that has no ready kernel. Numbers up to NUM_KERNELS have other types, and so other kernels;
 * 0 has f32 alone. */
static bngradStatus_t make(int number, double epsilon, Plan *plan) {
  const bngradDtype_t types[NUM_TYPES] = {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_F16, BNGRAD_DTYPE_BF16, BNGRAD_DTYPE_F64};
  const int64_t shape[] = {2, 3, 5, 4}, channels[] = {2, 4};
  enum { DATA, GRAD_INPUT, PARAMETERS, GRAD_SCALE, GRAD_OFFSET, COUNT };
  bngradTensorDescriptor_t t[COUNT];
  bngradBatchNormBackwardOptions_t options = {
      .struct_size = sizeof options, .epsilon = epsilon, .num_feature_dims = 2, .feature_dims = {0, 3}};
  bngradCreateHandle(&plan->handle, BNGRAD_DEVICE_CPU, 0);
  for (int i = 0; i < COUNT; ++i, number /= NUM_TYPES) {
    int is_data = i == DATA || i == GRAD_INPUT;
    if (i == PARAMETERS)
      plan->has_bf16_parameters = types[number % NUM_TYPES] == BNGRAD_DTYPE_BF16;
    bngradCreateTensorDescriptor(&t[i], types[number % NUM_TYPES], is_data ? 4 : 2, is_data ? shape : channels, NULL);
  }
  plan->gradient = NULL;
  bngradStatus_t status = bngradCreateBatchNormBackwardDescriptor(
      plan->handle, &plan->gradient, &options, t[GRAD_INPUT], t[GRAD_SCALE], t[GRAD_OFFSET], t[DATA], t[DATA],
      t[PARAMETERS], t[PARAMETERS], t[PARAMETERS], NULL);
  for (int i = 0; i < COUNT; ++i)
    bngradDestroyTensorDescriptor(t[i]);
  return status;
}

/* The arrays of a call, which are long enough for f64. */
typedef struct {
  float grad_input[240], grad_output[240], input[240];
  float grad_scale[16], grad_offset[16], scale[16], mean[16], variance[16];
} Arrays;

static bngradStatus_t run(const Plan *plan, Arrays *a, const bngradCompletion_t *done) {
  size_t size;
  for (int i = 0; i < 240; ++i)
    a->grad_output[i] = a->input[i] = (float)i;
  for (int i = 0; i < 16; ++i)
    a->scale[i] = a->mean[i] = a->variance[i] = 1;
  for (int i = 0; plan->has_bf16_parameters && i < 16; ++i) {
    const unsigned short one = 0x3f80;
    memcpy((char *)a->scale + 2 * i, &one, 2);
    memcpy((char *)a->mean + 2 * i, &one, 2);
    memcpy((char *)a->variance + 2 * i, &one, 2);
  }
  bngradGetBatchNormBackwardWorkspaceSize(plan->gradient, &size);
  void *workspace = malloc(size);
  bngradStatus_t status =
      done ? bngradBatchNormBackwardAsync(plan->gradient, workspace, size, a->grad_input, a->grad_scale,
                                          a->grad_offset, a->grad_output, a->input, a->scale, a->mean, a->variance,
                                          NULL, NULL, NULL, done)
           : bngradBatchNormBackward(plan->gradient, workspace, size, a->grad_input, a->grad_scale, a->grad_offset,
                                     a->grad_output, a->input, a->scale, a->mean, a->variance, NULL, NULL);
  free(workspace);
  return status;
}

static void destroy(Plan *plan) {
  bngradDestroyBatchNormBackwardDescriptor(plan->gradient);
  bngradDestroyHandle(plan->handle);
}

static bngradStatus_t compute(int number) {
  Plan plan;
  Arrays arrays;
  bngradStatus_t status = make(number, 0, &plan);
  if (!status)
    status = run(&plan, &arrays, NULL);
  if (status)
    fprintf(stderr, "%s\n", bngradGetLastError());
  destroy(&plan);
  return status;
}

static atomic_int next = 1;

static void *compute_on(void *unused) {
  for (;;)
    if (compute(atomic_fetch_add(&next, 1) % NUM_KERNELS))
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
      alarm(60);
      /* The kernel that the other thread was at, and a new one. */
      int last = atomic_load(&next) - 1;
      _exit(compute(last) || compute(NUM_KERNELS - 1 - i));
    }
    int status = 1;
    waitpid(child, &status, 0);
    right += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  printf("%d of %d children computed\n", right, count);
  fflush(stdout);
  _exit(0);
}

static atomic_int is_loading;

/* Replaces the system's function in all libraries; loading the compiler takes 300 ms. */
void *dlopen(const char *file, int mode) {
  void *(*next)(const char *, int);
  *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  if (file && !(mode & RTLD_NOLOAD) && strstr(file, "libBNGradCompiler.so")) {
    atomic_store(&is_loading, 1);
    wait_ms(300);
  }
  return next(file, mode);
}

static int test_load(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, compute_on, NULL);
  while (!atomic_load(&is_loading))
    wait_ms(1);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(compute(NUM_KERNELS - 1));
  }
  int status = 1;
  waitpid(child, &status, 0);
  printf("the child %s\n", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "computed" : "failed");
  fflush(stdout);
  _exit(0);
}

/* A variable of the compiler. */
static int read_compiler(const char *name) {
  void *compiler = dlopen(getenv("BNGRAD_COMPILER"), RTLD_NOW | RTLD_NOLOAD);
  return compiler ? *(atomic_int *)dlsym(compiler, name) : 0;
}

/* Another thread loads the compiler once the fork has begun. */
static void compile_in_fork(void) {
  static pthread_t thread;
  pthread_create(&thread, NULL, compute_on, NULL);
  while (read_compiler("num_compilations") == 0)
    wait_ms(1);
}

static int test_late(void) {
  pthread_atfork(compile_in_fork, NULL, NULL);
  pid_t child = fork();
  if (child == 0)
    _exit(read_compiler("num_compilations") + 10 * read_compiler("num_held"));
  int status = 1;
  waitpid(child, &status, 0);
  printf("the child has %d, the parent holds %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
         read_compiler("num_held"));
  fflush(stdout);
  _exit(0);
}

static int find_compiler(struct dl_phdr_info *info, size_t size, void *path) {
  (void)size;
  if (strstr(info->dlpi_name, "/libBNGradCompiler.so"))
    *(const char **)path = info->dlpi_name;
  return 0;
}

static int test_hold(void) {
  pthread_t thread;
  const char *path = NULL;
  int most = 0;
  pthread_create(&thread, NULL, compute_on, NULL);
  while (atomic_load(&next) < 3)
    wait_ms(1);
  dl_iterate_phdr(find_compiler, &path);
  void *compiler = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  void (*hold)(void), (*release)(int);
  *(void **)&hold = dlsym(compiler, "bngradHoldCompilations");
  *(void **)&release = dlsym(compiler, "bngradReleaseCompilations");
  for (int i = 0; i < 3; ++i) {
    hold();
    int before = atomic_load(&next);
    wait_ms(300);
    /* The next compilation waits. */
    int begun = atomic_load(&next) - before;
    most = begun > most ? begun : most;
    release(0);
  }
  printf("at most %d begun\n", most);
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
  Arrays arrays;
  int loaded = 0;
  bngradStatus_t status = make(0, 0, &first);
  for (int i = 1; i <= number && !status; ++i)
    status = compute(i);
  dl_iterate_phdr(count_kernels, &loaded);
  bngradStatus_t again = status ? status : run(&first, &arrays, NULL);
  printf("%s, %s, %d loaded\n", bngradGetStatusName(status), bngradGetStatusName(again), loaded);
  destroy(&first);
  return 0;
}

static int test_epsilon(int number, int types) {
  int loaded = 0, right = 0;
  for (int i = 0; i < number; ++i) {
    Plan plan;
    Arrays a;
    double epsilon = i == 0 ? 0 : 1e-5 * i * i * i;
    if (!make(types, epsilon, &plan) && !run(&plan, &a, NULL)) {
      /* Of the first channel, whose elements are 4 apart. */
      double sum = 0;
      for (int k = 0; k < 60; k += 4)
        sum += k * (k - 1.0);
      right += fabs(a.grad_scale[0] * sqrt(1 + epsilon) / sum - 1) < 1e-6;
    }
    destroy(&plan);
  }
  dl_iterate_phdr(count_kernels, &loaded);
  printf("%d right, %d loaded\n", right, loaded);
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
  Arrays arrays;
  bngradCompletion_t done[] = {{report, "grad_input"}, {report, "grad_scale"}, {report, "grad_offset"}};
  bngradStatus_t status = make(0, 0, &plan);
  if (!status)
    status = run(&plan, &arrays, done);
  printf("call: %s: %s\n", bngradGetStatusName(status), bngradGetLastError());
  destroy(&plan);
  return 0;
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  int number = argc > 2 ? atoi(argv[2]) : 0;
  return strcmp(name, "signals") == 0 ? test_signals()
         : strcmp(name, "fork") == 0  ? test_fork()
         : strcmp(name, "load") == 0  ? test_load()
         : strcmp(name, "late") == 0  ? test_late()
         : strcmp(name, "hold") == 0  ? test_hold()
         : strcmp(name, "exit") == 0  ? test_exit(number)
         : strcmp(name, "limit") == 0 ? test_limit(number)
         : strcmp(name, "epsilon") == 0 ? test_epsilon(number, 0)
         : strcmp(name, "narrow") == 0  ? test_epsilon(number, 2 * NUM_TYPES * NUM_TYPES)
         : strcmp(name, "done") == 0  ? test_done()
                                      : 1;
}
