# Makes a ctest test of each test of a GoogleTest executable, named and labelled by the folder of tests/ that its source
# lies in: trace/Interner.KeepsOneCopy, label trace. (gtest_discover_tests knows one prefix for each executable only.)
#
#   stepcast_discover_tests(TARGET TIMEOUT SECONDS [NUMERIC SOURCE...] [NUMERIC_CASES REGEX...] [THREADS SOURCE...])
#                          tests in the SOURCEs (paths below tests/), and those whose names hold a REGEX, carry the label
#                          `numeric`, too; with sanitizers they are no tests. Those of THREADS carry the label `threads`.
#
# With sanitizers, where a test executable takes a tenth of a second to start, up to 20 tests of a suite are one of ctest.
#
# The executable is asked when ctest runs, and again only if it is newer than its answer.
set(stepcast_list_tests_script "${CMAKE_CURRENT_LIST_DIR}/list_tests.cmake")

function(stepcast_discover_tests target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "NUMERIC;NUMERIC_CASES;THREADS")
  set(base "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  list(JOIN arg_NUMERIC_CASES "|" cases)
  file(
    GENERATE
    OUTPUT "${base}_include.cmake"
    CONTENT
      "set(executable \"$<TARGET_FILE:${target}>\")
set(tests \"${base}_tests.cmake\")
if(NOT EXISTS \"\${executable}\")
  add_test(${target}_was_not_built false)
elseif(NOT EXISTS \"\${tests}\" OR \"\${executable}\" IS_NEWER_THAN \"\${tests}\"
       OR \"\${CMAKE_CURRENT_LIST_FILE}\" IS_NEWER_THAN \"\${tests}\")
  execute_process(
    COMMAND \"${CMAKE_COMMAND}\" \"-DEXECUTABLE=\${executable}\" \"-DTESTS=\${tests}\"
            \"-DNUMERIC=${arg_NUMERIC}\" \"-DTHREADS=${arg_THREADS}\" [==[-DNUMERIC_CASES=${cases}]==] \"-DSANITIZE=${STEPCAST_SANITIZE}\" -DTIMEOUT=${arg_TIMEOUT}
            -P \"${stepcast_list_tests_script}\"
    RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    file(REMOVE \"\${tests}\")
    message(FATAL_ERROR \"${target} did not list its tests\")
  endif()
endif()
include(\"\${tests}\" OPTIONAL)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${base}_include.cmake")
endfunction()
