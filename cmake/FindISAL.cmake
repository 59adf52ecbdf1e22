# Finds Intel's ISA-L (package libisal-dev), which ships no CMake files of its own.
#
#   ISAL_FOUND, ISAL_VERSION, target ISAL::ISAL
find_path(ISAL_INCLUDE_DIR NAMES isa-l/igzip_lib.h)
find_library(ISAL_LIBRARY NAMES isal)
mark_as_advanced(ISAL_INCLUDE_DIR ISAL_LIBRARY)

if(ISAL_INCLUDE_DIR AND EXISTS "${ISAL_INCLUDE_DIR}/isa-l.h")
  set(ISAL_VERSION "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${ISAL_INCLUDE_DIR}/isa-l.h" line REGEX "#define ISAL_${part}_VERSION +[0-9]+")
    if(line MATCHES "([0-9]+)$")
      list(APPEND ISAL_VERSION ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN ISAL_VERSION "." ISAL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ISAL REQUIRED_VARS ISAL_LIBRARY ISAL_INCLUDE_DIR VERSION_VAR ISAL_VERSION)

if(ISAL_FOUND AND NOT TARGET ISAL::ISAL)
  add_library(ISAL::ISAL UNKNOWN IMPORTED)
  set_target_properties(ISAL::ISAL PROPERTIES IMPORTED_LOCATION "${ISAL_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${ISAL_INCLUDE_DIR}")
endif()
