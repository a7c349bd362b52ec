# Sets BNGRAD_KERNEL_OBJECT_DIR to the object files of the ready kernels, after it has
# built BNGrad's compiler, which compiles them. Needs LLVM and MLIR; takes minutes.
find_path(BNGRAD_LLVM_CMAKE_DIR llvm/LLVMConfig.cmake
  HINTS ${LLVM_DIR}/.. ENV LLVM_DIR
  PATHS /usr/lib/llvm-22/lib/cmake /usr/local/lib/cmake)
set(missing)
foreach(package LLVM MLIR)
  string(TOLOWER ${package} folder)
  if(NOT EXISTS "${BNGRAD_LLVM_CMAKE_DIR}/${folder}/${package}Config.cmake")
    list(APPEND missing ${package})
  endif()
endforeach()
if(missing)
  list(JOIN missing " and " missing)
  # CMake keeps a line that begins with a space as it is.
  message(FATAL_ERROR " expected ${missing} 22.1 to compile the ready kernels, got none: "
    "install libmlir-22-dev, mlir-22-tools, llvm-22-dev, llvm-22-tools, clang-22, lld-22, liblld-22-dev and "
    "libomp-22-dev, or set BNGRAD_KERNEL_OBJECT_DIR to lib/Runtime/Kernels of a finished build")
endif()

# LLVM's own clang is the faster one.
set(compilers -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER})
get_filename_component(bin ${BNGRAD_LLVM_CMAKE_DIR}/../../bin ABSOLUTE)
if(EXISTS ${bin}/clang++)
  set(compilers -DCMAKE_C_COMPILER=${bin}/clang -DCMAKE_CXX_COMPILER=${bin}/clang++)
endif()
set(build ${CMAKE_CURRENT_BINARY_DIR}/core)
message(STATUS "Compiling the ready kernels in ${build}")
foreach(step configure build)
  if(step STREQUAL "configure")
    set(command -S ${BNGrad_SOURCE_DIR} -B ${build} -G ${CMAKE_GENERATOR} -DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DBNGRAD_INCLUDE_TESTS=OFF
      -DLLVM_DIR=${BNGRAD_LLVM_CMAKE_DIR}/llvm -DMLIR_DIR=${BNGRAD_LLVM_CMAKE_DIR}/mlir ${compilers})
  else()
    set(command --build ${build} --target BNGradKernelObjects BNGradCudaKernelObjects)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} ${command}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  file(WRITE ${build}-${step}.log "${output}")
  if(result)
    string(REGEX MATCH "(CMake Error|error:|FAILED:)[^\n]*(\n+[^\n]+)?(\n+[^\n]+)?(\n+[^\n]+)?" text "${output}")
    string(REGEX REPLACE "[ \n]+" " " text "${text}")
    message(FATAL_ERROR " the ${step} of the ready kernels failed: ${text} (see ${build}-${step}.log)")
  endif()
endforeach()
set(BNGRAD_KERNEL_OBJECT_DIR ${build}/lib/Runtime/Kernels)
