#!/bin/bash
# Sizes from a case, a function that launches, defaults in defaults.
SIZE=${1:-${SIZE:-70b}}
NODES=${SLURM_NNODES:-16}
GPUS=${SLURM_GPUS_ON_NODE:=8}
case "$SIZE" in
  8b)  L=32; H=4096; A=32; F=14336 ;;
  70b) L=80; H=8192; A=64; F=28672 ;;
  *) echo "unknown" >&2; exit 1 ;;
esac
DEGREES=(8 4)
launch() {
  local tp=$1
  shift
  torchrun --nproc-per-node "$GPUS" --nnodes "$NODES" \
    --rdzv-endpoint "$(hostname):29500" pretrain_gpt.py \
    --num-layers $L --hidden-size $H --num-attention-heads $A --ffn-hidden-size $F \
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
    --tensor-model-parallel-size ${DEGREES[0]} --pipeline-model-parallel-size ${DEGREES[1]} \
    --micro-batch-size 1 --global-batch-size 128 --vocab-size 128256 --bf16 --swiglu "$@"
}
launch 8
