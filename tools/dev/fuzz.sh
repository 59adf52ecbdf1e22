# The fuzz targets of the sanitizer build.

# fuzz_one TARGET SECONDS CORPUS [libFuzzer arguments]
fuzz_one() {
  local name=$1 seconds=$2 corpus=$3 seeds=$PWD/fuzz/corpus/$1 log=build/logs/fuzz_$1.log
  shift 3
  # Whole paths: the target of command lines works in a folder of its own.
  local artifacts=$PWD/build/fuzz/artifacts/$name arguments=("$@")
  mkdir -p "$corpus" "$artifacts"
  # A forecast that has to search for a layout takes ten seconds here, and more on a machine that does something else.
  arguments+=(-max_total_time="$seconds" -timeout=120 -rss_limit_mb=2048 -artifact_prefix="$artifacts/" "$corpus")
  if [ -d "$seeds" ]; then arguments+=("$seeds"); fi
  if [ -f "fuzz/dictionaries/$name.dict" ]; then arguments+=(-dict="fuzz/dictionaries/$name.dict"); fi
  if "build/sanitize/fuzz/fuzz_$name" "${arguments[@]}" >"$log" 2>&1; then
    printf '%s: %s\n' "$name" "$(tail -n 1 "$log")"
  else
    printf '%s: FAILED\n' "$name"
    tail -n 40 "$log"
    return 1
  fi
}

# fuzz_targets SECONDS KEEP TARGET...: two at a time. KEEP=no starts from the seeds alone with a fixed order of
# attempts, so that every run of the tests tries the same things first.
fuzz_targets() {
  local seconds=$1 keep=$2
  shift 2
  if [ $# -eq 0 ]; then
    printf 'note: no fuzz targets\n'
    return 0
  fi
  export -f fuzz_one
  local corpus=$PWD/build/fuzz/corpus extra=()
  if [ "$keep" = no ]; then
    corpus=$(mktemp -d)
    extra=(-seed=1)
  fi
  local code=0
  # shellcheck disable=SC2016 # expanded by the shell that it starts
  printf '%s\n' "$@" | xargs -P 2 -I{} bash -c 'fuzz_one "$1" "$2" "$3/$1" "${@:4}"' _ {} "$seconds" "$corpus" \
    ${extra[@]+"${extra[@]}"} || code=1
  if [ "$keep" = no ]; then rm -rf "$corpus"; fi
  [ $code -eq 0 ] || return 1
  printf 'note: %d targets, %s s each\n' $# "$seconds"
}

fuzz_target_names() {
  local file
  for file in fuzz/*_fuzz.cpp; do
    if [ -f "$file" ]; then basename "$file" _fuzz.cpp; fi
  done
}

verb_fuzz() {
  build_preset sanitize
  local targets=("$@")
  if [ ${#targets[@]} -eq 0 ]; then mapfile -t targets < <(fuzz_target_names); fi
  phase 'fuzz build' configure_and_build sanitize --target "${targets[@]/#/fuzz_}" || exit 1
  fuzz_targets "${STEPCAST_FUZZ_SECONDS:-60}" yes ${targets[@]+"${targets[@]}"}
}
