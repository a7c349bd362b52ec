# Installs headers, libraries and tools, and a package for find_package(BNGrad),
# from the build tree as well as from the install tree.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY BNGRAD_LIBRARIES)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/BNGrad)

install(TARGETS ${libraries} EXPORT BNGradTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_property(tools GLOBAL PROPERTY BNGRAD_TOOLS)
install(TARGETS ${tools}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/BNGrad
  ${PROJECT_BINARY_DIR}/include/BNGrad
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc"
  PATTERN "CMakeFiles" EXCLUDE)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT BNGradTargets NAMESPACE BNGrad:: DESTINATION ${package_dir})
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
  DESTINATION ${package_dir})
