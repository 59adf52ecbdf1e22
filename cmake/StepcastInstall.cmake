# The installed package: library, public headers, tool, platform files, and what find_package(stepcast) reads.
include(CMakePackageConfigHelpers)

set(stepcast_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stepcast")

install(TARGETS stepcast stepcast_isal EXPORT stepcast-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT stepcast-targets NAMESPACE stepcast:: DESTINATION "${stepcast_cmake_dir}")
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/src/stepcast"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "detail" EXCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/generated/stepcast/base/version.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stepcast/base")
if(STEPCAST_PORTABLE)
  install(TARGETS stepcast_portable RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
elseif(STEPCAST_BUILD_CLI)
  install(TARGETS stepcast_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  if(TARGET stepcast_boosting)
    install(TARGETS stepcast_boosting LIBRARY DESTINATION lib/stepcast)  # where the program looks for it
  endif()
endif()
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/platforms"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/stepcast"
  OPTIONAL
  FILES_MATCHING
  PATTERN "*.json")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/stepcast-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/stepcast-config.cmake" INSTALL_DESTINATION "${stepcast_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/stepcast-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/stepcast-config.cmake" "${PROJECT_BINARY_DIR}/stepcast-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindISAL.cmake"
        DESTINATION "${stepcast_cmake_dir}")
