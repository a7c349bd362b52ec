/* Preloaded: fork() holds the lock of pthread_atfork while handlers run, as up to version 2.35 of glibc. */

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

typedef void handler_t(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* pthread_atfork calls it. */
int __register_atfork(handler_t *prepare, handler_t *parent, handler_t *child, void *library) {
  int (*next)(handler_t *, handler_t *, handler_t *, void *);
  *(void **)&next = dlsym(RTLD_NEXT, "__register_atfork");
  pthread_mutex_lock(&lock);
  int result = next(prepare, parent, child, library);
  pthread_mutex_unlock(&lock);
  return result;
}

pid_t fork(void) {
  pid_t (*next)(void);
  *(void **)&next = dlsym(RTLD_NEXT, "fork");
  pthread_mutex_lock(&lock);
  pid_t child = next();
  if (child == 0)
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  else
    pthread_mutex_unlock(&lock);
  return child;
}
