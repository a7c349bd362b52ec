/* A CUDA driver that does nothing but keep the stream of the last launch. */

#define cuLaunchKernelEx countLaunch
#include "../../../bench/native/StubCuda.c"
#undef cuLaunchKernelEx

void *lastStream;

int cuLaunchKernelEx(const void *config, void *function, void **arguments, void **extra) {
  /* After the sizes of the grid and of a block, and the shared memory. */
  memcpy(&lastStream, (const char *)config + 32, sizeof(lastStream));
  return countLaunch(config, function, arguments, extra);
}

/* The number of calls of a function. */
long getNumCalls(const char *name) {
  for (int i = 0; i < kNumFunctions; ++i)
    if (strcmp(names[i], name) == 0)
      return numCalls[i];
  return -1;
}
