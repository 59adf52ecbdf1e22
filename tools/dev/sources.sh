# Sources: how they are laid out, what the linter says of them, and whether each compiles alone.

# Every C++ source of the project, whether committed or not.
sources() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -co --exclude-standard -- '*.h' '*.cpp' | while IFS= read -r file; do
      if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done | sort -u
  else
    find apps bench calibrate examples fuzz lab src tests \( -name '*.h' -o -name '*.cpp' \) 2>/dev/null | sort
  fi
}

# Files that changed since this branch left the main line, or since the commit before the last: those that are not committed,
# then commit by commit, the newest first. Fails where there is nothing to compare with.
changed_files() {
  local base='' main
  for main in origin/HEAD origin/main main; do
    base=$(git merge-base HEAD "$main" 2>/dev/null) || continue
    [ "$base" != "$(git rev-parse HEAD)" ] && break
    base=''
  done
  [ -n "$base" ] || base=$(git rev-parse -q --verify HEAD~1 2>/dev/null) || return 1
  {
    uncommitted_files
    git log --format= --name-only --diff-filter=d "$base"..HEAD --
  } | existing_once
}

uncommitted_files() { git diff --name-only --diff-filter=d HEAD -- && git ls-files -o --exclude-standard; }

existing_once() {
  awk 'NF && !seen[$0]++' | while IFS= read -r file; do
    if [ -f "$file" ]; then printf '%s\n' "$file"; fi
  done
}

changed_sources() { changed_files | { grep -E '\.(h|cpp)$' || true; }; }


# ------------------------------------------------------------------------------------------------------ format

check_format() {
  local wrong=()
  mapfile -t wrong < <(sources | xargs -r "$clang_format" --style=file --dry-run 2>&1 |
    sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort -u)
  if [ ${#wrong[@]} -eq 0 ]; then return 0; fi
  printf 'not formatted (./dev format does it):\n'
  printf '  %s\n' "${wrong[@]}"
  if [ "$clang_format" != "clang-format-$llvm_preferred" ]; then
    printf 'note: %d files differ, not counted: %s formats differently from clang-format-%s\n' \
      ${#wrong[@]} "$clang_format" $llvm_preferred
    return 0
  fi
  return 1
}

# Formats the sources whose names it reads.
format_sources() {
  if [ "$clang_format" != "clang-format-$llvm_preferred" ]; then
    printf 'dev: %s formats differently from clang-format-%s in places\n' "$clang_format" $llvm_preferred >&2
  fi
  xargs -r "$clang_format" --style=file -i
}

verb_format() {
  need_llvm clang-format
  sources | format_sources
}

# ------------------------------------------------------------------------------------------------ alone and lint

# The commands that compile each source by itself, without precompiled headers: for the linter, which cannot use the headers
# that another compiler precompiled.
configure_alone() {
  cmake --preset release -B build/alone -DSTEPCAST_PCH=OFF -DSTEPCAST_UNITY=0 -DSTEPCAST_BUILD_TESTS=ON -DSTEPCAST_BUILD_BENCH=ON
}

# The compiled sources among the named files, in their order; a header stands for the source of the same name.
compiled_sources() {
  local file
  for file in "$@"; do
    case $file in *.h) file=${file%.h}.cpp ;; esac
    if [ -f "$file" ] && grep -qF "\"file\": \"$root/$file\"" build/alone/compile_commands.json; then
      printf '%s\n' "$file"
    fi
  done | awk '!seen[$0]++'
}

# newest_sources MOST FOLDER...: sets `files` to the compiled sources below the FOLDERs that changed last, at most so many (all:
# every source there is), and `left` to how many changed ones that leaves.
newest_sources() {
  local most=$1 changed=() compiled=() folders
  shift
  folders=$(printf '|%s' "$@")
  if [ "$most" = all ]; then
    mapfile -t changed < <(sources | grep '\.cpp$')
  else
    mapfile -t changed < <(changed_sources)
  fi
  mapfile -t compiled < <(compiled_sources ${changed[@]+"${changed[@]}"} | { grep -E "^(${folders:1})/" || true; })
  files=(${compiled[@]+"${compiled[@]}"})
  if [ "$most" != all ]; then files=("${files[@]:0:$most}"); fi
  left=$((${#compiled[@]} - ${#files[@]}))
}

left_note() { if [ "$1" -gt 0 ]; then printf '; %d that changed are left to ./dev nightly' "$1"; fi; }

# The library's sources are compiled a dozen as one: here each of those that changed last is read by itself, so that what it uses
# it includes. After configure_alone.
check_each_alone() {
  local files=() left=0 file reads=build/alone/reads
  newest_sources "${STEPCAST_ALONE:-40}" src
  for file in ${files[@]+"${files[@]}"}; do printf '%s/%s\n' "$root" "$file"; done >"$reads.names"
  ninja -C build/alone -t commands stepcast | { grep -F -f "$reads.names" || true; } |
    sed -nE '/shipped_texts\.cpp$/d; s/^[^ ]*ccache //; s/ -o [^ ]+\.o / /; s/ -MD -MT [^ ]+ -MF [^ ]+ / /; s/ -c / -fsyntax-only /p' >"$reads"
  (cd build/alone && xargs -a reads -d '\n' -P "$jobs" -I{} sh -c '{}') || return 1
  printf 'note: %d sources%s\n' "$(wc -l <"$reads")" "$(left_note "$left")"
}

# A source that was found clean is not looked at again until it, a header, or the checks change.
lint_one() {
  local file=$1 key
  key=$(printf '%s\n' "$lint_common" "$file" | cat - "$file" | sha256sum | cut -d' ' -f1)
  if [ -f "build/lint/clean/$key" ]; then return 0; fi
  printf '%s\n' "$file"
  if "$clang_tidy" -p build/alone --quiet --extra-arg=-Wno-unknown-warning-option "$file" 2>build/lint/clean/stderr.$$; then
    : >"build/lint/clean/$key"
    rm -f build/lint/clean/stderr.$$
    return 0
  fi
  grep -v -e 'warnings generated' -e '^Suppressed' -e '^Use -header-filter' build/lint/clean/stderr.$$ || true
  rm -f build/lint/clean/stderr.$$
  return 1
}

# lint_files NOTE FILE...
lint_files() {
  local note=$1
  shift
  if [ $# -eq 0 ]; then
    printf 'note: no source to look at\n'
    return 0
  fi
  mkdir -p build/lint/clean
  lint_common=$({
    "$clang_tidy" --version
    cat .clang-tidy
    sources | grep '\.h$' | xargs -r cat
  } | sha256sum)
  export -f lint_one
  export clang_tidy lint_common
  # shellcheck disable=SC2016 # expanded by the shell that it starts
  printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'lint_one "$1"' _ {} || return 1
  printf 'note: %d sources clean%s\n' $# "$note"
}

lint_changed() {
  local files=() left=0
  newest_sources "${STEPCAST_LINT:-12}" apps bench calibrate examples fuzz lab src tests
  lint_files "$(left_note "$left")" ${files[@]+"${files[@]}"}
}

verb_lint() {
  need_llvm clang-tidy
  build_preset release
  phase 'configure' configure_alone || exit 1
  local named=() files=()
  if [ $# -gt 0 ]; then named=("$@"); else mapfile -t named < <(sources | grep '\.cpp$'); fi
  mapfile -t files < <(compiled_sources ${named[@]+"${named[@]}"})
  STEPCAST_LOG_LINES=400 phase 'lint' lint_files '' ${files[@]+"${files[@]}"}
}
