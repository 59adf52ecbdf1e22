# The Python wheel: what makes it, and its tests.

# Prints a python3 that makes virtual environments, and is new enough.
wheel_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

has_wheel_tools() { [ -x build/venv/bin/python ] && build/venv/bin/python -c 'import scikit_build_core' 2>/dev/null; }

# What makes a wheel, in build/venv: scikit-build-core, which comes from a package index; zopfli makes it smaller, auditwheel
# and mypy say more about it, where they can be had.
wheel_tools() {
  local python
  if has_wheel_tools; then return 0; fi
  python=$(wheel_python) || return 1
  "$python" -m venv --clear build/venv && build/venv/bin/pip install -q scikit-build-core || return 1
  build/venv/bin/pip install -q zopfli auditwheel mypy || true
}

# Makes the wheel, reads what it needs of a system, and prints its name. No source of the library is compiled again: the library
# of the wheel links the objects of the release build.
make_wheel() {
  local wheel
  cmake --preset release -DSTEPCAST_PYTHON=ON -DPython_EXECUTABLE="$root/build/venv/bin/python" >&2 || return 1
  cmake --build --preset release --parallel "$jobs" --target stepcast_wheel_files >&2 || return 1
  rm -rf build/dist
  STEPCAST_PREBUILT=$root/build/release build/venv/bin/python -m pip wheel -q --no-deps --no-build-isolation \
    -w build/dist . >&2 || return 1
  wheel=$(build/venv/bin/python python/finish_wheel.py "$(ls build/dist/stepcast-*.whl)") || return 1
  # zopfli takes off 5 %.
  local most=8600000
  if [ "${STEPCAST_QUICK_WHEEL:-0}" = 1 ]; then most=9050000; fi
  if [ "$(stat -c %s "$wheel")" -gt $most ]; then
    printf '%s: %s bytes, more than %s\n' "$wheel" "$(stat -c %s "$wheel")" $most >&2
    return 1
  fi
  if build/venv/bin/python -c 'import auditwheel' 2>/dev/null; then
    build/venv/bin/python -m auditwheel show "$wheel" | tee "$logs/auditwheel.log" >&2
    tr '\n' ' ' <"$logs/auditwheel.log" | grep -q 'following platform tag: *"manylinux_2_\([0-9]\|1[0-9]\|2[0-8]\)_' || return 1
  else
    printf 'auditwheel could not be installed: only our own check ran\n' >&2
  fi
  printf '%s\n' "$wheel"
}

# check_wheel [ends]: its tests, outside of the tree, and every Python that can be had; with `ends` the oldest and the newest of
# them, nothing that measures, and a wheel that is not as small as it can be.
check_wheel() {
  local which=${1:-all} out start seconds wheel
  wheel=$(make_wheel) || return 1
  out=$(mktemp -d)
  build/venv/bin/python -m venv "$out/venv" || return 1
  start=$(date +%s%N)
  "$out/venv/bin/pip" install -q --no-index "$root/$wheel" || return 1
  seconds=$((($(date +%s%N) - start) / 100000000))
  (cd "$out" && bash -c 'time venv/bin/stepcast predict --model llama-3-8b --gpus 8 >/dev/null') || return 1
  "$out/venv/bin/pip" install -q pytest pyyaml || return 1
  (cd "$out" && venv/bin/python -m pytest -q -p no:cacheprovider --durations=10 "$root/python/tests") || return 1
  check_pythons "$which" "$root/$wheel" "$out" || return 1
  if [ "$which" = all ]; then measure_wheel "$out" || return 1; fi
  rm -rf "$out"
  printf 'note: %s, %d kB, installed in %d.%d s; Pythons%s\n' "$(basename "$wheel")" $(($(stat -c %s "$wheel") / 1000)) \
    $((seconds / 10)) $((seconds % 10)) "$(cat "$logs/pythons")"
}

check_wheel_ends() { STEPCAST_QUICK_WHEEL=1 check_wheel ends; }

# Bytes of a connection damaged by a fuzzer. What calls cost, how fast the page is and what it stands are for the log alone: they
# depend on what else the machine does.
measure_wheel() {
  local out=$1
  if "$out/venv/bin/pip" install -q atheris 2>/dev/null; then
    (cd "$out" && venv/bin/python "$root/python/tests/fuzz_serve.py" -verbosity=0 "-max_total_time=${STEPCAST_FUZZ_SECONDS:-3}") || return 1
  else
    printf 'atheris could not be installed: only requests damaged by chance ran\n'
  fi
  local script
  for script in bench_predict measure_serve load_serve; do
    (cd "$out" && venv/bin/python "$root/python/tests/$script.py") || printf '%s.py: exit code %d\n' $script $?
  done
}

# Prints the newest Python of a version such as 3.9 that is here, or that uv can give.
python_of() {
  local candidate found=''
  for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python "/usr/bin/python$1" \
    "$(command -v uv >/dev/null && uv python find "$1" 2>/dev/null)"; do
    if [ -x "$candidate" ] && "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then found=$candidate; fi
  done
  [ -n "$found" ] && printf '%s\n' "$found"
}

# check_pythons all|ends WHEEL OUT: installs the wheel into an empty environment of each Python from 3.9 on, and forecasts.
check_pythons() {
  local which=$1 wheel=$2 out=$3 version python said versions=()
  : >"$logs/pythons"
  for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
    if python_of $version >/dev/null; then
      versions+=("$version")
    else
      printf 'Python %s cannot be had here\n' $version
    fi
  done
  if [ "$which" = ends ] && [ ${#versions[@]} -gt 2 ]; then versions=("${versions[0]}" "${versions[-1]}"); fi
  for version in ${versions[@]+"${versions[@]}"}; do
    python=$(python_of "$version")
    "$python" -m venv "$out/venv-$version" && "$out/venv-$version/bin/pip" install -q --no-index "$wheel" || return 1
    said=$(cd "$out" && "venv-$version/bin/python" -c \
      'import stepcast; print(stepcast.predict("llama-3-8b", gpus=8, gbs=64).step_time_ms, stepcast.plan("llama-3-8b", gpus=8, gbs=64).table("priced")["tensor"][0])') || return 1
    printf 'Python %s: %s\n' "$version" "$said"
    printf ' %s' "$version" >>"$logs/pythons"
  done
}

# The library of the wheel under AddressSanitizer and UBSan, with the tests of hostile arguments, interrupts and threads. Their
# run-time library has to be in the process before Python is, and the one that throws exceptions with it.
check_extension_sanitized() {
  local library packages=$root/build/release/python_sanitized file
  library=$(c++ -print-file-name=libasan.so)
  if [ ! -f "$library" ]; then
    printf 'note: skipped, this compiler has no libasan.so\n'
    return 0
  fi
  cmake --build --preset release --parallel "$jobs" --target stepcast_python_sanitized stepcast_wheel_files || return 1
  for file in python/stepcast/* build/release/python/stepcast/bin; do ln -sfn "$root/$file" "$packages/stepcast/"; done
  rm "$packages/stepcast/_stepcast.py"
  cp python/stepcast/_stepcast.py "$packages/stepcast/" # which looks beside itself
  build/venv/bin/python -m pytest --version >/dev/null 2>&1 || build/venv/bin/pip install -q pytest || return 1
  # Python leaves things behind at its end; the program that the tests run beside has a C++ library of its own.
  ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0 LD_PRELOAD="$library $(c++ -print-file-name=libstdc++.so.6)" PYTHONPATH=$packages \
    build/venv/bin/python -m pytest -q -p no:cacheprovider --durations=5 python/tests/test_hostile.py \
    python/tests/test_calls.py python/tests/test_tables.py
}

verb_wheel() {
  build_preset release
  phase 'release build' configure_and_build release --target stepcast_cli || exit 1
  phase 'tools of the wheel' wheel_tools || die 'could not install scikit-build-core: see build/logs/tools_of_the_wheel.log'
  phase 'wheel' check_wheel || exit 1
  phase 'Python library under sanitizers' check_extension_sanitized || exit 1
  printf '%s\n' build/dist/*.whl
}

# release [--tag TAG] [--wheels DIR]: all files of a release of the commit that is checked out, in build/release-files.
verb_release() {
  local tag='' wheels=build/dist
  while [ $# -gt 0 ]; do
    case $1 in
      --tag) tag=${2:-} ;;
      --wheels) wheels=${2:-} ;;
      *) die "unknown argument '$1' (--tag TAG, --wheels DIR)" ;;
    esac
    shift $(($# > 1 ? 2 : 1))
  done
  python3 packaging/release.py --check "$tag" || die 'version, change log and tag do not agree'
  [ -z "$(git status --porcelain)" ] || die 'a release is made of a commit: commit or remove what `git status` lists'
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  build_preset release
  configure_arguments=(-DSTEPCAST_BUILD_TESTS=OFF -DSTEPCAST_BUILD_BENCH=OFF -DSTEPCAST_PYTHON=OFF)
  rm -f build/release/stepcast_*.deb
  phase 'Debian package' configure_and_build release --target deb || exit 1
  if [ "$wheels" = build/dist ]; then
    phase 'tools of the wheel' wheel_tools || die 'could not install scikit-build-core: see build/logs/tools_of_the_wheel.log'
    phase 'wheel' make_wheel || exit 1
  fi
  python3 packaging/release.py --wheels "$wheels"
  printf 'next: see build/release-files, then tag the commit: git tag v%s\n' \
    "$(sed -nE 's/^project\(stepcast VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)"
}

# ----------------------------------------------------------------------------------------------------- browser

# A browser, and in build/browser what drives it, at the versions of package-lock.json; from apt and npm. The tests skip the
# browser's with a line where this failed.
browser_tools() {
  local missing=() wanted=$root/tests/report/browser
  command -v node >/dev/null || missing+=(nodejs)
  command -v npm >/dev/null || missing+=(npm)
  command -v chromium >/dev/null || [ -n "${STEPCAST_CHROMIUM:-}" ] || missing+=(chromium)
  if [ ${#missing[@]} -gt 0 ]; then install_optional "${missing[@]}" || return 1; fi
  if cmp -s "$wanted/package-lock.json" build/browser/installed; then return 0; fi
  mkdir -p build/browser
  cp "$wanted/package.json" "$wanted/package-lock.json" build/browser/
  npm ci --prefix build/browser --ignore-scripts --no-audit --no-fund || return 1
  cp "$wanted/package-lock.json" build/browser/installed
}
