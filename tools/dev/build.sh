# Building, and running what was built.

# configure_and_build PRESET [cmake --build arguments]; extra configure arguments in the array configure_arguments.
configure_arguments=()
configure_and_build() {
  local preset=$1
  shift
  mkdir -p build
  (
    flock 9 # two builds of one tree at a time would step on each other
    cmake --preset "$preset" ${configure_arguments[@]+"${configure_arguments[@]}"} &&
      cmake --build --preset "$preset" --parallel "$jobs" "$@"
  ) 9>"build/.$preset.lock"
}

# What a preset needs: its packages, and its configure arguments.
build_preset() {
  local more=()
  # `./dev run` may have switched the tests off where their packages were missing.
  configure_arguments=(-DSTEPCAST_BUILD_TESTS=ON)
  case $1 in
    release | dev)
      ensure_packages "${packages_tool[@]}" "${packages_test[@]}"
      configure_arguments+=(-DSTEPCAST_BUILD_BENCH=ON -DSTEPCAST_PYTHON=OFF)
      ;;
    sanitize | thread)
      need_llvm clang -- "${packages_tool[@]}" "${packages_test[@]}"
      configure_arguments+=(-DCMAKE_CXX_COMPILER="$(command -v "$clangxx")")
      ;;
    *) die "unknown preset '$1' (release, dev, sanitize, thread)" ;;
  esac
  read -ra more <<<"${STEPCAST_CMAKE:-}"
  configure_arguments+=(${more[@]+"${more[@]}"})
}

find_data() {
  local data=${STEPCAST_DATA:-../shared/data}
  if [ -d "$data" ]; then
    STEPCAST_DATA=$(cd "$data" && pwd)
    export STEPCAST_DATA
  else
    printf 'measured data not found at %s: tests that need it are skipped\n' "$data"
  fi
}

# run_ctest PRESET [ARGS...]: leaves what it counted in build/logs/PRESET.xml.
run_ctest() {
  local preset=$1 results=$logs/$1.xml code=0 under=()
  shift
  rm -f "$results"
  # Where a kernel makes addresses more random than ThreadSanitizer expects, its programs end at their start.
  if [ "$preset" = thread ] && setarch -R true 2>/dev/null; then under=(setarch -R); fi
  ${under[@]+"${under[@]}"} ctest --preset "$preset" --parallel "$jobs" --output-junit "$results" "$@" || code=$?
  return $code
}

verb_build() {
  local preset=${1:-release}
  build_preset "$preset"
  if [ "$preset" = sanitize ]; then configure_arguments+=(-DSTEPCAST_TESTS=all); fi
  configure_and_build "$preset"
}

verb_run() {
  ensure_packages "${packages_tool[@]}"
  # The tool needs no test library; the tests stay on where their libraries are here already.
  if command -v dpkg-query >/dev/null && installed libgtest-dev && installed libgmock-dev && installed libbenchmark-dev; then
    configure_arguments=(-DSTEPCAST_BUILD_TESTS=ON -DSTEPCAST_BUILD_BENCH=ON)
  else
    configure_arguments=(-DSTEPCAST_BUILD_TESTS=OFF -DSTEPCAST_BUILD_BENCH=OFF)
  fi
  phase 'build the tool' configure_and_build release --target stepcast_cli >&2 || exit 1
  if [ $# -gt 0 ]; then exec build/release/stepcast "$@"; fi
  printf '== stepcast replay examples/dlrm_4gpu\n'
  build/release/stepcast replay examples/dlrm_4gpu || exit
  cat <<'EOT'

next: alias stepcast=$PWD/build/release/stepcast
next: stepcast                                        five commands to try
next: stepcast predict --model llama-3-8b --gpus 8    forecast a step from a description
next: docs/tutorial-traces.md                         the tables above explained, and how to record your own job
EOT
}

verb_lab() {
  ensure_packages "${packages_tool[@]}"
  configure_arguments=(-DSTEPCAST_LAB=ON)
  phase 'build the laboratory' configure_and_build release --target stepcast_lab_cli >&2 || exit 1
  exec build/release/stepcast-lab "$@"
}

verb_bench() {
  find_data
  build_preset release
  phase 'release build' configure_and_build release || exit 1
  local program
  for program in build/release/bench/bench_* build/release/bench/measure_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
      printf '== %s\n' "$(basename "$program")"
      "$program" "$@"
    fi
  done
}

verb_performance() {
  find_data
  build_preset release
  phase 'release build' configure_and_build release --target stepcast_cli measure_public_calls || exit 1
  python3 bench/performance.py build/release "$@"
}

verb_clean() { rm -rf build install; }
