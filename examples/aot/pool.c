/* Calls a compiled gradient by its checked entry, on threads of this program.
 */

#include "gradient.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4, kChannels = 256 };
static const int64_t kSizes[4] = {32, 14, 14, kChannels};

/* Threads that wait for work: the parts of one loop, taken one by one. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t threads[kThreads];
  void (*body)(void *data, int thread, int n);
  void *data;
  int n, next, running, isDone;
} Pool;

static void *work(void *context) {
  Pool *pool = context;
  pthread_mutex_lock(&pool->mutex);
  while (!pool->isDone) {
    if (pool->next == pool->n) {
      pthread_cond_wait(&pool->changed, &pool->mutex);
      continue;
    }
    int part = pool->next++;
    ++pool->running;
    pthread_mutex_unlock(&pool->mutex);
    pool->body(pool->data, part, pool->n);
    pthread_mutex_lock(&pool->mutex);
    --pool->running;
    pthread_cond_broadcast(&pool->changed);
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

static int count(void *context) {
  (void)context;
  return kThreads;
}

static void run(void *context, int n,
                void (*body)(void *data, int thread, int n), void *data) {
  Pool *pool = context;
  pthread_mutex_lock(&pool->mutex);
  pool->body = body;
  pool->data = data;
  pool->next = 0;
  pool->n = n;
  pthread_cond_broadcast(&pool->changed);
  while (pool->next < n || pool->running > 0)
    pthread_cond_wait(&pool->changed, &pool->mutex);
  pthread_mutex_unlock(&pool->mutex);
}

static bngrad_memref_bf16_4_t makeImages(uint16_t *data) {
  bngrad_memref_bf16_4_t images = {data, data, 0, {0}, {0}};
  int64_t stride = 1;
  for (int dim = 4; dim-- > 0;) {
    images.sizes[dim] = kSizes[dim];
    images.strides[dim] = stride;
    stride *= kSizes[dim];
  }
  return images;
}

static bngrad_memref_f32_1_t makeRow(float *data) {
  bngrad_memref_f32_1_t row = {data, data, 0, {kChannels}, {1}};
  return row;
}

int main(void) {
  size_t size = (size_t)(kSizes[0] * kSizes[1] * kSizes[2] * kSizes[3]);
  uint16_t *data = malloc(4 * 2 * size);
  uint8_t *bytes = malloc(size);
  float row[5][kChannels];
  if (!data || !bytes)
    return 1;
  for (size_t i = 0; i < size; ++i) {
    data[i] = 0x3f80;        /* grad_output: 1 in bf16 */
    data[size + i] = 0x4000; /* input: 2 */
    data[2 * size + i] = 0;  /* skip */
    bytes[i] = i / kChannels % 2 == 0;
  }
  for (int c = 0; c < kChannels; ++c) {
    row[0][c] = 1;    /* scale */
    row[1][c] = 0.5f; /* mean */
    row[2][c] = 4;    /* variance */
  }
  bngrad_memref_bf16_4_t dy = makeImages(data), x = makeImages(data + size),
                         skip = makeImages(data + 2 * size),
                         dx = makeImages(data + 3 * size);
  bngrad_memref_i1_4_t mask = {bytes, bytes, 0, {0}, {0}};
  for (int dim = 0; dim < 4; ++dim) {
    mask.sizes[dim] = dy.sizes[dim];
    mask.strides[dim] = dy.strides[dim];
  }
  bngrad_memref_f32_1_t scale = makeRow(row[0]), mean = makeRow(row[1]),
                        variance = makeRow(row[2]), dscale = makeRow(row[3]),
                        doffset = makeRow(row[4]);

  Pool pool = {.mutex = PTHREAD_MUTEX_INITIALIZER,
               .changed = PTHREAD_COND_INITIALIZER};
  for (int i = 0; i < kThreads; ++i)
    if (pthread_create(&pool.threads[i], NULL, work, &pool) != 0)
      return 1;
  bngrad_threads_t threads = {sizeof(threads), &pool, count, run};
  size_t workspaceSize = block_gradient_workspace(
      &dy, &x, &scale, &mean, &variance, &mask, &skip, &dx, &dscale, &doffset);
  void *workspace = malloc(workspaceSize);
  int32_t status = block_gradient_checked(&dy, &x, &scale, &mean, &variance,
                                          &mask, &skip, &dx, &dscale, &doffset,
                                          workspace, workspaceSize, &threads);
  if (status != 0)
    return 1;
  /* Every other pixel has the mask. */
  double pixels = (double)size / kChannels;
  printf("grad_offset %.1f, expected %.1f\n", row[4][0], pixels / 2);
  printf("grad_scale %.1f, expected %.1f\n", row[3][0],
         pixels / 2 * (2 - 0.5) / 2);

  char text[100];
  dscale.sizes[0] = 128;
  status = block_gradient_diagnose(&dy, &x, &scale, &mean, &variance, &mask,
                                   &skip, &dx, &dscale, &doffset, workspace,
                                   workspaceSize, &threads, text, sizeof(text));
  printf("status %d: %s\n", status, text);

  pthread_mutex_lock(&pool.mutex);
  pool.isDone = 1;
  pthread_cond_broadcast(&pool.changed);
  pthread_mutex_unlock(&pool.mutex);
  for (int i = 0; i < kThreads; ++i)
    pthread_join(pool.threads[i], NULL);
  free(data);
  free(bytes);
  free(workspace);
  return 0;
}
