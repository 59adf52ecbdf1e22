# `cmake --build build/release --target deb`: a Debian package of the program, its platforms, manual page and completions.
#
# SOURCE_DATE_EPOCH is the time of its files. Trees of XGBoost (lib/stepcast) are left out: the package needs no library of that size.
find_program(STEPCAST_CPACK cpack)
find_program(STEPCAST_GZIP gzip)
mark_as_advanced(STEPCAST_CPACK STEPCAST_GZIP)
if(NOT STEPCAST_CPACK OR NOT STEPCAST_GZIP)
  return()
endif()
set(files "${PROJECT_BINARY_DIR}/debian")
set(stepcast_package_release 0stepcast1)  # not one of the distribution's
string(TIMESTAMP stepcast_package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file("${PROJECT_SOURCE_DIR}/packaging/debian/changelog.in" "${files}/changelog.Debian" @ONLY)
add_custom_target(
  stepcast_debian_files
  COMMAND stepcast_cli completion man > stepcast.1
  COMMAND stepcast_cli completion bash > stepcast
  COMMAND stepcast_cli completion zsh > _stepcast
  COMMAND stepcast_cli completion fish > stepcast.fish
  COMMAND "${STEPCAST_GZIP}" -9nkf stepcast.1 changelog.Debian
  COMMAND "${STEPCAST_GZIP}" -9nc "${PROJECT_SOURCE_DIR}/CHANGELOG.md" > changelog.gz
  WORKING_DIRECTORY "${files}"
  VERBATIM)
add_custom_target(deb COMMAND "${STEPCAST_CPACK}" -G DEB --config "${PROJECT_BINARY_DIR}/CPackConfig.cmake"
                  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}")
add_dependencies(deb stepcast_debian_files stepcast_cli)
# Only into the package: they are not there before that target is built.
function(stepcast_debian_file file folder)
  install(FILES "${file}" DESTINATION "share/${folder}" COMPONENT debian EXCLUDE_FROM_ALL ${ARGN})
endfunction()
stepcast_debian_file("${files}/stepcast.1.gz" man/man1)
stepcast_debian_file("${files}/stepcast" bash-completion/completions)
stepcast_debian_file("${files}/_stepcast" zsh/vendor-completions)
stepcast_debian_file("${files}/stepcast.fish" fish/vendor_completions.d)
stepcast_debian_file("${files}/changelog.Debian.gz" doc/stepcast)
stepcast_debian_file("${files}/changelog.gz" doc/stepcast)
stepcast_debian_file("${PROJECT_SOURCE_DIR}/packaging/debian/copyright" doc/stepcast)
stepcast_debian_file("${PROJECT_SOURCE_DIR}/packaging/debian/overrides" lintian/overrides RENAME stepcast)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stepcast)
set(CPACK_PACKAGE_CONTACT "stepcast maintainers <stepcast@packages.debian.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL tool debian)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${stepcast_package_release})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "forecasts the time of training iterations on many GPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "stepcast forecasts time, memory, cost and energy of one training iteration
of machine-learning jobs on many GPUs, searches layouts, and replays recorded
steps to say where their time goes.")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
