# Installs the build into a fresh folder, then configures, builds and runs this folder's project against it.
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... -DGENERATOR=... -DVERSION=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT code EQUAL 0)
    list(JOIN ARGV " " line)
    message(FATAL_ERROR "failed (${code}): ${line}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")
run(${CMAKE_COMMAND} -S "${SOURCE_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DEXPECTED_VERSION=${VERSION} -DCMAKE_CXX_FLAGS=-O0)
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/consumer" "${SOURCE_DIR}/../../examples/dlrm_4gpu")
if(EXISTS "${WORK_DIR}/build/consumer_pkg_config")
  run("${WORK_DIR}/build/consumer_pkg_config" "${SOURCE_DIR}/../../examples/dlrm_4gpu")
endif()
run("${WORK_DIR}/build/predict_and_replay" "${SOURCE_DIR}/../../examples/dlrm_4gpu")
run("${WORK_DIR}/build/scaling_curve")
run("${WORK_DIR}/build/shard_tables")
run("${WORK_DIR}/prefix/bin/stepcast" --version)
