# The installed package: library, public headers, tool, platform files, and what find_package(stepcast) and pkg-config
# read.
include(CMakePackageConfigHelpers)

set(stepcast_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stepcast")

install(TARGETS stepcast stepcast_isal EXPORT stepcast-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT stepcast-targets NAMESPACE stepcast:: DESTINATION "${stepcast_cmake_dir}")
# What stepcast.h needs and nothing else; tests/architecture holds the list to that.
set(stepcast_public_list "${PROJECT_SOURCE_DIR}/src/stepcast/api/public_headers.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${stepcast_public_list}")
file(STRINGS "${stepcast_public_list}" stepcast_public_headers)
foreach(header IN LISTS stepcast_public_headers)
  cmake_path(GET header PARENT_PATH folder)
  if(header STREQUAL "stepcast/base/version.h")
    set(root "${PROJECT_BINARY_DIR}/generated")
  else()
    set(root "${PROJECT_SOURCE_DIR}/src")
  endif()
  install(FILES "${root}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${folder}")
endforeach()
if(STEPCAST_PORTABLE)
  install(TARGETS stepcast_portable RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
elseif(STEPCAST_BUILD_CLI)
  install(TARGETS stepcast_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tool)
  if(TARGET stepcast_boosting)
    install(TARGETS stepcast_boosting LIBRARY DESTINATION lib/stepcast COMPONENT boosting)  # where the program looks for it
  endif()
endif()
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/platforms"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/stepcast"
  COMPONENT tool
  OPTIONAL
  FILES_MATCHING
  PATTERN "*.json")

# Licence texts of the libraries inside of the program, and its SBOM. Debian has the text of our own licence already.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/stepcast)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/packaging/third_party"
  DESTINATION share/doc/stepcast
  COMPONENT tool
  FILES_MATCHING
  PATTERN "*.txt")
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND)
  set(stepcast_sbom "${PROJECT_BINARY_DIR}/stepcast.spdx.json")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/packaging/release.py" --sbom "${stepcast_sbom}"
                  COMMAND_ERROR_IS_FATAL ANY)
  install(FILES "${stepcast_sbom}" DESTINATION share/doc/stepcast COMPONENT tool)
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/stepcast-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/stepcast-config.cmake" INSTALL_DESTINATION "${stepcast_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/stepcast-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/stepcast-config.cmake" "${PROJECT_BINARY_DIR}/stepcast-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindISAL.cmake"
        DESTINATION "${stepcast_cmake_dir}")

# For programs that are built without CMake. The library is static, so whoever links it links what it needs.
set(stepcast_pc_requires "fmt zlib yaml-cpp")
if(ISAL_FOUND)
  string(APPEND stepcast_pc_requires " libisal")
endif()
file(RELATIVE_PATH stepcast_pc_prefix "/root/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/root")
configure_file("${PROJECT_SOURCE_DIR}/cmake/stepcast.pc.in" "${PROJECT_BINARY_DIR}/stepcast.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/stepcast.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(STEPCAST_BUILD_CLI AND NOT STEPCAST_PORTABLE)
  include(StepcastDebian)
endif()
