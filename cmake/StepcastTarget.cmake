# What every target of this project is compiled and linked with.
#
#   stepcast_configure_target(TARGET)   C++20 without extensions, the warning set, the sanitizers asked for
#   stepcast_precompile(TARGET HEADER...)   reads these headers once for the whole target; sources still include what
#                                           they use, and compile with -DSTEPCAST_PCH=OFF
#   stepcast_precompile_as(TARGET OTHER)    the same ones as OTHER, where both are compiled with the same flags
#   stepcast_unity(TARGET)   compiles up to STEPCAST_UNITY sources of a folder as one: no two of them may define a name alike
#                            in their anonymous namespaces
#   stepcast_optimise_less(TARGET [FLAG])   FLAG (default -O1) where -O2 was asked for: code that no benchmark passes through;
#                                           -Os takes as long to compile and makes the wheel 5 % smaller

add_library(stepcast_build_flags INTERFACE)

set(stepcast_warnings
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
    -Wcast-align -Wcast-qual -Woverloaded-virtual -Wunused -Wformat=2 -Wimplicit-fallthrough
    -Wextra-semi -Wundef -Wmissing-declarations)
if(STEPCAST_UNITY)  # the names of one source are in sight of the next, and a source is not the file that is compiled
  list(REMOVE_ITEM stepcast_warnings -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND stepcast_warnings -Wno-subobject-linkage)
  endif()
endif()
# Structs are filled by naming members; those not named have their defaults.
list(APPEND stepcast_warnings -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND stepcast_warnings -Wduplicated-cond -Wduplicated-branches -Wlogical-op)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # std::string concatenation at -O2 and above trips it without cause (GCC bug 105329, fixed in 13).
    list(APPEND stepcast_warnings -Wno-restrict)
  endif()
  if(STEPCAST_SANITIZE)
    # Sanitizer checks hide initialisations from GCC's flow analysis.
    list(APPEND stepcast_warnings -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND stepcast_warnings -Wno-missing-declarations -Wno-gnu-zero-variadic-macro-arguments)
endif()
if(STEPCAST_WERROR)
  list(APPEND stepcast_warnings -Werror)
endif()
target_compile_options(stepcast_build_flags INTERFACE ${stepcast_warnings})

# Same input, same bytes out on every machine: no fused multiply-add where the source does not say so.
target_compile_options(stepcast_build_flags INTERFACE -ffp-contract=off)

if(STEPCAST_SANITIZE)
  # The checks of the standard library's containers are only worth their time where speed is not asked for.
  target_compile_definitions(stepcast_build_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_compile_options(stepcast_build_flags INTERFACE -fsanitize=${STEPCAST_SANITIZE} -fno-sanitize-recover=all
                                                        -fno-omit-frame-pointer)
  target_link_options(stepcast_build_flags INTERFACE -fsanitize=${STEPCAST_SANITIZE} -fno-sanitize-recover=all)
  if(STEPCAST_TESTS STREQUAL "reading")
    # Checks in front of every use of a pointer take a quarter of the compiler's time. AddressSanitizer reports null pointers,
    # too, where they are read.
    target_compile_options(stepcast_build_flags INTERFACE -fno-sanitize=null,alignment)
  endif()
endif()

# Linking some thirty executables one after the other takes minutes with the linker of binutils.
include(CheckCXXSourceCompiles)
foreach(linker IN ITEMS mold lld)
  set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=${linker})
  check_cxx_source_compiles("int main() { return 0; }" STEPCAST_LINKS_WITH_${linker})
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(STEPCAST_LINKS_WITH_${linker})
    target_link_options(stepcast_build_flags INTERFACE -fuse-ld=${linker})
    break()
  endif()
endforeach()

if(STEPCAST_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stepcast_build_flags INTERFACE -fpch-preprocess)  # ccache asks for it
endif()

find_program(STEPCAST_CCACHE ccache DOC "Compiler cache, used when it is there")
mark_as_advanced(STEPCAST_CCACHE)

function(stepcast_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_STANDARD_REQUIRED ON)
  if(STEPCAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${STEPCAST_CCACHE}")
  endif()
  # $<BUILD_INTERFACE> keeps the flags of this build out of the installed package.
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:stepcast_build_flags>)
endfunction()

set(stepcast_common_headers
    <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional> <set> <span>
    <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

function(stepcast_precompile target)
  if(STEPCAST_PCH)
    target_precompile_headers(${target} PRIVATE ${stepcast_common_headers} ${ARGN})
  endif()
endfunction()

function(stepcast_precompile_as target other)
  if(STEPCAST_PCH)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

# What takes the compiler's time is what every source has anew: templates to instantiate, inline functions to optimise. A
# source with options of its own is compiled alone, as every source is with -DSTEPCAST_UNITY=0; a new one moves the groups
# of its folder only.
function(stepcast_unity target)
  if(NOT STEPCAST_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  set(folders "")
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    file(RELATIVE_PATH path "${CMAKE_CURRENT_SOURCE_DIR}" "${path}")
    get_filename_component(folder "${path}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    list(APPEND folders "${folder}")
    list(APPEND sources_of_${folder} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH sources_of_${folder} n)
    math(EXPR groups "(${n} + ${STEPCAST_UNITY} - 1) / ${STEPCAST_UNITY}")
    set(at 0)
    foreach(source IN LISTS sources_of_${folder})
      math(EXPR group "${at} * ${groups} / ${n}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${group}")
      math(EXPR at "${at} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(stepcast_optimise_less target)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[23]")
    set(flag -O1 ${ARGN})
    list(GET flag -1 flag)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${flag}>)
  endif()
endfunction()
