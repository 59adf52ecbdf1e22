# Chooses a clang for the libFuzzer build unless the caller named a compiler. clang 16 comes first because the format
# and lint checks use it too; any newer one works as well.
if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  set(stepcast_clang_names clang++-16)
  foreach(version RANGE 30 17 -1)
    list(APPEND stepcast_clang_names clang++-${version})
  endforeach()
  find_program(STEPCAST_CLANGXX NAMES ${stepcast_clang_names} clang++ DOC "clang++ 16 or newer, for the fuzz targets")
  if(NOT STEPCAST_CLANGXX)
    message(FATAL_ERROR "no clang++ found: the fuzz targets need clang 16 or newer (`./dev fuzz` installs it)")
  endif()
  set(CMAKE_CXX_COMPILER "${STEPCAST_CLANGXX}")
endif()
