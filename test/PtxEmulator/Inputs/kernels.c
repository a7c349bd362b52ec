// The source of kernels.sm_75.ptx and kernels.sm_90.ptx:
//   clang --target=nvptx64-nvidia-cuda -march=sm_90 -O2 -ffp-contract=fast
//     -S kernels.c
// Each is checked by check_kernels.py.

#define KERNEL __attribute__((nvptx_kernel))
#define SHARED __attribute__((address_space(3)))
#define GLOBAL __attribute__((address_space(1)))

static int tid(void) { return __nvvm_read_ptx_sreg_tid_x(); }
static int ntid(void) { return __nvvm_read_ptx_sreg_ntid_x(); }
static int ctaid(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }

static float shuffleDown(float value, int offset) {
  union {
    float f;
    int i;
  } bits = {value};
  bits.i = __nvvm_shfl_sync_down_i32(-1, bits.i, offset, 31);
  return bits.f;
}

static SHARED float partial[32];

// Each block sums a row of `n` numbers.
KERNEL void block_sum(const float *x, float *out, int n) {
  float sum = 0;
  for (int i = tid(); i < n; i += ntid())
    sum += x[ctaid() * n + i];
  for (int offset = 16; offset; offset /= 2)
    sum += shuffleDown(sum, offset);
  if (tid() % 32 == 0)
    partial[tid() / 32] = sum;
  __syncthreads();
  if (tid() >= 32)
    return;
  sum = tid() < ntid() / 32 ? partial[tid()] : 0;
  for (int offset = 16; offset; offset /= 2)
    sum += shuffleDown(sum, offset);
  if (tid() == 0)
    out[ctaid()] = sum;
}

// exp and tanh, computed from the hardware's power of two.
KERNEL void functions(const float *x, float *out, int n) {
  int i = ctaid() * ntid() + tid();
  if (i >= n)
    return;
  float e = __nvvm_ex2_approx_f(x[i] * 1.44269504f);
  out[2 * i] = e;
  out[2 * i + 1] = (e * e - 1) / (e * e + 1);
}

KERNEL void doubles(const double *x, double *out, int n) {
  int i = ctaid() * ntid() + tid();
  if (i >= n)
    return;
  double v = x[i];
  out[2 * i] = __nvvm_sqrt_rn_d(v * v + 1) / (v * v + 2);
  out[2 * i + 1] = v < 0 ? -(long long)(v * 1000) : (long long)(v * 1000);
}

KERNEL void halves(const _Float16 *x, _Float16 *out, int n) {
  int i = ctaid() * ntid() + tid();
  if (i < n)
    out[i] = x[i] * (_Float16)3 + (_Float16)0.25;
}

KERNEL void bfloats(const __bf16 *x, __bf16 *out, int n) {
  int i = ctaid() * ntid() + tid();
  if (i < n)
    out[i] = (__bf16)((float)x[i] * 3.0f + 1.0f);
}

// Lanes that end at different times.
KERNEL void collatz(int *out) {
  int value = tid() + 1, steps = 0;
  while (value != 1) {
    value = value & 1 ? 3 * value + 1 : value / 2;
    ++steps;
  }
  out[tid()] = steps;
}

static SHARED unsigned counts[16];

// The number of elements with each remainder.
KERNEL void histogram(const unsigned *x, unsigned *out, int n) {
  if (tid() < 16)
    counts[tid()] = 0;
  __syncthreads();
  for (int i = ctaid() * ntid() + tid(); i < n;
       i += __nvvm_read_ptx_sreg_nctaid_x() * ntid())
    __nvvm_atom_add_gen_i((int *)(unsigned *)&counts[x[i] % 16], 1);
  __syncthreads();
  if (tid() < 16)
    __nvvm_atom_add_gen_i((int *)&out[tid()], counts[tid()]);
}

// Branches by a table.
KERNEL void choose(const int *x, int *out) {
  int value = x[tid()];
  switch (value) {
  case 0:
    value = 7;
    break;
  case 1:
    value = value * 5 + tid();
    break;
  case 2:
    value = -value;
    break;
  case 3:
    value = tid() * tid();
    break;
  case 4:
    value = tid() % 3;
    break;
  case 5:
    value = 1000 / (tid() + 1);
    break;
  }
  out[tid()] = value;
}
