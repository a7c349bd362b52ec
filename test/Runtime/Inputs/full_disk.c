/* Preloaded, it makes the folder FULL_DISK one of a full disk: writing to its files fails. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Both may have links. */
static int is_full(const char *path) {
  char folder[PATH_MAX], real[PATH_MAX];
  const char *value = getenv("FULL_DISK");
  if (!value || !realpath(value, folder))
    return 0;
  return strncmp(realpath(path, real) ? real : path, folder, strlen(folder)) == 0;
}

ssize_t write(int file, const void *data, size_t size) {
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof path - 1) > 0 && is_full(path)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_write, file, data, size);
}
