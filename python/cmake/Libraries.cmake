# The libraries of the package, none of which depends on Python: the C library with its
# ready kernels, the same for GPUs, and the libraries for PyTorch and JAX.
#
#   BNGRAD_KERNEL_OBJECT_DIR  object files of the ready kernels; those for GPUs are in
#                             the folder CudaKernels beside it; by default, from the
#                             environment variable of that name or a finished build in
#                             the folder of the sources; otherwise they are compiled
#   BNGRAD_BUILTINS           archive with the CPU's features, for a compiler that has
#                             none, such as zig
#   BNGRAD_PYTHON_TORCH       whether bngrad.torch is built; by default, if
#                             BNGRAD_TORCH_INCLUDE has PyTorch's headers
#   BNGRAD_PYTHON_JAX         whether bngrad.jax is built; by default, if
#                             BNGRAD_JAX_INCLUDE has JAX's headers
set(kernels "$ENV{BNGRAD_KERNEL_OBJECT_DIR}")
set(build ${BNGrad_SOURCE_DIR}/build/lib)
if(NOT kernels AND EXISTS ${build}/libBNGradKernels.so.${BNGRAD_SOVERSION})
  set(kernels ${build}/Runtime/Kernels)
endif()
set(BNGRAD_KERNEL_OBJECT_DIR "${kernels}" CACHE PATH
  "Folder of the ready kernels' object files; empty: they are compiled")
set(BNGRAD_BUILTINS "" CACHE FILEPATH "Archive with the CPU's features")
if(NOT BNGRAD_KERNEL_OBJECT_DIR)
  include(cmake/CompileKernels.cmake)
endif()

# As they are in the main build.
include(${BNGrad_SOURCE_DIR}/cmake/BNGradLibrary.cmake)
add_subdirectory(${BNGrad_SOURCE_DIR}/lib/Runtime/Kernels lib/Kernels)
add_subdirectory(${BNGrad_SOURCE_DIR}/lib/Runtime/API lib/API)
add_subdirectory(${BNGrad_SOURCE_DIR}/lib/Runtime/Cuda lib/Cuda)
add_subdirectory(${BNGrad_SOURCE_DIR}/lib/Runtime/CudaKernels lib/CudaKernels)
set(libraries BNGradKernels BNGradRuntime BNGradCudaRuntime)
if(TARGET BNGradCudaKernels)
  list(APPEND libraries BNGradCudaKernels)
endif()
if(BNGRAD_BUILTINS)
  target_link_libraries(BNGradKernels PRIVATE ${BNGRAD_BUILTINS})
endif()
# Wheels have no symbolic links.
set_target_properties(${libraries} PROPERTIES
  VERSION ${BNGRAD_SOVERSION})
# It opens libBNGradCompiler.so of the package bngrad_compiler, if that is there.
set_target_properties(BNGradRuntime PROPERTIES
  INSTALL_RPATH "$ORIGIN;$ORIGIN/../../bngrad_compiler/_lib")
install(TARGETS ${libraries}
  LIBRARY DESTINATION ${BNGRAD_PYTHON_LIBRARY_DIR}
  NAMELINK_SKIP)

foreach(framework torch jax)
  string(TOUPPER ${framework} name)
  set(has_headers OFF)
  if(BNGRAD_${name}_INCLUDE)
    set(has_headers ON)
  endif()
  option(BNGRAD_PYTHON_${name} "Build bngrad.${framework}" ${has_headers})
  message(STATUS "bngrad.${framework}: ${BNGRAD_PYTHON_${name}}")
  if(BNGRAD_PYTHON_${name})
    add_subdirectory(src/${framework})
  endif()
endforeach()
