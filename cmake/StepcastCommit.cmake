# Sets STEPCAST_COMMIT: what git says of this checkout when it is configured, which every commit makes happen again; in a source
# archive the commit that `git archive` wrote into commit.txt; empty elsewhere.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/commit.txt" STEPCAST_COMMIT LIMIT_COUNT 1)
if(STEPCAST_COMMIT MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${STEPCAST_COMMIT}" 0 12 STEPCAST_COMMIT)
else()
  set(STEPCAST_COMMIT "")
  find_package(Git QUIET)
  if(GIT_FOUND AND EXISTS "${PROJECT_SOURCE_DIR}/.git")  # not that of a project around this one
    execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${PROJECT_SOURCE_DIR}" describe --always --tags --abbrev=12 OUTPUT_VARIABLE STEPCAST_COMMIT
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS "${PROJECT_SOURCE_DIR}/.git/logs/HEAD")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/.git/logs/HEAD")
    endif()
  endif()
endif()
