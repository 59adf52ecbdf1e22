# What goes into a wheel beside the Python sources: the extension, the program, and the files that ship with both.
#
# DIR holds what was built: this build, or another one's (`./dev wheel` packs what the release build made).
function(stepcast_install_wheel dir)
  install(DIRECTORY "${dir}/python/stepcast/" DESTINATION stepcast COMPONENT python USE_SOURCE_PERMISSIONS)
  set(share stepcast/share/stepcast)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/platforms" DESTINATION ${share} COMPONENT python FILES_MATCHING PATTERN "*.json")
  install(FILES "${PROJECT_SOURCE_DIR}/data/targets.csv" "${PROJECT_SOURCE_DIR}/data/published.csv"
          DESTINATION ${share}/data COMPONENT python)
endfunction()
