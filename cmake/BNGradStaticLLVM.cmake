# Linking with LLVM and MLIR inside. libMLIR.so and libLLVM.so take longer to
# load than a gradient takes to optimize.
option(BNGRAD_STATIC_LLVM "Link bngrad-compile and libBNGradCompiler.so with the archives of LLVM and MLIR" ON)

# Other linkers take a minute, and the archives have no sanitizer's checks, so
# that containers of both sides disagree.
find_program(BNGRAD_LLD NAMES ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
if(BNGRAD_STATIC_LLVM AND (LLVM_USE_SANITIZER OR BNGRAD_BUILD_FUZZERS OR NOT BNGRAD_LLD
    OR NOT EXISTS ${LLVM_LIBRARY_DIRS}/libMLIRIR.a))
  set(BNGRAD_STATIC_LLVM OFF)
endif()

# Appends `target` and the libraries of BNGrad that it links to the list `result`.
function(bngrad_collect_libraries target result)
  if(NOT target MATCHES "^BNGrad" OR target IN_LIST ${result})
    return()
  endif()
  set(libraries ${${result}} ${target})
  get_target_property(dependencies ${target} INTERFACE_LINK_LIBRARIES)
  foreach(dependency IN LISTS dependencies)
    bngrad_collect_libraries("${dependency}" libraries)
  endforeach()
  set(${result} ${libraries} PARENT_SCOPE)
endfunction()

# Finds the archives of LLVM and MLIR for `code_generators`, such as X86. The
# functions that register LLVM's other targets are empty, in the C file `source`.
function(bngrad_find_llvm_archives code_generators source result)
  set(others ${LLVM_TARGETS_TO_BUILD})
  list(REMOVE_ITEM others ${code_generators})
  set(empty_functions)
  foreach(other IN LISTS others)
    foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser Disassembler)
      string(APPEND empty_functions "void LLVMInitialize${other}${part}(void) {}\n")
    endforeach()
  endforeach()
  configure_file(${BNGrad_SOURCE_DIR}/cmake/StaticLLVM.c.in ${source} @ONLY)

  file(GLOB archives ${LLVM_LIBRARY_DIRS}/libMLIR*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)
  list(JOIN others "|" pattern)
  list(FILTER archives EXCLUDE REGEX "/libLLVM(${pattern})[A-Z][A-Za-z]*\\.a$")
  list(FILTER archives EXCLUDE REGEX "/libMLIRCAPI")
  set(${result} ${archives} PARENT_SCOPE)
endfunction()

# Links `target` with static libraries of BNGrad and with all of LLVM and MLIR
# that they need. Code is generated for the targets of BNGrad.
#
#   bngrad_link_llvm_statically(target BNGradX...)
function(bngrad_link_llvm_statically target)
  set(own)
  foreach(library IN LISTS ARGN)
    bngrad_collect_libraries(${library} own)
  endforeach()
  set(unused ${CMAKE_CURRENT_BINARY_DIR}/StaticLLVM.c)
  bngrad_find_llvm_archives("AArch64;NVPTX;X86" ${unused} archives)
  # Not a source of the target, whose objects python/compiler links for fewer
  # code generators.
  add_library(${target}-unused STATIC ${unused})
  foreach(library IN LISTS own)
    target_include_directories(${target} PRIVATE
      $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      target_link_libraries(${target} PRIVATE $<TARGET_FILE:${library}>)
    endif()
  endforeach()
  add_dependencies(${target} ${own})
  target_link_libraries(${target} PRIVATE ${target}-unused ${archives} ZLIB::ZLIB zstd ${CMAKE_DL_LIBS})
  # GCC finds the lld of this LLVM through -B.
  target_link_options(${target} PRIVATE -fuse-ld=lld -B${LLVM_TOOLS_BINARY_DIR}
    -Wl,--gc-sections,--icf=all)
endfunction()

# Writes the CMake file `file`, from which python/compiler links `target` again:
# its objects, the static libraries `BNGradX...` with those that they need, and
# where LLVM is.
#
#   bngrad_describe_link(file target BNGradX...)
function(bngrad_describe_link file target)
  set(own)
  foreach(library IN LISTS ARGN)
    bngrad_collect_libraries(${library} own)
  endforeach()
  set(archives)
  foreach(library IN LISTS own)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND archives $<TARGET_FILE:${library}>)
    endif()
  endforeach()
  file(GENERATE OUTPUT ${file} CONTENT
"set(BNGRAD_OBJECTS \"$<TARGET_OBJECTS:${target}>\")
set(BNGRAD_ARCHIVES \"${archives}\")
set(LLVM_LIBRARY_DIRS \"${LLVM_LIBRARY_DIRS}\")
set(LLVM_TOOLS_BINARY_DIR \"${LLVM_TOOLS_BINARY_DIR}\")
set(LLVM_TARGETS_TO_BUILD \"${LLVM_TARGETS_TO_BUILD}\")
")
endfunction()
