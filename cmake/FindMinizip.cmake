# Finds minizip of zlib's contrib (package libminizip-dev), which ships no CMake files of its own.
#
#   Minizip_FOUND, target Minizip::Minizip; STEPCAST_MINIZIP_STATIC, its archive, where there is one
find_path(Minizip_INCLUDE_DIR NAMES minizip/unzip.h)
find_library(Minizip_LIBRARY NAMES minizip)
find_library(STEPCAST_MINIZIP_STATIC NAMES libminizip.a DOC "minizip as a static library, for portable programs")
mark_as_advanced(Minizip_INCLUDE_DIR Minizip_LIBRARY STEPCAST_MINIZIP_STATIC)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Minizip REQUIRED_VARS Minizip_LIBRARY Minizip_INCLUDE_DIR)

if(Minizip_FOUND AND NOT TARGET Minizip::Minizip)
  add_library(Minizip::Minizip UNKNOWN IMPORTED)
  set_target_properties(Minizip::Minizip PROPERTIES IMPORTED_LOCATION "${Minizip_LIBRARY}"
                                                    INTERFACE_INCLUDE_DIRECTORIES "${Minizip_INCLUDE_DIR}")
endif()
