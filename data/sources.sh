#!/usr/bin/env bash
# Lists where the measured data of the accuracy tables comes from, and how to look at it:
#   data/sources.sh               every source
#   data/sources.sh kernels       those of one folder of $STEPCAST_DATA
set -euo pipefail
python3 - "${1:-}" "$(dirname "$0")/sources.csv" <<'PYTHON'
import csv, sys
wanted, path = sys.argv[1], sys.argv[2]
for row in csv.DictReader(open(path, encoding="utf-8")):
    if wanted and wanted not in row["folder"]:
        continue
    print(f'{row["folder"]}: https://github.com/{row["repository"]} at {row["commit"]} ({row["licence"]})')
PYTHON
