#!/usr/bin/env bash
set -euo pipefail
function log() { echo "[$(date)] $*"; }
usage() {
  echo "usage: $0 SIZE"
  exit 1
}
function model_args {
  local size=$1
  if [ "$size" = small ]; then
    MODEL="--num-layers 12 --hidden-size 768 --num-attention-heads 12"
  elif [ "$size" = medium ]; then
    MODEL="--num-layers 24 --hidden-size 1024 --num-attention-heads 16"
  else
    usage
  fi
}
train() {
  local tp="$1" pp="$2"
  shift 2
  torchrun --nproc_per_node=8 --nnodes=2 pretrain_gpt.py $MODEL \
    --tensor-model-parallel-size "$tp" --pipeline-model-parallel-size "$pp" "$@"
}
[ -d data ] || mkdir data
[ $# -ge 1 ] && SIZE=$1
log starting
model_args ${SIZE:-medium}
train 2 2 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 \
  --step-batch-size-schedule "0:32 10B:64 20B:128" --train-samples 1000000 --tokenizer-type GPT2BPETokenizer --bf16
