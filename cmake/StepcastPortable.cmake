# Programs that need no run-time library beyond libc (2.28 or newer), libm and libgcc, out of the same objects as every other
# one: fmt's functions are compiled in, zlib, yaml-cpp and libstdc++ are linked statically, the source that needs more (ISA-L) is
# compiled once more without, and functions that glibc has newer versions of are taken in their old ones (glibc_2_28.c).
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

enable_language(C)
add_library(stepcast_old_glibc STATIC "${PROJECT_SOURCE_DIR}/cmake/glibc_2_28.c")
set_target_properties(stepcast_old_glibc PROPERTIES POSITION_INDEPENDENT_CODE ON)
set(stepcast_old_symbols
    exp exp2 log log2 pow hypot dladdr dlerror dlopen dlsym pthread_create pthread_detach pthread_join pthread_once
    pthread_getspecific pthread_setspecific pthread_key_create pthread_key_delete pthread_rwlock_rdlock pthread_rwlock_wrlock
    pthread_rwlock_unlock pthread_cond_clockwait stat stat64 lstat lstat64 fstat fstat64 arc4random)
add_library(stepcast_old_start OBJECT "${PROJECT_SOURCE_DIR}/cmake/glibc_2_28_start.c")

# With binutils' linker: mold 1.10 links a library so that it crashes, gold does not come to an end.
function(stepcast_lower_glibc target)
  list(TRANSFORM stepcast_old_symbols PREPEND -Wl,--wrap= OUTPUT_VARIABLE wraps)
  target_link_options(${target} PRIVATE ${wraps})
  # Where glibc 2.28 has them; newer ones have empty libraries of these names.
  target_link_libraries(${target} PRIVATE stepcast_old_glibc -fuse-ld=bfd -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2
                                          -Wl,--pop-state)
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE -Wl,--wrap=__libc_start_main)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:stepcast_old_start>)
  endif()
endfunction()

add_library(
  stepcast_portable_parts STATIC
  "${PROJECT_SOURCE_DIR}/cmake/fmt_functions.cpp" "${PROJECT_SOURCE_DIR}/cmake/shared_object_symbols.cpp" "${PROJECT_SOURCE_DIR}/src/stepcast/base/isal/isal_inflater.cpp")
stepcast_configure_target(stepcast_portable_parts)
target_include_directories(stepcast_portable_parts PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_include_directories(stepcast_portable_parts SYSTEM
                           PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(stepcast_portable_parts PRIVATE STEPCAST_HAVE_ISAL=0)
set_target_properties(stepcast_portable_parts PROPERTIES POSITION_INDEPENDENT_CODE ON)

# stepcast_link_archives(TARGET [ARCHIVE-TARGET...])   the same libraries, for a target that runs on this machine alone
function(stepcast_link_archives target)
  set(archives "")
  foreach(archive IN LISTS ARGN ITEMS stepcast_calibrate stepcast stepcast_portable_parts)
    list(APPEND archives "$<TARGET_FILE:${archive}>")
    add_dependencies(${target} ${archive})
  endforeach()
  # By their files: what the targets link themselves is what must not come along.
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group "${STEPCAST_ZLIB_STATIC}" "${STEPCAST_YAML_STATIC}"
                                          Threads::Threads ${CMAKE_DL_LIBS})
  # No symbol of these libraries shows, or meets another copy of it in the same program.
  target_link_options(${target} PRIVATE -static-libstdc++ -Wl,--exclude-libs,ALL)
endfunction()

function(stepcast_link_portably target)
  stepcast_link_archives(${target} ${ARGN})
  stepcast_lower_glibc(${target})
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--as-needed -Wl,-s)
endfunction()

add_executable(stepcast_portable "${PROJECT_SOURCE_DIR}/apps/stepcast/main.cpp")
stepcast_configure_target(stepcast_portable)
set_target_properties(stepcast_portable PROPERTIES OUTPUT_NAME stepcast RUNTIME_OUTPUT_DIRECTORY
                                                                      "${PROJECT_BINARY_DIR}/portable")
if(STEPCAST_PYTHON AND NOT STEPCAST_PORTABLE)
  set_target_properties(stepcast_portable PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
stepcast_link_portably(stepcast_portable stepcast_verbs)
