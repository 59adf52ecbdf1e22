#!/bin/bash
#SBATCH -N 128
# 126 layers on 16 stages: the first and the last have one less.
export NVTE_FUSED_ATTN=1
srun bash -c '
torchrun --nnodes=$SLURM_NNODES --nproc-per-node=8 pretrain_gpt.py \
  --num-layers 126 --hidden-size 16384 --ffn-hidden-size 53248 --num-attention-heads 128 \
  --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 131072 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --vocab-size 128256 --make-vocab-size-divisible-by 128 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --context-parallel-size 1 \
  --pipeline-model-parallel-layout "Et*7|(t*8|)*14,t*7L" \
  --micro-batch-size 1 --global-batch-size 256 --bf16 --sequence-parallel --use-distributed-optimizer'
