#!/usr/bin/env bash
# check.sh: what `./dev` promises, with stand-ins for all that it builds and runs. From anywhere; prints what is wrong.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
problems=0
wrong() {
  printf 'wrong: %s\n' "$*"
  problems=$((problems + 1))
}

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# --------------------------------------------------------------------------------------------------- its text

for file in "$checkout/dev" "$checkout"/tools/dev/*.sh "$checkout/.ci/run"; do
  bash -n "$file" || wrong "$file does not parse"
done
if command -v shellcheck >/dev/null; then
  (cd "$checkout" && shellcheck -x dev) || wrong 'shellcheck found something'
fi
for file in "$checkout"/tools/dev/*.sh; do
  grep -q "^source tools/dev/$(basename "$file")\$" "$checkout/dev" || wrong "dev does not read $file"
done

usage=$("$checkout/dev" help)
for verb in $(sed -n 's/^verb_\([a-z]*\)().*/\1/p' "$checkout"/tools/dev/*.sh); do
  grep -q "^  $verb\b" <<<"$usage" || wrong "help says nothing of $verb"
  grep -qE "^  [a-z |]*\b$verb\b[a-z |]*\)\$" "$checkout/dev" || wrong "dev does not know $verb"
done
if "$checkout/dev" no-such-verb >/dev/null 2>&1; then wrong 'an unknown verb is no error'; fi

# ------------------------------------------------------------------------------------------ a run of the tests

# A program with all functions of tools/dev/, and stand-ins for those that build, run and install.
cat >"$place/stand_ins.sh" <<'EOT'
set -euo pipefail
checkout=$1 place=$2
shift 2
cd "$place"
root=$place logs=$place/build/logs jobs=2
die() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}
for file in "$checkout"/tools/dev/*.sh; do source "$file"; done
ensure_packages() { :; }
need_llvm() { clang_format=clang-format-16 clang_tidy=clang-tidy-16 clangxx=bash; }
configure_and_build() { [ "$1" != "${broken_build:-}" ] || return 3; }
run_ctest() {
  printf '<?xml version="1.0"?>\n<testsuite name="x"\n tests="10"\n failures="%d"\n disabled="0"\n skipped="1">\n' "${failures:-0}" >"$logs/$1.xml"
  printf '<testcase name="%s/one" time="0.5"/>\n</testsuite>\n' "$1" >>"$logs/$1.xml"
  [ "${failures:-0}" -eq 0 ]
}
has_wheel_tools() { true; }
find_torch_python() { python=python3; }
install_tools() { printf 'note: all there\n'; }
check_format() { true; }
check_wheel() { printf '7 passed, 1 skipped in 0.1s\n' && [ "${broken_wheel:-no}" = no ]; }
check_extension_sanitized() { true; }
check_collector() { printf 'Ran 5 tests in 0.1s\n'; }
configure_alone() { true; }
check_each_alone() { [ "${STEPCAST_ALONE:-}" != all ] || echo all >>"$place/all"; }
lint_changed() { [ "${STEPCAST_LINT:-}" != all ] || echo all >>"$place/all"; }
fuzz_target_names() { printf 'json\n'; }
fuzz_targets() { true; }
find_data() { :; }

# not_root COMMAND...: as somebody who would need sudo, without a terminal.
not_root() {
  id() { printf '1000\n'; }
  sudo() { printf 'sudo was run\n'; }
  consent=no
  "$@" </dev/null
}
agreed() {
  id() { printf '1000\n'; }
  sudo() { printf 'sudo was run\n'; }
  consent=yes
  ask_to_install g++
  printf 'goes on\n'
}
rooms() { rooms_of "$@" | paste -sd' '; }
repository() {
  git init -q -b main "$place/repository"
  cd "$place/repository"
  commit() { git add -A && git -c user.name=x -c user.email=x@x commit -qm x; }
  mkdir -p src
  local file
  for file in first b a; do
    echo >src/$file.cpp
    commit
  done
  git checkout -q -b work HEAD~2
  for file in d c; do
    echo >src/$file.cpp
    commit
  done
  echo >src/e.h
  echo >src/e.cpp
  mkdir -p build/alone
  root=$PWD
  for file in c d e first; do printf '"file": "%s/src/%s.cpp"\n' "$root" $file; done >build/alone/compile_commands.json
  local files=() left=0
  newest_sources 2 src
  printf '%s, %d left\n' "${files[*]}" "$left"
}

"$@"
EOT

# expect NAME CODE LAST_LINE COMMAND...
expect() {
  local name=$1 code=$2 last=$3 got=0 said
  shift 3
  said=$(bash "$place/stand_ins.sh" "$checkout" "$place" "$@" 2>&1) || got=$?
  if [ $got -ne "$code" ] || [ "$(tail -n 1 <<<"$said")" != "$last" ]; then
    printf '%s\n' "$said"
    wrong "$name: exit code $got and the last line above, expected $code and: $last"
  fi
}

mkdir -p "$place/build/logs"
# No index is reached, so nothing of PyTorch runs, and nothing fails. 9 and 9 of ctest, 7 of the wheel and 5 of the collector pass.
expect 'all is well' 0 '30 passed, 0 failed, 3 skipped' verb_test
grep -q '^note: skipped, PyTorch is not in' "$place/build/logs/programs_of_PyTorch.log" || wrong 'dry runs do not say that they were skipped'
expect 'night' 0 '39 passed, 0 failed, 4 skipped' verb_nightly
[ "$(cat "$place/all" 2>/dev/null)" = $'all\nall' ] || wrong 'nightly leaves sources out'
expect 'parts of a night' 0 '0 passed, 0 failed, 0 skipped' verb_nightly lint fuzz
expect 'an unknown part' 1 "dev: unknown part 'x' (release, sanitize, fuzz, thread, format, alone, lint, torch)" verb_nightly x
expect 'parts of the tests' 0 '0 passed, 0 failed, 0 skipped' verb_test format
failures=2 expect 'tests that fail' 1 '26 passed, 4 failed, 3 skipped' verb_test
broken_wheel=yes expect 'a wheel that fails' 1 '30 passed, 1 failed, 3 skipped' verb_test
broken_build=sanitize expect 'a build that fails' 1 '21 passed, 1 failed, 2 skipped' verb_test
broken_build=release expect 'no release build' 1 '9 passed, 1 failed, 1 skipped' verb_test
STEPCAST_SKIP_WHEEL=1 STEPCAST_SKIP_COLLECTOR=1 expect 'less is asked for' 0 '18 passed, 0 failed, 4 skipped' verb_test

# --------------------------------------------------------------------------------------------- packages, rooms

expect 'packages without a question' 2 'dev: type it, then try again; with --yes this program runs it' not_root ask_to_install g++
expect 'packages with --yes' 0 'goes on' agreed
expect 'rooms of files' 0 'apps base formats lab platform trace' rooms src/stepcast/trace/detail/x.h tests/base/a_test.cpp \
  apps/stepcast/x.cpp lab/y.cpp platforms/p.json docs/x.md tests/support/a.h src/stepcast/formats/tables/x.csv
# What is not committed comes first, then the newest commit; a limit leaves out the oldest.
expect 'the newest sources' 0 'src/e.cpp src/c.cpp, 1 left' repository

[ $problems -eq 0 ] && printf 'ok\n'
