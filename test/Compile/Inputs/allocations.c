/* Lets each allocation of compiled functions fail in turn: the function must return an error and free its memory.
 * Afterwards it must compute the same results as with enough memory. Linked with --wrap for malloc, free, mmap and
 * munmap, which applies to the calls of compiled functions, but not to those of OpenMP. */

#include "functions.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 64, kChannels = 96, kSize = kRows * kChannels, kWithGaps = kRows * (kChannels + 1) };

static atomic_int calls, live, wrong;
static int failing = -1;

void *__real_malloc(size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size) {
  if (atomic_fetch_add(&calls, 1) == failing)
    return NULL;
  void *memory = __real_malloc(size);
  /* Reads of uninitialized memory change results. */
  if (memory) {
    memset(memory, 0xff, size);
    atomic_fetch_add(&live, 1);
  }
  return memory;
}

void __wrap_free(void *memory) {
  if (memory)
    atomic_fetch_sub(&live, 1);
  __real_free(memory);
}

/* Workspaces of functions that get none. */
static int mapped, unmapped, isMapFailing;
void *__real_mmap(void *address, size_t size, int protection, int flags, int file, int64_t offset);
int __real_munmap(void *memory, size_t size);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, int64_t offset);
int __wrap_munmap(void *memory, size_t size);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, int64_t offset) {
  if (isMapFailing)
    return (void *)-1;
  ++mapped;
  void *memory = __real_mmap(address, size, protection, flags, file, offset);
  memset(memory, 0xff, size);
  return memory;
}

int __wrap_munmap(void *memory, size_t size) {
  ++unmapped;
  return __real_munmap(memory, size);
}

static float dy[kWithGaps], x[kWithGaps], mean[kChannels], variance[kChannels];

static bngrad_memref_f32_2_t data(float *memory) {
  return (bngrad_memref_f32_2_t){memory, memory, 0, {kRows, kChannels}, {kChannels, 1}};
}
static bngrad_memref_f32_1_t row(float *memory, int64_t size) {
  return (bngrad_memref_f32_1_t){memory, memory, 0, {size}, {1}};
}

static int32_t callGradient(float *out) {
  return gradient(dy, x, mean, variance, out, out + kSize, out + kSize + kChannels);
}
static int32_t callGradientByDescriptors(float *out) {
  bngrad_memref_f32_2_t d = data(dy), i = data(x), g = data(out);
  bngrad_memref_f32_1_t m = row(mean, kChannels), v = row(variance, kChannels), s = row(out + kSize, kChannels),
                        o = row(out + kSize + kChannels, kChannels);
  return _mlir_ciface_dynamic(&d, &i, &m, &v, &g, &s, &o);
}
static int32_t callTemporaries(float *out) { return temporaries(dy, x, out); }
static int32_t callCarried(float *out) {
  bngrad_memref_f32_1_t m = row(mean, kChannels), o = row(out, kChannels);
  return _mlir_ciface_carried(5, &m, &o);
}
static int32_t callCalls(float *out) { return calling(1, dy, x, out); }
static int32_t callParallel(float *out) { return parallel(dy, out); }
static int32_t callStrided(float *out) { return strided(dy, x, mean, variance, out); }

static void test(const char *name, int32_t (*call)(float *)) {
  static float expected[2 * kSize], got[2 * kSize];
  memset(expected, 0, sizeof(expected));
  failing = -1;
  calls = live = 0;
  int32_t status = call(expected);
  int count = calls;
  if (status != 0 || live != 0) {
    printf("%s: expected 0 and nothing left, got %d and %d of %d\n", name, status, (int)live, count);
    wrong = 1;
  }
  for (failing = 0; failing <= count; ++failing) {
    memset(got, 0, sizeof(got));
    calls = live = 0;
    status = call(got);
    int32_t due = failing < count ? -2 : 0;
    if (status != due || live != 0) {
      printf("%s: allocation %d of %d fails: expected %d and nothing left, got %d and %d\n", name, failing, count, due,
             status, (int)live);
      wrong = 1;
    }
  }
  if (memcmp(expected, got, sizeof(got)) != 0) {
    printf("%s: expected the same results afterwards\n", name);
    wrong = 1;
  }
  printf("%s: %s\n", name, count ? "allocates" : "allocates nothing");
}

/* Sizes whose bytes overflow 64 bits or exceed the memory. */
static void testSizes(void) {
  static const int64_t sizes[] = {INT64_C(1) << 32, INT64_C(1) << 31, INT64_C(3037000500), INT64_C(1) << 62, -1,
                                  INT64_MIN};
  failing = -1;
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    float result[1];
    bngrad_memref_f32_1_t r = row(result, 1);
    calls = live = 0;
    int32_t status = _mlir_ciface_sized(sizes[i], &r);
    if (status != -2 || live != 0) {
      printf("size %lld: expected -2 and nothing left, got %d and %d\n", (long long)sizes[i], status, (int)live);
      wrong = 1;
    }
  }
}

/* A workspace is mapped for the first call, kept for the next ones, and replaced by one that is larger. */
static void testWorkspace(void) {
  static float out[2 * kSize];
  int32_t statuses[6];
  int maps[6], unmaps[6];
  for (int i = 0; i < 6; ++i) {
    /* The size of the first call's workspace is less. */
    bngrad_memref_f32_2_t d = data(dy), x_ = data(x), g = data(out);
    int64_t channels = i < 3 ? kChannels / 12 : kChannels;
    d.sizes[1] = x_.sizes[1] = g.sizes[1] = d.strides[0] = x_.strides[0] = g.strides[0] = channels;
    bngrad_memref_f32_1_t m = row(mean, channels), v = row(variance, channels), s = row(out + kSize, channels),
                          o = row(out + kSize + channels, channels);
    isMapFailing = i == 0 || i == 3;
    statuses[i] = _mlir_ciface_dynamic(&d, &x_, &m, &v, &g, &s, &o);
    maps[i] = mapped;
    unmaps[i] = unmapped;
  }
  isMapFailing = 0;
  if (!mapped) {
    printf("no workspace is mapped\n");
    return;
  }
  static const int32_t dueStatuses[6] = {-2, 0, 0, -2, 0, 0};
  static const int dueMaps[6] = {0, 1, 1, 1, 2, 2}, dueUnmaps[6] = {0, 0, 0, 1, 1, 1};
  for (int i = 0; i < 6; ++i)
    if (statuses[i] != dueStatuses[i] || maps[i] != dueMaps[i] || unmaps[i] != dueUnmaps[i]) {
      printf("workspace, call %d: expected %d, %d mapped, %d unmapped, got %d, %d, %d\n", i, dueStatuses[i], dueMaps[i],
             dueUnmaps[i], statuses[i], maps[i], unmaps[i]);
      wrong = 1;
    }
  printf("a workspace is mapped\n");
}

int main(void) {
  for (int i = 0; i < kWithGaps; ++i) {
    dy[i] = (float)(i % 17) / 16 - 0.4f;
    x[i] = (float)(i % 29) / 8 - 1.6f;
  }
  for (int i = 0; i < kChannels; ++i) {
    mean[i] = (float)(i % 5) / 4;
    variance[i] = 0.5f + (float)(i % 7) / 8;
  }
  testWorkspace();
  test("gradient", callGradient);
  test("dynamic", callGradientByDescriptors);
  test("temporaries", callTemporaries);
  test("carried", callCarried);
  test("calling", callCalls);
  test("parallel", callParallel);
  test("strided", callStrided);
  testSizes();
  printf("%s\n", wrong ? "wrong" : "right");
  return wrong;
}
