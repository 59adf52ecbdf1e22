# What goes into a wheel beside the Python sources: the extension, the program, and the files that ship with both.
#
# DIR holds what was built: this build, or another one's (`./dev wheel` packs what the release build made).
function(stepcast_install_wheel dir)
  install(DIRECTORY "${dir}/python/stepcast/" DESTINATION stepcast COMPONENT python USE_SOURCE_PERMISSIONS)
  set(share stepcast/share/stepcast)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/platforms" DESTINATION ${share} COMPONENT python FILES_MATCHING PATTERN "*.json")
  # The types of answers, as the schemas of this checkout have them.
  find_package(Python COMPONENTS Interpreter REQUIRED)
  set(stubs "${CMAKE_CURRENT_BINARY_DIR}/stubs/_answers.pyi")
  execute_process(COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/python/make_stubs.py" "${stubs}"
                  RESULT_VARIABLE failure)
  if(failure)
    message(FATAL_ERROR "python/make_stubs.py: ${failure}")
  endif()
  install(FILES "${stubs}" DESTINATION stepcast COMPONENT python)
endfunction()
