# What is written by the program: golden outputs, docs, the site.

verb_golden() {
  [ -f tests/golden/regenerate.sh ] || die 'there are no golden outputs: tests/golden/regenerate.sh is missing'
  find_data
  build_preset release
  phase 'release build' configure_and_build release || exit 1
  STEPCAST=$root/build/release/stepcast bash tests/golden/regenerate.sh
}

verb_docs() {
  build_preset release
  phase 'build the tools' configure_and_build release --target stepcast_cli stepcast_lab_cli || exit 1
  local page
  for page in docs/reference/*.md docs/schemas/*.json; do
    build/release/stepcast-lab reference "$(basename "$page" .md)" >build/page.md && mv build/page.md "$page"
  done
  python3 python/write_flags.py build/release/stepcast
  python3 docs/output.py --write build/release/stepcast
  python3 docs/pictures.py --write build/release/stepcast
}

verb_site() {
  local tools=build/site-tools
  mkdir -p "$logs"
  if ! { [ -x $tools/bin/mkdocs ] || { python3 -m venv --clear $tools && $tools/bin/pip install -q mkdocs-material; }; } >"$logs/site_tools.log" 2>&1; then
    printf 'skipped: mkdocs-material could not be installed: build/logs/site_tools.log\n'
    return 0
  fi
  build_preset release
  phase 'build the tool' configure_and_build release --target stepcast_cli || exit 1
  # Warnings count for --strict only where they are logged: without --quiet.
  NO_MKDOCS_2_WARNING=1 $tools/bin/mkdocs build --strict >"$logs/site.log" 2>&1 ||
    { grep -E 'WARNING|ERROR' "$logs/site.log" >&2; die 'a page or a link of the docs is wrong: build/logs/site.log'; }
  python3 packaging/record_answers.py build/release/stepcast build/site/recorded.json || die 'the first page has no answers'
  if grep -rlE '<(script|img|iframe)[^>]*src="https?://|<link[^>]*stylesheet[^>]*href="https?://' build/site --include=*.html; then
    die 'these pages ask others for files'
  fi
  printf '%s pages: build/site/index.html\n' "$(find build/site -name '*.html' | wc -l)"
}
