# How a target that uses MLIR is built: with the precompiled headers of
# lib/CMakeLists.txt, in a unity build each source with a DEBUG_TYPE of its own,
# and in any folder.
function(bngrad_set_build_properties name)
  set_target_properties(${name} PROPERTIES
    UNITY_BUILD_CODE_AFTER_INCLUDE "#undef DEBUG_TYPE")
  if(TARGET BNGradPrecompiledHeaders)
    target_precompile_headers(${name} REUSE_FROM BNGradPrecompiledHeaders)
  endif()
  # The option of LLVM's CMake has the path without quotes.
  get_property(flags TARGET ${name} PROPERTY LINK_FLAGS)
  set(option "-Wl,-rpath-link,${LLVM_LIBRARY_OUTPUT_INTDIR}")
  string(REPLACE " ${option} " " \"${option}\" " flags "${flags}")
  set_property(TARGET ${name} PROPERTY LINK_FLAGS "${flags}")
endfunction()

# Adds a BNGrad library: exported as BNGrad::<name without BNGrad>, kept out of
# MLIR's own export set and out of libMLIR.
#
#   bngrad_add_library(BNGradX a.cpp ... [DEPENDS target...]
#                      [MLIR_LIBS lib...] [LINK_LIBS lib...])
#
# MLIR_LIBS are libraries inside libMLIR.so; LINK_LIBS are everything else.
function(bngrad_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;MLIR_LIBS;LINK_LIBS" ${ARGN})
  add_mlir_library(${name} ${ARG_UNPARSED_ARGUMENTS}
    DISABLE_INSTALL EXCLUDE_FROM_LIBMLIR
    DEPENDS ${ARG_DEPENDS}
    LINK_LIBS PUBLIC ${ARG_LINK_LIBS})
  mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR_LIBS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  string(REPLACE "BNGrad" "" export_name ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${export_name})
  bngrad_set_build_properties(${name})
  add_library(BNGrad::${export_name} ALIAS ${name})
  set_property(GLOBAL APPEND PROPERTY BNGRAD_LIBRARIES ${name})
endfunction()

# Adds a shared library in build/lib, exported as BNGrad::<name without BNGrad>,
# that has the symbols of the folder's exports.map. Options of visibility do not
# suffice: libstdc++'s templates are visible whatever they say.
#
#   bngrad_add_shared_library(BNGradX a.cpp ...)
function(bngrad_add_shared_library name)
  add_library(${name} SHARED ${ARGN})
  # PROJECT_SOURCE_DIR may be python.
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${BNGrad_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  target_link_options(${name} PRIVATE -Wl,--version-script=${exports})
  string(REPLACE "BNGrad" "" export_name ${name})
  set_target_properties(${name} PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${BNGRAD_SOVERSION}
    EXPORT_NAME ${export_name}
    LINK_DEPENDS ${exports}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  add_library(BNGrad::${export_name} ALIAS ${name})
  set_property(GLOBAL APPEND PROPERTY BNGRAD_LIBRARIES ${name})
endfunction()

# Adds a BNGrad tool in build/bin, which finds libMLIR where it is packaged. With
# STATIC_LLVM it has LLVM and MLIR inside, see BNGradStaticLLVM.cmake.
#
#   bngrad_add_tool(bngrad-x a.cpp ... [STATIC_LLVM] [DEPENDS target...]
#                   [MLIR_LIBS lib...] [LINK_LIBS lib...])
function(bngrad_add_tool name)
  cmake_parse_arguments(ARG "STATIC_LLVM" "" "DEPENDS;MLIR_LIBS;LINK_LIBS" ${ARGN})
  # The dylib comes through mlir_target_link_libraries.
  add_llvm_executable(${name} ${ARG_UNPARSED_ARGUMENTS}
    DEPENDS ${ARG_DEPENDS} DISABLE_LLVM_LINK_LLVM_DYLIB)
  llvm_update_compile_flags(${name})
  bngrad_set_build_properties(${name})
  # fuzz/libfuzzer links the other sources with a main of its own.
  set_source_files_properties(${name}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(ARG_STATIC_LLVM AND BNGRAD_STATIC_LLVM)
    bngrad_link_llvm_statically(${name} ${ARG_LINK_LIBS})
  else()
    target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
    mlir_target_link_libraries(${name} PRIVATE ${ARG_MLIR_LIBS})
  endif()
  set_target_properties(${name} PROPERTIES
    BUILD_RPATH "${LLVM_LIBRARY_DIRS}" INSTALL_RPATH "${LLVM_LIBRARY_DIRS}")
  set_property(GLOBAL APPEND PROPERTY BNGRAD_TOOLS ${name})
endfunction()
