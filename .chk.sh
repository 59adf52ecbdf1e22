#!/bin/bash
# usage: chk file...: syntax check with flags of a neighbour
cd /work/main
flags=$(python3 - <<'P'
import json
for e in json.load(open('build/release/compile_commands.json')):
    f=e['file']
    if f.endswith('plan/training_plan.cpp') or ('unity' in f and '/stepcast.dir' in f and 'cold' not in f):
        c=e['command'].split()
        out=[];skip=False
        for w in c[1:]:
            if skip: skip=False; continue
            if w in('-o','-c','-include','-MF','-MT'): skip=True; continue
            if w.startswith('-O') or w in('-MD','-Winvalid-pch'): continue
            out.append(w)
        print(' '.join(x for x in out if not x.endswith('.cxx') and not x.endswith('.cpp'))); break
P
)
for f in "$@"; do echo "== $f"; g++ $flags -Isrc -I. -Ibuild/release/generated -fsyntax-only "$f" 2>&1 | head -${N:-30}; done
