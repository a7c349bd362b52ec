/* Preloaded: there is no /proc for who asks for it. */

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

int access(const char *path, int mode) {
  if (strncmp(path, "/proc", 5) == 0) {
    errno = ENOENT;
    return -1;
  }
  int (*next)(const char *, int);
  *(void **)&next = dlsym(RTLD_NEXT, "access");
  return next(path, mode);
}
