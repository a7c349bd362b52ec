/* A compiler without allocations: gives the kernel of the file STORED, of a cache. */

#include "CompilerLibrary.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int32_t bngradCompile(const bngradCompileRequest_t *request) {
  static char bytes[1 << 20];
  int file = open(getenv("STORED"), O_RDONLY);
  ssize_t size = file < 0 ? -1 : read(file, bytes, sizeof bytes);
  uint64_t sizes[2]; /* of the text and of the kernel, after 8 bytes */
  close(file);
  if (size < 32 || size == sizeof bytes)
    return 1;
  memcpy(sizes, bytes + 8, sizeof sizes);
  request->take(request->context, bytes + 32 + sizes[0], sizes[1]);
  return 0;
}
