/* Calls every function of gradients.mlir and compares with docs/mathematics.md
 * in float64. With -DBNGRAD_DLOPEN the functions come from the shared object
 * that is the program's argument; with another argument, `first`, it has only
 * the first function. */

#include "gradients.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BNGRAD_DLOPEN
#include <dlfcn.h>
static void *library;
/* Through memory: ISO C does not convert object pointers to function pointers. */
static void load(const char *name, void *function) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    printf("FAILED: %s\n", dlerror());
    exit(1);
  }
  memcpy(function, &symbol, sizeof symbol);
}
#define GET(name)                                                              \
  __typeof__(name) *p_##name;                                                  \
  load(#name, &p_##name)
#else
#define GET(name) __typeof__(name) *p_##name = name
#endif

enum { kMost = 64 * 3 * 64 * 64 };
static const double kEpsilon = 1e-3;
static int numFailed;

static void expect(int condition, const char *what) {
  if (!condition) {
    printf("FAILED: %s\n", what);
    ++numFailed;
  }
}

/* Conversions that share no code with the compiler. */
static double fromF16(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}
static double fromBF16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}
/* A value that is exact in f16 and bf16: k/64 for |k| <= 128. */
static uint16_t toBF16(double value) {
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return (uint16_t)(bits >> 16);
}
static uint16_t toF16(double value) {
  int exponent;
  double fraction = frexp(fabs(value), &exponent); /* [0.5, 1) */
  uint16_t sign = value < 0 ? 0x8000 : 0;
  if (value == 0)
    return sign;
  return (uint16_t)(sign | (exponent + 14) << 10 |
                    ((int)(fraction * 2048) & 1023));
}

static uint32_t state = 1;
/* k/64 for k in [-128, 128), the same in every run. */
static double next(void) {
  state = state * 1664525u + 1013904223u;
  return (int)(state >> 24) / 64.0 - 2.0;
}

/* One problem: outer x channels x inner, in float64. */
typedef struct {
  int outer, channels, inner, isGlobal;
  double unit; /* of grad_input's rounding */
  double *dy, *x, *dx;
  double scale[3], mean[3], r[3], dscale[3], doffset[3];
} Problem;

static double *allocate(void) { return calloc(kMost, sizeof(double)); }

static Problem makeProblem(int outer, int inner, double unit) {
  Problem p;
  memset(&p, 0, sizeof p);
  p.outer = outer;
  p.channels = 3;
  p.inner = inner;
  p.unit = unit;
  p.dy = allocate();
  p.x = allocate();
  p.dx = allocate();
  for (int i = 0; i < outer * 3 * inner; ++i) {
    p.dy[i] = next();
    p.x[i] = next();
  }
  return p;
}

static int at(const Problem *p, int n, int c, int s) {
  return (n * p->channels + c) * p->inner + s;
}

static void solve(Problem *p) {
  double m = (double)p->outer * p->inner;
  for (int c = 0; c < 3; ++c) {
    double sum = 0, sumXmu = 0;
    for (int n = 0; n < p->outer; ++n)
      for (int s = 0; s < p->inner; ++s) {
        sum += p->dy[at(p, n, c, s)];
        sumXmu += p->dy[at(p, n, c, s)] * (p->x[at(p, n, c, s)] - p->mean[c]);
      }
    p->doffset[c] = sum;
    p->dscale[c] = sumXmu * p->r[c];
    for (int n = 0; n < p->outer; ++n)
      for (int s = 0; s < p->inner; ++s) {
        int i = at(p, n, c, s);
        double centred = p->dy[i];
        if (!p->isGlobal)
          centred -= sum / m +
                     (p->x[i] - p->mean[c]) * p->r[c] * p->r[c] * sumXmu / m;
        p->dx[i] = p->scale[c] * p->r[c] * centred;
      }
  }
}

static void setStatistics(Problem *p, const float *variance, double epsilon) {
  for (int c = 0; c < 3; ++c)
    p->r[c] = 1 / sqrt(variance[c] + epsilon);
}

static const float kScale[3] = {0.75f, -1.5f, 2.0f};
static const float kMean[3] = {0.125f, -0.25f, 0.5f};
static const float kVariance[3] = {0.5f, 1.25f, 3.0f};

static void setParameters(Problem *p) {
  for (int c = 0; c < 3; ++c) {
    p->scale[c] = kScale[c];
    p->mean[c] = kMean[c];
  }
  setStatistics(p, kVariance, kEpsilon);
}

/* Every term is below 32; the sums have outer*inner of them. */
static void compare(const char *what, double got, double want, double allowed) {
  if (!(fabs(got - want) <= allowed)) {
    printf("FAILED: %s: expected %g, got %g\n", what, want, got);
    ++numFailed;
  }
}
static void compareChannels(const char *what, const Problem *p,
                            const float *got, const double *want) {
  for (int c = 0; c < 3; ++c)
    compare(what, got[c], want[c], 0x1p-22 * 16 * p->outer * p->inner);
}

static float *narrow(const double *values, int count) {
  float *result = malloc(sizeof(float) * (size_t)(count + 1));
  for (int i = 0; i < count; ++i)
    result[i] = (float)values[i];
  return result;
}

static void checkNchw(void) {
  GET(nchw);
  GET(_mlir_ciface_nchw);
  Problem p = makeProblem(5, 14, 0x1p-24);
  setParameters(&p);
  solve(&p);
  int count = 5 * 3 * 14;
  float *dy = narrow(p.dy, count), *x = narrow(p.x, count);
  float dx[5 * 3 * 14], dscale[3], doffset[3];
  for (int form = 0; form < 2; ++form) {
    memset(dx, 0xff, sizeof dx);
    memset(dscale, 0xff, sizeof dscale);
    memset(doffset, 0xff, sizeof doffset);
    if (form == 0) {
      expect(p_nchw(dy, x, kScale, kMean, kVariance, dx, dscale, doffset) == 0,
             "nchw returns 0");
    } else {
#define DATA(pointer) {pointer, pointer, 0, {5, 3, 7, 2}, {42, 14, 2, 1}}
#define CHANNEL(pointer) {pointer, pointer, 0, {3}, {1}}
      bngrad_memref_f32_4_t m[] = {DATA(dy), DATA(x), DATA(dx)};
      bngrad_memref_f32_1_t v[] = {
          CHANNEL((float *)kScale), CHANNEL((float *)kMean),
          CHANNEL((float *)kVariance), CHANNEL(dscale), CHANNEL(doffset)};
      p__mlir_ciface_nchw(&m[0], &m[1], &v[0], &v[1], &v[2], &m[2], &v[3],
                          &v[4]);
    }
    for (int i = 0; i < count; ++i)
      compare("nchw grad_input", dx[i], p.dx[i], 0x1p-20 * 8);
    compareChannels("nchw grad_scale", &p, dscale, p.dscale);
    compareChannels("nchw grad_offset", &p, doffset, p.doffset);
  }
  memset(dscale, 0xff, sizeof dscale);
  expect(p_nchw(dy, x, kScale, 0, kVariance, dx, dscale, doffset) == -1 &&
             p_nchw(dy, x, kScale, kMean, kVariance, 0, dscale, doffset) == -1,
         "null is -1");
  expect(isnan(dscale[0]), "nothing is written after null");
}

static void checkMasked(void) {
  GET(masked);
  Problem p = makeProblem(30, 1, 0x1p-8);
  uint16_t dy[90], x[90], dx[90];
  uint8_t mask[90];
  const float invStd[3] = {1.5f, 0.75f, 0.25f};
  float dscale[3], doffset[3];
  for (int i = 0; i < 90; ++i) {
    dy[i] = toBF16(p.dy[i]);
    x[i] = toBF16(p.x[i]);
    p.dy[i] = fromBF16(dy[i]);
    p.x[i] = fromBF16(x[i]);
    mask[i] = p.x[i] > 0;
    if (!mask[i])
      p.dy[i] = 0;
  }
  for (int c = 0; c < 3; ++c) {
    p.scale[c] = 1;
    p.mean[c] = kMean[c];
    p.r[c] = invStd[c];
  }
  solve(&p);
  expect(p_masked(dy, x, mask, kMean, invStd, dx, dscale, doffset) == 0,
         "masked returns 0");
  for (int i = 0; i < 90; ++i)
    compare("masked grad_input", fromBF16(dx[i]), p.dx[i],
            0x1p-8 * fabs(p.dx[i]) + 0x1p-18);
  compareChannels("masked grad_scale", &p, dscale, p.dscale);
  compareChannels("masked grad_offset", &p, doffset, p.doffset);
}

static void checkDoubles(void) {
  GET(doubles);
  Problem p = makeProblem(11, 1, 0x1p-53);
  p.isGlobal = 1;
  double variance[3], dx[33], doffset[3];
  setParameters(&p);
  for (int c = 0; c < 3; ++c)
    variance[c] = kVariance[c];
  solve(&p);
  expect(p_doubles(p.dy, p.x, p.scale, p.mean, variance, dx, doffset) == 0,
         "doubles returns 0");
  for (int i = 0; i < 33; ++i)
    compare("doubles grad_input", dx[i], p.dx[i], 0x1p-48);
  for (int c = 0; c < 3; ++c)
    compare("doubles grad_offset", doffset[c], p.doffset[c], 0x1p-46);
}

static void checkHalves(void) {
  GET(halves);
  Problem p = makeProblem(64, 64 * 64, 0x1p-11);
  uint16_t *dy = malloc(2 * kMost), *x = malloc(2 * kMost),
           *dx = malloc(2 * kMost);
  float dscale[3], doffset[3];
  for (int i = 0; i < kMost; ++i) {
    dy[i] = toF16(p.dy[i]);
    x[i] = toF16(p.x[i]);
    expect(fromF16(dy[i]) == p.dy[i], "conversion of the test");
  }
  setParameters(&p);
  solve(&p);
  expect(p_halves(dy, x, kScale, kMean, kVariance, dx, dscale, doffset) == 0,
         "halves returns 0");
  for (int i = 0; i < kMost && numFailed < 9; ++i)
    compare("halves grad_input", fromF16(dx[i]), p.dx[i],
            0x1p-11 * fabs(p.dx[i]) + 0x1p-18);
  compareChannels("halves grad_scale", &p, dscale, p.dscale);
  compareChannels("halves grad_offset", &p, doffset, p.doffset);
}

static void checkFused(void) {
  GET(fused);
  Problem p = makeProblem(5, 14, 0x1p-24);
  int count = 5 * 3 * 14;
  float *dy = narrow(p.dy, count), *x = narrow(p.x, count);
  float dx[5 * 3 * 14], dscale[3], doffset[3];
  for (int i = 0; i < count; ++i)
    p.dy[i] *= 0.5;
  setParameters(&p);
  solve(&p);
  expect(p_fused(dy, x, kScale, kMean, kVariance, x, 0.5f, dx, dscale,
                 doffset) == 0,
         "fused returns 0");
  for (int i = 0; i < count; ++i)
    compare("fused result", dx[i], p.dx[i] + p.x[i], 0x1p-20 * 8);
  compareChannels("fused grad_scale", &p, dscale, p.dscale);
  compareChannels("fused grad_offset", &p, doffset, p.doffset);
}

static void checkImported(void) {
  GET(imported);
  Problem p = makeProblem(5, 14, 0x1p-24);
  int count = 5 * 3 * 14;
  float *dy = narrow(p.dy, count), *x = narrow(p.x, count);
  float dx[5 * 3 * 14], dscale[3], doffset[3];
  setParameters(&p);
  setStatistics(&p, kVariance, 0x1p-10);
  solve(&p);
  expect(p_imported(x, kScale, kMean, kVariance, dy, dx, dscale, doffset) == 0,
         "imported returns 0");
  for (int i = 0; i < count; ++i)
    compare("imported grad_input", dx[i], p.dx[i], 0x1p-20 * 8);
  compareChannels("imported grad_scale", &p, dscale, p.dscale);
  compareChannels("imported grad_offset", &p, doffset, p.doffset);
}

static void checkDynamic(void) {
  GET(_mlir_ciface_dynamic);
  for (int outer = 0; outer < 5; ++outer) {
    int inner = 2 * outer + 1, count = outer * 3 * inner;
    Problem p = makeProblem(outer, inner, 0x1p-24);
    setParameters(&p);
    solve(&p);
    float *dy = narrow(p.dy, count), *x = narrow(p.x, count),
          *dx = narrow(p.dy, count);
    float dscale[3], doffset[3];
#define DYNAMIC(pointer)                                                       \
  {pointer, pointer, 0, {outer, 3, inner}, {3 * inner, inner, 1}}
    bngrad_memref_f32_3_t m[] = {DYNAMIC(dy), DYNAMIC(x), DYNAMIC(dx)};
    bngrad_memref_f32_1_t v[] = {
        CHANNEL((float *)kScale), CHANNEL((float *)kMean),
        CHANNEL((float *)kVariance), CHANNEL(dscale), CHANNEL(doffset)};
    p__mlir_ciface_dynamic(&m[0], &m[1], &v[0], &v[1], &v[2], &m[2], &v[3],
                           &v[4]);
    for (int i = 0; i < count; ++i)
      compare("dynamic grad_input", dx[i], p.dx[i], 0x1p-20 * 8);
    compareChannels("dynamic grad_scale", &p, dscale, p.dscale);
    compareChannels("dynamic grad_offset", &p, doffset, p.doffset);
  }
}

static void checkStrided(void) {
  GET(_mlir_ciface_strided);
  enum { kOuter = 4, kInner = 6, kCount = kOuter * 3 * kInner };
  Problem p = makeProblem(kOuter, kInner, 0x1p-24);
  setParameters(&p);
  solve(&p);
  /* Channels last, from the second element on; grad_input has stride 2. */
  float dy[kCount + 1], x[kCount + 1], dx[2 * kCount + 1], dscale[3];
  memset(dx, 0, sizeof dx);
  for (int n = 0; n < kOuter; ++n)
    for (int c = 0; c < 3; ++c)
      for (int s = 0; s < kInner; ++s) {
        dy[1 + (n * kInner + s) * 3 + c] = (float)p.dy[at(&p, n, c, s)];
        x[1 + (n * kInner + s) * 3 + c] = (float)p.x[at(&p, n, c, s)];
      }
#define STRIDED(pointer, step)                                                 \
  {0, pointer, 1, {kOuter, 3, kInner}, {step * 3 * kInner, step, step * 3}}
  bngrad_memref_f32_3_t m[] = {STRIDED(dy, 1), STRIDED(x, 1), STRIDED(dx, 2)};
  bngrad_memref_f32_1_t v[] = {CHANNEL((float *)kScale),
                               CHANNEL((float *)kMean),
                               CHANNEL((float *)kVariance), CHANNEL(dscale)};
  p__mlir_ciface_strided(&m[0], &m[1], &v[0], &v[1], &v[2], &m[2], &v[3]);
  for (int n = 0; n < kOuter; ++n)
    for (int c = 0; c < 3; ++c)
      for (int s = 0; s < kInner; ++s) {
        int i = 1 + 2 * ((n * kInner + s) * 3 + c);
        compare("strided grad_input", dx[i], p.dx[at(&p, n, c, s)],
                0x1p-20 * 8);
        compare("strided gap", dx[i - 1], 0, 0);
      }
  compareChannels("strided grad_scale", &p, dscale, p.dscale);
}

static void checkScalars(void) {
  GET(scalars);
  GET(_mlir_ciface_scalars);
  int32_t result = 7;
  /* 0x4080: an f16 of 2.25; 0x4010: a bf16 of 2.25. */
  expect(p_scalars(1, -1, -10, -100, -1000, -10000, 0x4080, 0x4010, 2.25f, 1.0,
                   &result) == 0 &&
             result == 1,
         "scalars");
  expect(p_scalars(0, -1, -10, -100, -1000, -10000, 0x4080, 0x4010, 2.25f, 1.0,
                   &result) == 0 &&
             result == 0,
         "a scalar that is false");
  bngrad_memref_i32_0_t m = {&result, &result, 0};
  p__mlir_ciface_scalars(1, -1, -10, -100, -1000, -10000, 0x4080, 0x4010, 2.25f,
                         1.0, &m);
  expect(result == 1, "scalars beside a descriptor");
}

static void checkLibm(void) {
  GET(libm);
  const float a[4] = {-1.0f, -0.25f, 0.5f, 2.0f};
  float result[4];
  expect(p_libm(a, 0, result, 0) == 0, "an array without elements may be null");
  for (int i = 0; i < 4; ++i)
    compare("libm", result[i], atan2(erfc(a[i]), a[i]), 0x1p-20);
}

int main(int argc, char **argv) {
  (void)argv;
#ifdef BNGRAD_DLOPEN
  library = argc >= 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
  if (!library) {
    printf("FAILED: %s\n", dlerror());
    return 1;
  }
#endif
  checkNchw();
  if (argc == 3) {
    printf("%d failed\n", numFailed);
    return numFailed != 0;
  }
  checkMasked();
  checkDoubles();
  checkHalves();
  checkFused();
  checkImported();
  checkDynamic();
  checkStrided();
  checkScalars();
  checkLibm();
  printf("%d failed\n", numFailed);
  return numFailed != 0;
}
