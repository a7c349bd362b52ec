// A host program against the functions of Cuda.h: choice of an image, the
// status of a thread, copies, registered memory, traffic, the error handler.

#include "BNGrad/Runtime/Cuda.h"
#include "PtxEmulator/PtxEmulator.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

static void print(const char *message, void *user) {
  std::printf("%s: %s\n", static_cast<const char *>(user), message);
}

static const char *kSm75 = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry number(.param .u64 out)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1], 75;
  ret;
}
)";

static const char *kSm90 = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry number(.param .u64 out)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1], 90;
  ret;
}
)";

static const char *kShared = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry large(.param .u64 out)
.maxntid 512, 1, 1
{
  .shared .align 4 .b8 buffer[16384];
  ret;
}
)";

/// Counts its calls, and detects concurrent calls.
struct Handler {
  std::atomic<int> inside{0}, calls{0};
  std::atomic<bool> overlaps{false};

  static void run(const char *, void *user) {
    auto *handler = static_cast<Handler *>(user);
    if (handler->inside++ != 0)
      handler->overlaps = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++handler->calls;
    --handler->inside;
  }
  /// Removes itself, as a handler may.
  static void runOnce(const char *message, void *user) {
    run(message, user);
    bngradCudaSetErrorHandler(nullptr, nullptr);
  }
};

static void testHandler() {
  Handler handler;
  bngradCudaSetErrorHandler(Handler::run, &handler);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 8; ++j) {
        mgpuEventRecord(nullptr, nullptr);
        bngradCudaTakeStatus();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  std::printf("handler: %d calls, at once: %d\n", int(handler.calls),
              bool(handler.overlaps));
  bngradCudaSetErrorHandler(Handler::runOnce, &handler);
  mgpuEventRecord(nullptr, nullptr);
  std::printf("took itself away after %d\n", int(handler.calls));
  bngradCudaTakeStatus();
}

static void launch(void *function, void *out) {
  void *params[] = {&out};
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr, 1);
}

/// The limits of a device, and a kernel of which 4 blocks fit a multiprocessor.
static void testResidency() {
  std::printf("slots: %d, %d, ", bngradCudaGetClusterSlots(8, 1),
              bngradCudaGetClusterSlots(16, 2));
  std::printf("status %d\n", bngradCudaTakeStatus());
  bngradCudaGetClusterSlots(17, 1);
  bngradCudaTakeStatus();

  void *module = mgpuModuleLoadJIT(const_cast<char *>(kShared), 3);
  void *function = mgpuModuleGetFunction(module, "large");
  ptxEmulatorKernel_t kernel;
  ptxEmulatorGetKernel(function, &kernel);
  std::printf("%d bytes, %d threads, status %d\n",
              int(kernel.static_shared_bytes), int(kernel.max_threads),
              bngradCudaTakeStatus());
  for (uint32_t percent : {30, 29}) {
    ptxEmulatorSetCarveout(function, percent);
    void *out = nullptr;
    void *params[] = {&out};
    mgpuLaunchKernel(function, 1, 1, 1, 512, 1, 1, 0, nullptr, params, nullptr,
                     1);
    std::printf("carve-out of %u: status %d\n", percent,
                bngradCudaTakeStatus());
  }
  mgpuModuleUnload(module);
}

int main() {
  char name[] = "handler";
  bngradCudaSetErrorHandler(print, name);
  bngradCudaImage_t images[] = {
      {"sm_75", BNGRAD_CUDA_IMAGE_PTX, 3, std::strlen(kSm75), kSm75},
      {"sm_90", BNGRAD_CUDA_IMAGE_PTX, 3, std::strlen(kSm90), kSm90},
      {"sm_90", BNGRAD_CUDA_IMAGE_BINARY, 0, 4,
       "\x7f"
       "ELF"}};
  void *module = bngradCudaModuleLoad(images, 3);
  void *function = mgpuModuleGetFunction(module, "number");

  void *stream = mgpuStreamCreate();
  void *device = mgpuMemAlloc(16, stream, 0);
  ptxEmulatorNameBuffer(device, "result");
  launch(function, device);
  uint32_t value[4] = {};
  mgpuMemcpy(value, device, 4, stream);
  mgpuStreamSynchronize(stream);
  std::printf("chip %u, status %d\n", value[0], bngradCudaTakeStatus());

  ptxEmulatorTraffic_t traffic[4];
  size_t count = ptxEmulatorGetTraffic(traffic, 4);
  std::printf("%zu entry: %s of %s stores %d bytes in %d sector\n", count,
              traffic[0].buffer, traffic[0].kernel, int(traffic[0].store_bytes),
              int(traffic[0].store_sectors));

  // Host memory, registered as a 1x2 memref with an offset of 2.
  struct {
    uint32_t *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } descriptor = {value, value, 2, {1, 2}, {2, 1}};
  mgpuMemHostRegisterMemRef(2, &descriptor, 4);
  launch(function, value + 2);
  std::printf("registered %u, status %d\n", value[2], bngradCudaTakeStatus());
  launch(function, value);
  int32_t first = bngradCudaTakeStatus();
  std::printf("status %d, then %d\n", first, bngradCudaTakeStatus());
  mgpuMemHostUnregisterMemRef(2, &descriptor, 4);

  // After an error, calls have no effect until the status is taken.
  mgpuMemcpy(value, device, 17, stream);
  mgpuMemset32(device, 7, 4, stream);
  void *none = mgpuMemAlloc(16, stream, 0);
  std::printf("nothing allocated: %d\n", none == nullptr);
  bngradCudaTakeStatus();
  mgpuMemcpy(value, device, 4, stream);
  mgpuStreamSynchronize(stream);
  std::printf("still %u\n", value[0]);
  mgpuMemset16(device, 0x101, 2, stream);
  mgpuMemcpy(value, device, 4, stream);
  std::printf("before the wait %u, ", value[0]);
  mgpuMemcpy(device, value, 4, stream);
  std::printf("readers wait for them: %x, ", value[0]);
  mgpuMemset16(device, 0x202, 2, stream);
  mgpuMemcpy(value, device, 4, stream);
  mgpuStreamSynchronize(stream);
  std::printf("set to %x\n", value[0]);
  void *forgotten = mgpuStreamCreate();
  mgpuMemcpy(value, device, 4, forgotten);
  mgpuStreamDestroy(forgotten);
  bngradCudaTakeStatus();

  mgpuMemFree(device, stream);
  launch(function, device);
  bngradCudaTakeStatus();
  mgpuMemFree(device, stream);
  bngradCudaTakeStatus();

  void *event = mgpuEventCreate();
  mgpuEventRecord(event, stream);
  mgpuStreamWaitEvent(stream, event);
  mgpuEventSynchronize(event);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
  std::printf("events: %d\n", bngradCudaTakeStatus());
  mgpuStreamSynchronize(stream);
  bngradCudaTakeStatus();

  int place;
  bngradCudaSetStream(&place);
  std::printf("the caller's stream: %d", mgpuStreamCreate() == &place);
  mgpuMemFree(mgpuMemAlloc(16, &place, 0), &place);
  mgpuStreamSynchronize(&place);
  mgpuStreamDestroy(&place);
  bngradCudaSetStream(nullptr);
  std::printf(" %d", mgpuStreamCreate() == nullptr);
  bngradCudaResetStream();
  std::printf(", status %d\n", bngradCudaTakeStatus());
  mgpuStreamSynchronize(&place);
  bngradCudaTakeStatus();

  void *binary = mgpuModuleLoad(const_cast<char *>("\x7f"
                                                   "ELF"),
                                4);
  launch(mgpuModuleGetFunction(binary, "number"), device);
  mgpuModuleUnload(binary);
  mgpuModuleUnload(module);
  bngradCudaTakeStatus();
  testResidency();
  testHandler();
  return 0;
}
