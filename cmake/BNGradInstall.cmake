# Installs headers, libraries and tools, and a package for find_package(BNGrad),
# from the build tree as well as from the install tree.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY BNGRAD_LIBRARIES)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/BNGrad)

# Components: kernels, runtime, openmpi, mpich, tools, and development, which has the links that
# linkers follow.
foreach(library IN LISTS libraries)
  set(component runtime)
  if(library STREQUAL BNGradKernels)
    set(component kernels)
  elseif(library MATCHES "^BNGrad(CompilerLibrary|CudaEmulator|CudaEmulatorKernels|Plugin)$")
    set(component tools)
  elseif(library MATCHES "^BNGradMPI-(.*)$")
    set(component ${CMAKE_MATCH_1})
  endif()
  install(TARGETS ${library} EXPORT BNGradTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
      NAMELINK_COMPONENT development)
endforeach()
get_property(tools GLOBAL PROPERTY BNGRAD_TOOLS)
install(TARGETS ${tools}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/BNGrad
  ${PROJECT_BINARY_DIR}/include/BNGrad
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def" PATTERN "*.inc"
  PATTERN "CMakeFiles" EXCLUDE)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT kernels)

install(EXPORT BNGradTargets NAMESPACE BNGrad:: DESTINATION ${package_dir}
  COMPONENT development)
export(EXPORT BNGradTargets NAMESPACE BNGrad::
  FILE ${PROJECT_BINARY_DIR}/lib/cmake/BNGrad/BNGradTargets.cmake)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/BNGradConfig.cmake.in
  ${PROJECT_BINARY_DIR}/lib/cmake/BNGrad/BNGradConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/lib/cmake/BNGrad/BNGradConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/lib/cmake/BNGrad/BNGradConfig.cmake
  ${PROJECT_BINARY_DIR}/lib/cmake/BNGrad/BNGradConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)

# pkg-config, for users of the C library.
if(BNGRAD_BUILD_KERNELS)
  file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/bngrad.pc.in
    ${PROJECT_BINARY_DIR}/lib/pkgconfig/bngrad.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/lib/pkgconfig/bngrad.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()
include(BNGradPackages)
