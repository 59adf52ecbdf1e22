#!/usr/bin/env bash
# Writes the expected output of every golden test anew: the first line of a file is the command, the rest what it prints.
# STEPCAST names the tool (default: the release build). Look at the difference before you commit it.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
tool=${STEPCAST:-$root/build/release/stepcast}
cd "$root"
for file in tests/golden/*.golden; do
  read -r command < "$file"
  read -r -a words <<< "${command#\$ stepcast }"
  {
    printf '%s\n' "$command"
    code=0
    "$tool" "${words[@]}" 2> "$file.err" || code=$?
    cat "$file.err"
    if [ "$code" -ne 0 ]; then printf '[exit code %d]\n' "$code"; fi
  } > "$file.new"
  rm -f "$file.err"
  mv "$file.new" "$file"
done
