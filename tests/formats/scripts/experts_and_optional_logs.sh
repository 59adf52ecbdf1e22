#!/bin/bash
# Experts, arrays for everything, logs that only a key in the environment switches on.
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"4"}
NODE_RANK=${RANK:-"0"}
TOKENIZER_MODEL=$2
LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --node_rank $NODE_RANK
)
MODEL=(
    --use-mcore-models --disable-bias-linear
    --seq-length 4096 --max-position-embeddings 32768
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --normalization RMSNorm --position-embedding-type rope --no-position-embedding --swiglu
    --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 8 --rotary-base 1000000
)
EXPERTS=(
    --num-experts 8 --moe-router-topk 2 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-2
    --moe-grouped-gemm --moe-token-dispatcher-type alltoall --overlap-param-gather --overlap-grad-reduce
)
DATA=(--tokenizer-type Llama2Tokenizer --tokenizer-model ${TOKENIZER_MODEL} --data-path $3 --split 99990,8,2)
TRAINING=(--micro-batch-size 1 --global-batch-size 256 --lr 1e-4 --bf16)
DEGREES=(
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 --expert-model-parallel-size 8
    --use-distributed-optimizer --sequence-parallel
)
LOGS=(
    --log-interval 1 --save-interval 10000 --eval-interval 1000 --eval-iters 10 --save $1
    --no-load-optim --no-load-rng
)
if [ -n "${WANDB_API_KEY}" ]; then
    LOGS+=(
        --wandb-project ${WANDB_PROJECT:-"one"}
        --wandb-exp-name ${WANDB_NAME:-"two"}
    )
fi
torchrun ${LAUNCH[@]} pretrain_gpt.py \
    ${MODEL[@]} \
    ${EXPERTS[@]} \
    ${DATA[@]} \
    ${TRAINING[@]} \
    ${LOGS[@]} \
    ${DEGREES[@]}
