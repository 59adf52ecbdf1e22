# What must hold: `quick` before a commit, `test` before a change lands, `nightly` before an issue is resolved.

scope=test # or nightly
parts=()   # of the run; none: all of them

wants() { [ ${#parts[@]} -eq 0 ] || [[ " ${parts[*]} " == *" $1 "* ]]; }

# What the tests of pages, wheel and collector take beyond the packages of a build. They do without what cannot be had.
install_tools() {
  local missing=() python=''
  if [ "${STEPCAST_SKIP_BROWSER:-0}" != 1 ]; then browser_tools || missing+=('chromium and puppeteer-core'); fi
  if [ "${STEPCAST_SKIP_WHEEL:-0}" != 1 ]; then wheel_tools || missing+=(scikit-build-core); fi
  if [ "${STEPCAST_SKIP_COLLECTOR:-0}" != 1 ]; then
    find_torch_python || install_optional python3-torch || missing+=(python3-torch)
  fi
  [ ${#missing[@]} -eq 0 ] || printf 'note: could not be installed:%s\n' "$(printf ' [%s]' "${missing[@]}")"
}

run_release_tests() { run_ctest release; }

# The tests of the release build, one after the other and beside the sanitizer build: most of them keep a single core busy.
begin_release_tests() {
  local python='' lane=('release tests' run_release_tests)
  if [ "${STEPCAST_SKIP_WHEEL:-0}" = 1 ]; then
    leave_out wheel STEPCAST_SKIP_WHEEL=1
  elif ! has_wheel_tools; then
    leave_out wheel 'scikit-build-core could not be installed'
  else
    # After the tests: it configures their build anew.
    if [ $scope = nightly ]; then
      lane+=(wheel check_wheel 'Python library under sanitizers' check_extension_sanitized)
    else
      lane+=(wheel check_wheel_ends)
      if [ "${STEPCAST_SKIP_TORCH:-0}" = 1 ]; then
        leave_out 'programs of PyTorch' STEPCAST_SKIP_TORCH=1
      else
        beside 'PyTorch of dry runs' torch_tools
        lane+=('programs of PyTorch' few_torch_programs)
      fi
    fi
  fi
  if [ "${STEPCAST_SKIP_COLLECTOR:-0}" = 1 ]; then
    leave_out collector STEPCAST_SKIP_COLLECTOR=1
  elif ! find_torch_python; then
    leave_out collector 'no python3 can import torch, and python3-torch could not be installed'
  else
    lane+=(collector check_collector)
  fi
  beside "${lane[@]}"
}

check_release() {
  beside format check_format 'tools of tests' install_tools
  build_preset release
  # No test runs a benchmark; those that changed are read with the sources alone.
  if [ $scope = test ]; then configure_arguments+=(-DSTEPCAST_BUILD_BENCH=OFF); fi
  phase 'release build' configure_and_build release || return 0
  wait_beside
  begin_release_tests
}

check_sanitized() {
  local targets=() tests=reading seconds=3 keep=no
  if [ $scope = nightly ]; then tests=all seconds=60 keep=yes; fi
  build_preset sanitize
  configure_arguments+=(-DSTEPCAST_TESTS=$tests)
  mapfile -t targets < <(fuzz_target_names)
  if ! wants sanitize; then
    phase 'fuzz build' configure_and_build sanitize --target "${targets[@]/#/fuzz_}" || return 0
  else
    phase 'sanitize build' configure_and_build sanitize || return 0
    report_beside
    # The fuzzers read their seeds, too.
    phase 'sanitize tests' run_ctest sanitize -LE '^fuzz$' || true
    count_ctest sanitize
    report_beside
  fi
  if wants fuzz; then
    phase 'fuzz' fuzz_targets "${STEPCAST_FUZZ_SECONDS:-$seconds}" $keep ${targets[@]+"${targets[@]}"} || true
  fi
}

check_threads() {
  build_preset thread
  phase 'thread build' configure_and_build thread --target stepcast_tests || return 0
  phase 'thread tests' run_ctest thread -L threads || true
  count_ctest thread
}

# torch_tools [PACKAGE...]: PyTorch and these packages in build/venv-torch, 2.7 GB to fetch. Succeeds without an index, too: it says so.
torch_tools() {
  local venv=$root/build/venv-torch
  rm -f "$venv/ready"
  if { [ -x "$venv/bin/pip" ] || build/venv/bin/python -m venv "$venv"; } &&
    timeout 900 nice "$venv/bin/pip" install -q --timeout 20 --retries 2 pytest cloudpickle torch==2.11.0 "$@" &&
    "$venv/bin/python" -c 'import torch; assert torch.version.cuda'; then
    touch "$venv/ready"
  else
    printf 'note: PyTorch could not be installed: its programs are skipped\n'
  fi
}

# torch_programs [PYTEST-ARGUMENT...]: programs of PyTorch's ecosystem in dry runs of the wheel, skipped without torch_tools.
torch_programs() {
  local venv=$root/build/venv-torch wheel
  if [ ! -f "$venv/ready" ]; then
    printf 'note: skipped, PyTorch is not in build/venv-torch: the package index was not reached, or the disk is full\n'
    return 0
  fi
  wheel=$(ls build/dist/stepcast-*.whl) || return 1
  "$venv/bin/pip" install -q --no-index --no-deps --force-reinstall "$wheel" || return 1
  (cd "$venv" && bin/python -m pytest -q -p no:cacheprovider --durations=10 "$root"/python/tests/test_dryrun*.py "$@")
}

# Three small programs, as soon as PyTorch is there: it is installed in the background of the tests of the release build.
few_torch_programs() {
  until [ -s "$(log_of 'PyTorch of dry runs').result" ]; do sleep 1; done
  torch_programs -k 'tensor_parallel_with or compiled_block or example_of_the_docs'
}

check_torch() {
  if [ "${STEPCAST_SKIP_TORCH:-0}" = 1 ]; then
    leave_out 'programs of PyTorch' 'STEPCAST_SKIP_TORCH=1'
  else
    phase 'PyTorch of dry runs' torch_tools torchvision transformers datasets timm peft trl accelerate lightning deepspeed==0.19.0 \
      megatron-core==0.16.1 torchtitan==0.1.0 tyro tiktoken tensorboard || true
    phase 'programs of PyTorch' torch_programs || true
  fi
}

check_sources() {
  phase 'commands of each source' configure_alone || return 0
  if wants alone; then phase 'each source alone' check_each_alone || true; fi
  if wants lint; then phase 'lint' lint_changed || true; fi
}

check_everything() {
  find_data
  need_llvm clang clang-format clang-tidy -- "${packages_tool[@]}" "${packages_test[@]}"
  rm -f "$logs"/{release,sanitize,thread}.xml "$logs"/{wheel,collector,programs_of_PyTorch}.log
  if wants release; then check_release; elif wants format; then phase 'format' check_format || true; fi
  if wants sanitize || wants fuzz; then check_sanitized; fi
  report_beside
  if [ $scope = nightly ] && wants thread; then check_threads; fi
  report_beside
  if wants alone || wants lint; then check_sources; fi
  wait_beside
  if [ $scope = nightly ] && wants torch; then check_torch; fi
  count_ctest release
  count_pytest wheel
  count_pytest programs_of_PyTorch
  count_collector
  report_all
}

take_parts() {
  local part
  for part in "$@"; do
    case $part in
      release | sanitize | fuzz | thread | format | alone | lint | torch) parts+=("$part") ;;
      *) die "unknown part '$part' (release, sanitize, fuzz, thread, format, alone, lint, torch)" ;;
    esac
  done
}

verb_test() {
  take_parts "$@"
  check_everything
}

verb_nightly() {
  take_parts "$@"
  scope=nightly
  export STEPCAST_NIGHTLY=1 # tests of many drawn cases draw more of them (tests/support/rounds.h)
  STEPCAST_ALONE=${STEPCAST_ALONE:-all} STEPCAST_LINT=${STEPCAST_LINT:-all}
  check_everything
}

# ------------------------------------------------------------------------------------------------------- quick

# The rooms of tests/ that belong to the named files.
rooms_of() {
  printf '%s\n' "$@" | sed -nE 's,^(src/stepcast|tests)/([a-z]+)/.*,\2,p; s,^(apps|calibrate|lab)/.*,\1,p; s,^platforms/.*,platform,p' |
    { grep -vxE 'support|consumer|architecture' || true; } | sort -u
}

# What changed since the last commit, or with the last commit where nothing did.
verb_quick() {
  local files=() rooms=()
  find_data
  need_llvm clang-format
  mapfile -t files < <(uncommitted_files | existing_once)
  if [ ${#files[@]} -eq 0 ]; then
    mapfile -t files < <(git show --format= --name-only --diff-filter=d HEAD | existing_once)
  fi
  mapfile -t rooms < <(printf 'architecture\n' && rooms_of ${files[@]+"${files[@]}"})
  printf '%s\n' ${files[@]+"${files[@]}"} | { grep -E '\.(h|cpp)$' || true; } | format_sources
  build_preset release
  phase 'build' configure_and_build release --target stepcast_cli stepcast_lab_cli stepcast_tests || exit 1
  printf 'rooms: %s\n' "${rooms[*]}"
  phase 'release tests' run_ctest release -LE numeric -L "^($(IFS='|' && printf '%s' "${rooms[*]}"))\$" || true
  count_ctest release
  report_all
}
