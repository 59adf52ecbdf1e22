# Programs that need no run-time library beyond libc, libm, libstdc++ and libgcc, out of the same objects as every other
# one: fmt's functions are compiled in, zlib is linked statically, and the source that needs more (ISA-L) is compiled once
# more without.
#
#   stepcast_link_portably(TARGET [ARCHIVE-TARGET...])   links stepcast, calibration and the named static libraries into TARGET
find_library(STEPCAST_ZLIB_STATIC NAMES libz.a DOC "zlib as a static library, for portable programs")
find_library(STEPCAST_YAML_STATIC NAMES libyaml-cpp.a DOC "yaml-cpp as a static library, for portable programs")
mark_as_advanced(STEPCAST_ZLIB_STATIC STEPCAST_YAML_STATIC)
if(NOT STEPCAST_ZLIB_STATIC)
  message(FATAL_ERROR "libz.a is not here (package zlib1g-dev): portable programs link zlib statically")
endif()
if(NOT STEPCAST_YAML_STATIC)
  message(FATAL_ERROR "libyaml-cpp.a is not here (package libyaml-cpp-dev): portable programs link yaml-cpp statically")
endif()

add_library(
  stepcast_portable_parts STATIC
  "${PROJECT_SOURCE_DIR}/cmake/fmt_functions.cpp" "${PROJECT_SOURCE_DIR}/cmake/shared_object_symbols.cpp" "${PROJECT_SOURCE_DIR}/src/stepcast/base/isal/isal_inflater.cpp")
stepcast_configure_target(stepcast_portable_parts)
target_include_directories(stepcast_portable_parts PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_include_directories(stepcast_portable_parts SYSTEM
                           PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(stepcast_portable_parts PRIVATE STEPCAST_HAVE_ISAL=0)
set_target_properties(stepcast_portable_parts PROPERTIES POSITION_INDEPENDENT_CODE ON)

function(stepcast_link_portably target)
  set(archives "")
  foreach(archive IN LISTS ARGN ITEMS stepcast_calibrate stepcast stepcast_portable_parts)
    list(APPEND archives "$<TARGET_FILE:${archive}>")
    add_dependencies(${target} ${archive})
  endforeach()
  # By their files: what the targets link themselves is what must not come along.
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group "${STEPCAST_ZLIB_STATIC}" "${STEPCAST_YAML_STATIC}"
                                          Threads::Threads ${CMAKE_DL_LIBS})
  # Debian's libyaml-cpp.a is compiled for programs: in a shared object its symbols, and those of libstdc++ that it uses,
  # have to be the object's own.
  get_target_property(kind ${target} TYPE)
  if(NOT kind STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE -static-libstdc++)
  endif()
  # No symbol of these libraries shows, or meets another copy of it in the same program.
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--as-needed -Wl,-s)
endfunction()

add_executable(stepcast_portable "${PROJECT_SOURCE_DIR}/apps/stepcast/main.cpp")
stepcast_configure_target(stepcast_portable)
# Where the wheel is packed from, or beside what is not portable.
set_target_properties(
  stepcast_portable
  PROPERTIES OUTPUT_NAME stepcast RUNTIME_OUTPUT_DIRECTORY
             "${PROJECT_BINARY_DIR}/$<IF:$<BOOL:${STEPCAST_PYTHON}>,python/stepcast/bin,portable>")
stepcast_link_portably(stepcast_portable stepcast_verbs)
