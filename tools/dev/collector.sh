# The collector, which measures the GPU of a machine.

# Sets `python` to a python3 that can import torch.
find_torch_python() {
  local candidate
  for candidate in ${STEPCAST_PYTHON:-python3 /usr/bin/python3}; do
    if "$candidate" -c 'import torch' >/dev/null 2>&1; then
      python=$candidate
      return 0
    fi
  done
  return 1
}

# Its unit tests, a quick run on the CPU, and a platform calibrated with what that run measured.
check_collector() {
  local out=$root/build/collector start python result
  find_torch_python || return 1
  (cd python/tests && PYTHONPATH=$root/python "$python" -m unittest discover -s collect -t .) || return 1
  rm -rf "$out"
  start=$SECONDS
  PYTHONPATH=$root/python "$python" -m stepcast.collect all --quick --device cpu --out "$out" || return 1
  start=$((SECONDS - start))
  result=$("$python" python/tests/collect/end_to_end.py build/release/stepcast "$out") || return 1
  printf '%s\n' "$result"
  printf 'note: quick run %d s; %s\n' $start "$(tail -n 1 <<<"$result")"
}

count_collector() {
  local n log
  log=$(log_of collector)
  [ -f "$log" ] || return 0
  n=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$log" | awk 'NR == 1')
  passed=$((passed + ${n:-0}))
}

verb_collect() {
  local python=''
  find_torch_python || die 'no python3 here can import torch: install PyTorch, or name a python3 in STEPCAST_PYTHON'
  PYTHONPATH=$root/python exec "$python" -m stepcast.collect "$@"
}
