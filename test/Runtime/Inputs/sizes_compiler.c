/* A compiler that compiles once, and then returns the same kernel. At the end it prints how often it was called for a
 * module of static sizes, and of dynamic ones. */

#include "CompilerLibrary.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int num_static, num_dynamic;
static char *image;
static size_t image_size;

static void print(void) { printf("%d static, %d dynamic\n", num_static, num_dynamic); }

static void keep(void *context, const char *compiled, size_t size) {
  (void)context;
  image = malloc(image_size = size);
  memcpy(image, compiled, size);
}

int32_t bngradCompile(const bngradCompileRequest_t *request) {
  if (num_static + num_dynamic == 0) {
    void *library = dlopen(getenv("REAL_COMPILER"), RTLD_NOW);
    bngradCompileFunction_t compile;
    *(void **)&compile = dlsym(library, "bngradCompile");
    bngradCompileRequest_t copy = *request;
    copy.take = keep;
    if (compile(&copy))
      return 1;
    atexit(print);
  }
  ++*(memchr(request->text, '?', request->text_size) ? &num_dynamic : &num_static);
  request->take(request->context, image, image_size);
  return 0;
}
