# Phases of a longer run. The output of each goes to build/logs/NAME.log; a line says how long it took, and on failure how the
# log ends. Phases are shells of their own: what they set is theirs.

passed=0 failed=0 skipped=0 # tests
failed_phases=()
phase_times=()

log_of() { printf '%s/%s.log' "$logs" "${1// /_}"; }

# Seconds of processor time of a shell and of all that it ran and that has ended; 0 where the system does not say.
cpu_seconds() {
  local stat=()
  if [ -r "/proc/$1/stat" ]; then read -ra stat <"/proc/$1/stat"; fi
  echo $(((${stat[13]:-0} + ${stat[14]:-0} + ${stat[15]:-0} + ${stat[16]:-0}) / $(getconf CLK_TCK 2>/dev/null || echo 100)))
}

# Runs COMMAND and leaves `CODE SECONDS CPU_SECONDS` for end_of_phase. To be called in a shell of its own.
run_phase() {
  local log start=$SECONDS self=$BASHPID code=0
  log=$(log_of "$1")
  shift
  "$@" >"$log" 2>&1 || code=$?
  printf '%d %d %d\n' $code $((SECONDS - start)) "$(cpu_seconds "$self")" >"$log.result"
}

# Says how the phase went; fails if it failed.
end_of_phase() {
  local name=$1 log code wall cpu
  log=$(log_of "$name")
  read -r code wall cpu <"$log.result"
  phase_times+=("$wall $cpu $name")
  if [ "$code" -eq 0 ]; then
    printf '   ok, %d s, %d of processors%s\n' "$wall" "$cpu" "$(phase_note "$log")"
    return 0
  fi
  failed_phases+=("$name")
  tail -n "${STEPCAST_LOG_LINES:-60}" "$log" | sed 's/^/   | /'
  printf '   FAILED (%d), %d s; all of it in %s\n' "$code" "$wall" "${log#"$root"/}"
  return 1
}

# A phase may leave one line for the reader: `note: ...` as the last line of its log.
phase_note() { tail -n 1 "$1" | sed -n 's/^note: /; /p'; }

# phase NAME COMMAND...
phase() {
  mkdir -p "$logs"
  printf '== %s\n' "$1"
  (run_phase "$@")
  end_of_phase "$1"
}

# Phases that run beside what follows: those that have not been reported, and the groups of processes that run them.
beside_names=()
beside_groups=()
trap 'for group in ${beside_groups[@]+"${beside_groups[@]}"}; do kill -- "-$group" 2>/dev/null || true; done' EXIT

# beside NAME FUNCTION [NAME FUNCTION...]: runs these phases one after the other, beside what follows.
beside() {
  local i name
  mkdir -p "$logs"
  for ((i = 1; i < $#; i += 2)); do
    name=${!i}
    beside_names+=("$name")
    rm -f "$(log_of "$name").result"
    printf '== %s (in the background)\n' "$name"
  done
  set -m # a group of processes, which the trap can end
  (
    set +m
    while [ $# -gt 0 ]; do
      (run_phase "$1" "$2")
      shift 2
    done
  ) </dev/null &
  set +m
  beside_groups+=($!)
}

# Reports those that have ended.
report_beside() {
  local name left=()
  for name in ${beside_names[@]+"${beside_names[@]}"}; do
    if [ -s "$(log_of "$name").result" ]; then
      printf '== %s (was in the background)\n' "$name"
      end_of_phase "$name" || true
    else
      left+=("$name")
    fi
  done
  beside_names=(${left[@]+"${left[@]}"})
}

# Waits for all of them.
wait_beside() {
  local group name
  for group in ${beside_groups[@]+"${beside_groups[@]}"}; do wait "$group" || true; done
  beside_groups=()
  report_beside
  for name in ${beside_names[@]+"${beside_names[@]}"}; do
    printf '== %s\n   FAILED: it did not come to its end\n' "$name"
    failed_phases+=("$name")
  done
  beside_names=()
}

# The tests that took longest, with the build they ran in.
slowest_tests() {
  local results preset
  for results in "$logs"/release.xml "$logs"/sanitize.xml "$logs"/thread.xml; do
    [ -f "$results" ] || continue
    preset=$(basename "$results" .xml)
    sed -n "s/.*<testcase name=\"\([^\"]*\)\".* time=\"\([0-9.e+-]*\)\".*/\2 \1 ($preset)/p" "$results"
  done | sort -rg | awk 'NR <= 10' # not head: what it leaves unread ends sort, and with it the whole run
}

report_times() {
  printf '\ntime of each phase, s; of processors\n'
  printf '%s\n' ${phase_times[@]+"${phase_times[@]}"} |
    awk -v wall=$SECONDS '{ printf "%7d %7d  %s\n", $1, $2, substr($0, length($1) + length($2) + 3); cpu += $2 }
                          END { printf "%7d %7d  all\n", wall, cpu }'
  printf 'slowest tests, s\n'
  slowest_tests | awk '{ printf "%7.1f  %s\n", $1, substr($0, length($1) + 2) }'
}

# Adds what a ctest run counted to the totals.
count_ctest() {
  local results=$logs/$1.xml head
  [ -f "$results" ] || return 0
  head=$(tr '\n' ' ' <"$results" | grep -o '<testsuite [^>]*>' | awk 'NR == 1')
  attribute() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" <<<"$head"; }
  local tests failures disabled skips
  tests=$(attribute tests) failures=$(attribute failures) disabled=$(attribute disabled) skips=$(attribute skipped)
  failed=$((failed + failures))
  skipped=$((skipped + disabled + skips))
  passed=$((passed + tests - failures - disabled - skips))
}

# The same of the last line that pytest wrote into the log of a phase. Its failures count as one failed phase.
count_pytest() {
  local log counts
  log=$(log_of "$1")
  [ -f "$log" ] || return 0
  counts=$(grep -E '^[0-9]+ (passed|failed).* in ' "$log" | tail -n 1 || true)
  count_of() { sed -n "s/.*\b\([0-9][0-9]*\) $1.*/\1/p" <<<"$counts"; }
  passed=$((passed + $(count_of passed || true) + 0))
  skipped=$((skipped + $(count_of skipped || true) + 0))
}

# leave_out NAME REASON: a phase that cannot run here counts as a skipped test.
leave_out() {
  printf '== %s\n   skipped: %s\n' "$1" "$2"
  skipped=$((skipped + 1))
}

# The end of a run: its times, and the line that CI reads. Fails if a phase failed; one that failed for another reason than
# tests, which are counted, counts as a failure.
report_all() {
  local name others=0
  for name in ${failed_phases[@]+"${failed_phases[@]}"}; do
    case $name in 'release tests' | 'sanitize tests' | 'thread tests') ;; *) others=$((others + 1)) ;; esac
  done
  failed=$((failed + others))
  report_times
  printf '\n%d s' $SECONDS
  if [ ${#failed_phases[@]} -gt 0 ]; then
    printf '; failed:'
    printf ' [%s]' "${failed_phases[@]}"
    if [ $failed -eq 0 ]; then failed=1; fi
  fi
  printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
  [ ${#failed_phases[@]} -eq 0 ]
}
