#!/bin/sh
# run.sh STEPCAST OUT: makes a page of every verb and has check_reports.mjs open them. From the root of the checkout.
# Exit code 77: there is no Node, or what check_reports.mjs needs is missing.
set -eu
stepcast=$1 out=$2
here=$(dirname "$0")
if ! command -v node >/dev/null; then
  echo 'skipped: no node'
  exit 77
fi
modules=${STEPCAST_BROWSER_MODULES:-$PWD/build/browser/node_modules}
export NODE_PATH="$modules${NODE_PATH:+:$NODE_PATH}"
node "$here/check_reports.mjs" --can-run || exit $?
rm -rf "$out"
mkdir -p "$out"
page() { # NAME VERB ARGUMENTS...
  name=$1
  shift
  "$stepcast" "$@" --report "$out/$name.html" >"$out/$name.txt"
}
page predict predict --model llama-3-8b --gpus 64 --pp 4 --gbs 128
page predict-long predict --model llama-3-70b --gpus 512 --tp 4 --pp 16 --gbs 4096 --sequence-parallel --use-distributed-optimizer
page predict-recommendation predict --model dlrm-dcnv2-mlperf --gpus 8
page predict-trace predict --trace examples/dlrm_4gpu --platform dgx-h100 --scenarios 200 --jitter 5%
page predict-batches predict --trace examples/dlrm_4gpu --batch 1024,2048,4096,8192
page predict-scaling predict --model dlrm-dcnv2-mlperf --gpus 8,16,32,64,128
page predict-log predict --from-log tests/golden/logs/train.log
page replay replay examples/dlrm_4gpu
page replay-scenarios replay examples/dlrm_4gpu --scenarios 500 --jitter host=20%,gpu=2%
page plan plan --model llama-3-8b --gpus 32 --gbs 128
page training plan --model llama-3-8b --platform dgx-a100,dgx-h100 --gpus 32,64 --gbs 256 --train-tokens 1T --within 90d
page shard shard --generate 2021 --gpus 8 --evaluations 100
page compare compare "$out/predict.html" "$out/predict-long.html"
page compare-near compare "$out/predict.html" tests/golden/logs/train.log
page shard-many shard --generate 2021 --gpus 128 --evaluations 20
exec node "$here/check_reports.mjs" "$out/screenshots" "$out"/*.html
