#!/usr/bin/env bash
# A sweep as an array of four Slurm tasks on a cluster of one node, made here and thrown away, beside the same sweep in
# one process: the merged files must be the same to the byte, also after the array was cancelled half-way and run again.
#
#   tests/sweep/slurm/run.sh build/release/stepcast
#
# Needs root. Installs slurm-wlm and munge (Debian, Ubuntu) where they are missing; their services are neither needed nor
# touched: own configuration, state, ports and sockets, all in a temporary folder. Exit code 77: no Slurm to be had here.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
stepcast=$(readlink -f "${1:?the stepcast program}")
[ "$(id -u)" -eq 0 ] || { echo "needs root: skipped"; exit 77; }
if ! command -v slurmctld sbatch munged >/dev/null; then
  command -v apt-get >/dev/null || { echo "no slurmctld, and no apt-get to install it: skipped"; exit 77; }
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurm-wlm munge >/dev/null ||
    { echo "slurm-wlm cannot be installed: skipped"; exit 77; }
fi

work=$(mktemp -d /tmp/stepcast-slurm.XXXXXX)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"

# Authentication: a munge daemon with a key of its own.
mkdir -p "$work/munge" "$work/state" "$work/spool"
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
chmod 600 "$work/munge/key"
munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --log-file="$work/munge/log" \
  --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" 2>"$work/munge/err" &
pids+=($!)

host=$(hostname -s)
cpus=$(nproc)
port=$((20000 + RANDOM % 20000))
cat >"$work/slurm.conf" <<CONF
ClusterName=throwaway
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
for _ in $(seq 50); do [ -S "$work/munge/socket" ] && break; sleep 0.1; done
slurmctld -D -c 2>"$work/slurmctld.err" & pids+=($!)
slurmd -D -N "$host" 2>"$work/slurmd.err" & pids+=($!)
for _ in $(seq 300); do sinfo -h -o %T 2>/dev/null | grep -qE 'idle|mixed' && break; sleep 0.2; done
sinfo -h -o %T | grep -qE 'idle|mixed' || { cat "$work"/*.err "$work"/slurm*.log | tail -20; echo "the node does not come up"; exit 1; }

spec=$here/sweep.toml
# The programs that ship with an array keep nothing but this: every task does its share.
cat >"$work/array.sh" <<JOB
#!/bin/sh
exec "$stepcast" sweep "$spec" -o "\$1" --threads 1
JOB
array() { sbatch --wait --parsable --array="$1" -n 1 -c 1 -o "$work/task-%a.log" "$work/array.sh" "$2" >/dev/null; }

env -u SLURM_ARRAY_TASK_ID "$stepcast" sweep "$spec" -o "$work/one" >/dev/null
"$stepcast" sweep "$spec" -o "$work/one" --merge "$work/one.jsonl" >/dev/null

array 0-3 "$work/four"
cat "$work"/task-*.log | grep shard
"$stepcast" sweep "$spec" -o "$work/four" --merge "$work/four.jsonl" >/dev/null
cmp "$work/one.jsonl" "$work/four.jsonl"

# Cancelled half-way, and run again.
id=$(sbatch --parsable --array=1-4 -n 1 -c 1 -o /dev/null "$work/array.sh" "$work/again")
sleep 0.6
scancel "$id"
for _ in $(seq 100); do [ -z "$(squeue -h -j "$id" 2>/dev/null)" ] && break; sleep 0.1; done
array 1-4 "$work/again"
"$stepcast" sweep "$spec" -o "$work/again" --merge "$work/again.jsonl" >/dev/null
cmp "$work/one.jsonl" "$work/again.jsonl"
echo "an array of four tasks = one process: $(wc -l <"$work/one.jsonl") rows, $(md5sum <"$work/one.jsonl" | cut -c1-12)"
