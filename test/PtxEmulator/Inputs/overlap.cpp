// Kernels that are launched while the ones ahead of them may still run: each
// line is a case, and the error that it gives or none.

#include "BNGrad/Runtime/Cuda.h"

#include <cstdio>
#include <cstring>
#include <string>

static std::string message;

static void keep(const char *line, void *) { message = line; }

/// Kernels of 64 threads. WAIT, EARLY and LATE are replaced by
/// griddepcontrol.wait or nothing.
static const char *kKernels = R"(
.version 8.0
.target sm_90
.address_size 64
SYMBOL
.visible .entry set(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  griddepcontrol.wait;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 4;
  ld.param.u64 %rd2, [out];
  add.s64 %rd3, %rd2, %rd1;
  st.global.u32 [%rd3], %r1;
  griddepcontrol.launch_dependents;
  ret;
}
.visible .entry copy(.param .u64 out, .param .u64 in)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  EARLY
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 4;
  ld.param.u64 %rd2, [in];
  add.s64 %rd3, %rd2, %rd1;
  ld.global.u32 %r2, [%rd3];
  MIDDLE
  ld.param.u64 %rd4, [out];
  add.s64 %rd5, %rd4, %rd1;
  st.global.u32 [%rd5], %r2;
  LATE
  ret;
}
.visible .entry copy_async(.param .u64 out, .param .u64 in)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .shared .align 16 .b8 buffer[16];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 3;
  @%p1 bra END;
  EARLY
  ld.param.u64 %rd1, [in];
  mov.u32 %r2, buffer;
  cp.async.ca.shared.global [%r2], [%rd1], 16;
  MIDDLE
  cp.async.wait_all;
  ld.shared.u32 %r3, [%r2];
  ld.param.u64 %rd2, [out];
  st.global.u32 [%rd2], %r3;
END:
  ret;
}
// Thread 0 waits for all.
.visible .entry one_waits(.param .u64 out, .param .u64 in)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra TOGETHER;
  griddepcontrol.wait;
TOGETHER:
  MIDDLE
  mul.wide.u32 %rd1, %r1, 4;
  ld.param.u64 %rd2, [in];
  add.s64 %rd3, %rd2, %rd1;
  ld.global.u32 %r2, [%rd3];
  ld.param.u64 %rd4, [out];
  add.s64 %rd5, %rd4, %rd1;
  st.global.u32 [%rd5], %r2;
  ret;
}
)";

static void replace(std::string &text, const std::string &from,
                    const std::string &to) {
  for (size_t at; (at = text.find(from)) != std::string::npos;)
    text.replace(at, from.size(), to);
}

/// The kernels with an instruction at one of the places.
struct Kernels {
  Kernels(const std::string &place,
          const std::string &instruction = "griddepcontrol.wait;",
          bool canOverlap = true) {
    text = kKernels;
    replace(text, place, instruction);
    for (const char *other : {"EARLY", "MIDDLE", "LATE"})
      replace(text, other, "");
    replace(text, "SYMBOL",
            canOverlap ? ".visible .global .align 1 .b8 "
                         "" BNGRAD_CUDA_KERNELS_WAIT_SYMBOL " = 1;"
                       : "");
    module = mgpuModuleLoadJIT(text.data(), 3);
  }
  ~Kernels() { mgpuModuleUnload(module); }
  void run(void *stream, const char *name, void *out, void *in = nullptr) {
    void *params[] = {&out, &in};
    mgpuLaunchKernel(mgpuModuleGetFunction(module, name), 1, 1, 1, 64, 1, 1, 0,
                     stream, params, nullptr, in ? 2 : 1);
  }
  std::string text;
  void *module;
};

/// Buffers of a case, and the errors since the last.
struct Case {
  explicit Case(const char *name) : name(name) {
    for (void **buffer : {&a, &b, &c})
      *buffer = mgpuMemAlloc(256, stream, 0);
    for (void *buffer : {a, b, c})
      mgpuMemset32(buffer, 7, 64, stream);
    message.clear();
  }
  ~Case() {
    std::printf("%s: %s\n", name, message.empty() ? "fine" : message.c_str());
    bngradCudaTakeStatus();
    for (void *buffer : {a, b, c})
      mgpuMemFree(buffer, stream);
    mgpuStreamDestroy(stream);
  }
  const char *name;
  void *stream = mgpuStreamCreate();
  void *a, *b, *c;
};

static void testWaits() {
  Kernels first("EARLY"), late("MIDDLE"), last("LATE"), never("EARLY", "");
  {
    Case it("wait first");
    first.run(it.stream, "set", it.a);
    first.run(it.stream, "copy", it.b, it.a);
  }
  {
    Case it("load before the wait");
    first.run(it.stream, "set", it.a);
    late.run(it.stream, "copy", it.b, it.a);
  }
  {
    Case it("load of other data before the wait");
    first.run(it.stream, "set", it.a);
    late.run(it.stream, "copy", it.a, it.b);
  }
  {
    Case it("store over what was read");
    first.run(it.stream, "copy", it.b, it.a);
    last.run(it.stream, "copy", it.a, it.c);
  }
  {
    Case it("store over what was written");
    first.run(it.stream, "set", it.a);
    last.run(it.stream, "copy", it.a, it.c);
  }
  {
    Case it("load of what is read");
    first.run(it.stream, "copy", it.b, it.a);
    last.run(it.stream, "copy", it.c, it.a);
  }
  {
    Case it("no wait");
    first.run(it.stream, "set", it.a);
    never.run(it.stream, "copy", it.c, it.b);
  }
  {
    Case it("two kernels ahead");
    first.run(it.stream, "set", it.a);
    first.run(it.stream, "copy", it.c, it.b);
    late.run(it.stream, "copy", it.b, it.a);
  }
}

static void testThreads() {
  Kernels first("EARLY"), late("MIDDLE");
  Kernels barrier("MIDDLE", "bar.sync 0;"), none("MIDDLE", "");
  {
    Case it("asynchronous copy after the wait");
    first.run(it.stream, "set", it.a);
    first.run(it.stream, "copy_async", it.b, it.a);
  }
  {
    Case it("asynchronous copy before the wait");
    first.run(it.stream, "set", it.a);
    late.run(it.stream, "copy_async", it.b, it.a);
  }
  {
    Case it("one thread waits, then a barrier");
    first.run(it.stream, "set", it.a);
    barrier.run(it.stream, "one_waits", it.b, it.a);
  }
  {
    Case it("one thread waits");
    first.run(it.stream, "set", it.a);
    none.run(it.stream, "one_waits", it.b, it.a);
  }
}

static void testStreams() {
  Kernels first("EARLY"), late("MIDDLE"), never("EARLY", "");
  Kernels serial("EARLY", "", /*canOverlap=*/false);
  {
    Case it("launch without overlap");
    first.run(it.stream, "set", it.a);
    serial.run(it.stream, "copy", it.b, it.a);
  }
  {
    Case it("complete at a launch without overlap");
    first.run(it.stream, "set", it.a);
    first.run(it.stream, "copy", it.b, it.a);
    serial.run(it.stream, "set", it.b);
    late.run(it.stream, "copy", it.c, it.a);
  }
  {
    Case it("not complete before it is launched");
    serial.run(it.stream, "set", it.a);
    late.run(it.stream, "copy", it.b, it.a);
  }
  {
    Case it("complete at a wait of the host");
    first.run(it.stream, "set", it.a);
    mgpuStreamSynchronize(it.stream);
    never.run(it.stream, "copy", it.b, it.a);
  }
  {
    Case it("complete at another operation");
    first.run(it.stream, "set", it.a);
    mgpuMemset32(it.c, 1, 64, it.stream);
    never.run(it.stream, "copy", it.b, it.a);
  }
  {
    Case it("another stream");
    void *other = mgpuStreamCreate();
    first.run(other, "set", it.a);
    late.run(it.stream, "copy", it.b, it.a);
    mgpuStreamDestroy(other);
  }
}

int main() {
  bngradCudaSetErrorHandler(keep, nullptr);
  testWaits();
  testThreads();
  testStreams();
}
