/* Calls the checked entries of compiled functions, right and wrong. */

#include "functions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef bngrad_memref_f32_4_t Data;
typedef bngrad_memref_f32_1_t Row;
enum { kGuard = 64 };

#define PARAMETERS \
  const Data *dy, const Data *x, const Row *scale, const Row *mean, const Row *variance, const Data *dx, \
      const Row *dscale, const Row *doffset

typedef struct {
  const char *name;
  int channelDim;
  size_t (*workspace)(PARAMETERS);
  int32_t (*checked)(PARAMETERS, void *, size_t, const bngrad_threads_t *);
  int32_t (*diagnose)(PARAMETERS, void *, size_t, const bngrad_threads_t *, char *, size_t);
  int32_t (*unchecked)(PARAMETERS);
} Function;

static const Function kNchw = {"nchw", 1, nchw_workspace, nchw_checked, nchw_diagnose, _mlir_ciface_nchw};
static const Function kNhwc = {"nhwc", 3, nhwc_workspace, nhwc_checked, nhwc_diagnose, _mlir_ciface_nhwc};
static const Function kFixed = {"fixed", 1, fixed_workspace, fixed_checked, fixed_diagnose, _mlir_ciface_fixed};

static int wrong;

static void fail(const char *text) {
  if (wrong++ < 20)
    printf("FAILED %s\n", text);
}

/* The arguments of a call, and all that it may write, between guards. */
typedef struct {
  Data dy, x, dx;
  Row scale, mean, variance, dscale, doffset;
  float *in, *out, *row;
  char *workspace;
  int64_t elements, channels;
  size_t workspaceSize;
} Call;

static Data makeData(float *memory, const int64_t *sizes) {
  Data data = {memory, memory, 0, {sizes[0], sizes[1], sizes[2], sizes[3]}, {0}};
  for (int dim = 3, stride = 1; dim >= 0; --dim) {
    data.strides[dim] = stride;
    stride *= (int)sizes[dim];
  }
  return data;
}

static Row makeRow(float *memory, int64_t size) { return (Row){memory, memory, 0, {size}, {1}}; }

static Call prepare(const Function *f, const int64_t *sizes) {
  Call call;
  call.elements = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  call.channels = sizes[f->channelDim];
  size_t bytes = sizeof(float) * (size_t)(2 * call.elements), rowBytes = sizeof(float) * (size_t)(3 * call.channels);
  call.in = malloc(bytes + 1);
  call.row = malloc(rowBytes + 1);
  call.out = malloc(sizeof(float) * (size_t)(call.elements + 2 * call.channels) + kGuard);
  for (int64_t i = 0; i < 2 * call.elements; ++i)
    call.in[i] = (float)(i * 7 % 1021) / 512 - 0.9f;
  for (int64_t i = 0; i < 3 * call.channels; ++i)
    call.row[i] = 0.5f + (float)(i % 7) / 8;
  call.dy = makeData(call.in, sizes);
  call.x = makeData(call.in + call.elements, sizes);
  call.dx = makeData(call.out, sizes);
  call.scale = makeRow(call.row, call.channels);
  call.mean = makeRow(call.row + call.channels, call.channels);
  call.variance = makeRow(call.row + 2 * call.channels, call.channels);
  call.dscale = makeRow(call.out + call.elements, call.channels);
  call.doffset = makeRow(call.out + call.elements + call.channels, call.channels);
  call.workspaceSize = f->workspace(&call.dy, &call.x, &call.scale, &call.mean, &call.variance, &call.dx, &call.dscale,
                                    &call.doffset);
  call.workspace = malloc(call.workspaceSize + kGuard);
  return call;
}

static void release(Call *call) {
  free(call->in);
  free(call->row);
  free(call->out);
  free(call->workspace);
}

static int32_t run(const Function *f, Call *c, const bngrad_threads_t *threads) {
  return f->checked(&c->dy, &c->x, &c->scale, &c->mean, &c->variance, &c->dx, &c->dscale, &c->doffset, c->workspace,
                    c->workspaceSize, threads);
}

/* A pool of one thread that says it has several; they run in any order, here from the last to the first. */
static int runs;
static int count(void *context) { return *(int *)context; }
static void runBackwards(void *context, int n, void (*body)(void *, int, int), void *data) {
  ++runs;
  if (n != *(int *)context)
    fail("run: another number of threads");
  for (int i = n; i-- > 0;)
    body(data, i, n);
}

static size_t getOutBytes(const Call *c) { return sizeof(float) * (size_t)(c->elements + 2 * c->channels); }

/* The results of every way to call, compared with those of the unchecked entry. */
static int testShape(const Function *f, const int64_t *sizes) {
  int calls = 0;
  Call c = prepare(f, sizes);
  size_t bytes = getOutBytes(&c), inBytes = sizeof(float) * (size_t)(2 * c.elements);
  float *expected = malloc(bytes + 1), *in = malloc(inBytes + 1);
  memcpy(in, c.in, inBytes);
  memset(c.out, 0xff, bytes + kGuard);
  if (f->unchecked(&c.dy, &c.x, &c.scale, &c.mean, &c.variance, &c.dx, &c.dscale, &c.doffset) != 0)
    fail("unchecked");
  memcpy(expected, c.out, bytes);
  for (int64_t i = 0; i < c.elements + 2 * c.channels; ++i)
    if (isnan(c.out[i]))
      fail("a result is missing");
  static const int kThreads[] = {0, 1, 2, 3, 5, 64};
  /* grad_input by itself, in the place of grad_output, and in that of input. */
  for (int place = 0; place < 3; ++place)
    for (int i = 0; i < 6; ++i) {
      int n = kThreads[i];
      bngrad_threads_t pool = {sizeof(pool), &n, count, runBackwards};
      memcpy(c.in, in, inBytes);
      memset(c.out, 0xff, bytes + kGuard);
      memset(c.workspace, 0xff, c.workspaceSize + kGuard);
      float *result = place == 0 ? c.out : place == 1 ? c.dy.aligned : c.x.aligned;
      c.dx.aligned = result;
      if (run(f, &c, n ? &pool : NULL) != 0)
        fail("checked");
      ++calls;
      size_t data = sizeof(float) * (size_t)c.elements;
      if (memcmp(result, expected, data) != 0 ||
          memcmp((char *)c.out + data, (char *)expected + data, bytes - data) != 0)
        fail("results differ");
      for (int k = 0; k < kGuard; ++k)
        if (c.workspace[c.workspaceSize + (size_t)k] != (char)0xff || ((char *)c.out)[bytes + (size_t)k] != (char)0xff)
          fail("written out of bounds");
    }
  free(expected);
  free(in);
  release(&c);
  return calls;
}

static void testShapes(const Function *f, const int64_t (*shapes)[4], int num) {
  int calls = 0;
  for (int i = 0; i < num; ++i)
    calls += testShape(f, shapes[i]);
  printf("%s: %d shapes, %d calls\n", f->name, num, calls);
}

/* A misuse. */
static int misuses;

static void expect(const Function *f, const Call *c, const Data *dy, const Data *x, const Row *const *rows,
                   const Data *dx, void *workspace, size_t workspaceSize, const bngrad_threads_t *threads,
                   int32_t status, int32_t orStatus, const char *name) {
  size_t bytes = getOutBytes(c) + kGuard;
  memset(c->out, 0x5a, bytes);
  memset(c->workspace, 0x5a, c->workspaceSize + kGuard);
  char text[200] = "none";
  int32_t got = f->checked(dy, x, rows[0], rows[1], rows[2], dx, rows[3], rows[4], workspace, workspaceSize, threads);
  int32_t again = f->diagnose(dy, x, rows[0], rows[1], rows[2], dx, rows[3], rows[4], workspace, workspaceSize,
                              threads, text, sizeof(text));
  ++misuses;
  if ((got != status && got != orStatus) || again != got || !strstr(text, name)) {
    char message[400];
    snprintf(message, sizeof(message), "%s: expected %d or %d and '%s', got %d, %d: %s", f->name, status, orStatus,
             name, got, again, text);
    fail(message);
  }
  for (size_t i = 0; i < bytes; ++i)
    if (((char *)c->out)[i] != 0x5a)
      fail("a result is written");
  for (size_t i = 0; i < c->workspaceSize + kGuard; ++i)
    if (c->workspace[i] != 0x5a)
      fail("the workspace is written");
}

enum { kParam = 1, kNull = 2, kShape = 4, kStrides = 5, kWorkspace = 6 };

/* Each wrong value of each field of `which`, one of the arguments. */
static void misuseData(const Function *f, Call *c, int which, const char *name) {
  const Row *rows[] = {&c->scale, &c->mean, &c->variance, &c->dscale, &c->doffset};
  const Data *all[] = {&c->dy, &c->x, &c->dx};
  Data right = *all[which];
#define EXPECT(status, orStatus) \
  expect(f, c, all[0], all[1], rows, all[2], c->workspace, c->workspaceSize, NULL, status, orStatus, name)
  all[which] = NULL;
  EXPECT(kNull, kNull);
  Data data = right;
  all[which] = &data;
  data.aligned = NULL;
  EXPECT(kNull, kNull);
  for (int i = 1; i < 4; ++i) {
    data.aligned = (float *)((char *)right.aligned + i);
    EXPECT(kParam, kParam);
  }
  data = right;
  static const int64_t kDeltas[] = {1, -1, 100, INT64_MAX / 2, -1000, INT64_MIN / 2};
  for (int dim = 0; dim < 4; ++dim)
    for (int i = 0; i < 6; ++i) {
      /* With strides of the old sizes, and with those of the new ones; the product may be anything. */
      data = right;
      data.sizes[dim] += kDeltas[i];
      EXPECT(kShape, kStrides);
      if (data.sizes[dim] > 0 && data.sizes[dim] < 1000) {
        data = makeData(right.aligned, data.sizes);
        /* Of input, the size is that of the others. */
        expect(f, c, all[0], all[1], rows, all[2], c->workspace, c->workspaceSize, NULL, kShape, kShape, "expected");
      }
      data = right;
      data.strides[dim] += kDeltas[i];
      EXPECT(kStrides, kStrides);
    }
  data = right;
  for (int i = 0; i < 6; ++i) {
    data.offset = kDeltas[i];
    EXPECT(kStrides, kStrides);
  }
#undef EXPECT
}

static void misuseRow(const Function *f, Call *c, int which, const char *name) {
  const Row *rows[] = {&c->scale, &c->mean, &c->variance, &c->dscale, &c->doffset};
  Row right = *rows[which];
#define EXPECT(status) \
  expect(f, c, &c->dy, &c->x, rows, &c->dx, c->workspace, c->workspaceSize, NULL, status, status, name)
  rows[which] = NULL;
  EXPECT(kNull);
  Row row = right;
  rows[which] = &row;
  row.aligned = NULL;
  EXPECT(kNull);
  row.aligned = (float *)((char *)right.aligned + 2);
  EXPECT(kParam);
  row = right;
  static const int64_t kDeltas[] = {1, -1, 100, INT64_MAX / 2, -1000, INT64_MIN / 2};
  for (int i = 0; i < 6; ++i) {
    row = right;
    row.sizes[0] += kDeltas[i];
    EXPECT(kShape);
    row = right;
    row.strides[0] += kDeltas[i];
    EXPECT(kStrides);
    row = right;
    row.offset = kDeltas[i];
    EXPECT(kStrides);
  }
#undef EXPECT
}

static void misuseRest(const Function *f, Call *c) {
  const Row *rows[] = {&c->scale, &c->mean, &c->variance, &c->dscale, &c->doffset};
#define EXPECT(workspace, size, threads, status, name) \
  expect(f, c, &c->dy, &c->x, rows, &c->dx, workspace, size, threads, status, status, name)
  for (size_t i = 0; i < c->workspaceSize; i += 1 + c->workspaceSize / 8)
    EXPECT(c->workspace, i, NULL, kWorkspace, "workspace_size");
  if (c->workspaceSize) {
    EXPECT(c->workspace, c->workspaceSize - 1, NULL, kWorkspace, "workspace_size");
    EXPECT(NULL, c->workspaceSize, NULL, kNull, "workspace");
  }
  int n = 2;
  bngrad_threads_t pool = {sizeof(pool), &n, count, runBackwards};
  for (size_t size = 0; size < sizeof(pool); size += 8) {
    pool.struct_size = size;
    EXPECT(c->workspace, c->workspaceSize, &pool, kParam, "threads");
  }
  pool = (bngrad_threads_t){sizeof(pool), &n, NULL, runBackwards};
  EXPECT(c->workspace, c->workspaceSize, &pool, kNull, "threads: expected a function count");
  pool = (bngrad_threads_t){sizeof(pool), &n, count, NULL};
  EXPECT(c->workspace, c->workspaceSize, &pool, kNull, "threads: expected a function run");
#undef EXPECT
}

static void testMisuses(const Function *f, const int64_t *sizes) {
  Call c = prepare(f, sizes);
  static const char *const kData[] = {"grad_output", "input", "grad_input"};
  static const char *const kRows[] = {"scale", "mean", "variance", "grad_scale", "grad_offset"};
  /* Where the size of input is wrong, grad_output's is not that of input. */
  for (int i = 0; i < 3; ++i)
    misuseData(f, &c, i, kData[i]);
  for (int i = 0; i < 5; ++i)
    misuseRow(f, &c, i, kRows[i]);
  misuseRest(f, &c);
  /* It is right otherwise. */
  if (run(f, &c, NULL) != 0)
    fail("the call without a misuse");
  release(&c);
}

int main(void) {
#ifdef SMALL
  static const int64_t kShapes[][4] = {{2, 3, 4, 5}, {1, 1, 1, 1}};
#else
  /* Those of every schedule, and empty ones. */
  static const int64_t kShapes[][4] = {{2, 3, 4, 5},    {1, 1, 1, 1},  {16, 64, 28, 28}, {8, 3, 112, 112},
                                       {64, 32, 4, 4}, {0, 3, 4, 5}, {3, 40, 9, 500},   {65, 17, 1, 3}};
#endif
  int num = (int)(sizeof(kShapes) / sizeof(kShapes[0]));
  testShapes(&kNchw, kShapes, num);
  testShapes(&kNhwc, kShapes, num);
  testShapes(&kFixed, kShapes, 1);
#ifndef SMALL
  if (!runs)
    fail("the pool does not run");
#endif
  testMisuses(&kNchw, kShapes[0]);
  testMisuses(&kNhwc, kShapes[0]);
  testMisuses(&kFixed, kShapes[0]);
  printf("%d misuses\n", misuses);

  Call c = prepare(&kNchw, kShapes[0]);
  char text[100];
  c.x.strides[1] = 21;
  kNchw.diagnose(&c.dy, &c.x, &c.scale, &c.mean, &c.variance, &c.dx, &c.dscale, &c.doffset, c.workspace,
                 c.workspaceSize, NULL, text, sizeof(text));
  printf("nchw: %s\n", text);
  release(&c);
  printf("%s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}
