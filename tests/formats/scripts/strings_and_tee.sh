#!/bin/bash
# Older examples: strings that are cut at their blanks, a pipe into a log.
GPUS_PER_NODE=8
NNODES=2
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank 0"
GPT_ARGS="
    --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 \
    --sequence-parallel \
    --num-layers 24 \
    --hidden-size 1024 \
    --num-attention-heads 16 \
    --seq-length 1024 \
    --max-position-embeddings 1024 \
    --micro-batch-size 4 \
    --global-batch-size 64 \
    --vocab-size 50257 \
    --bf16
"
mkdir -p logs
python -m torch.distributed.launch $DISTRIBUTED_ARGS \
    pretrain_gpt.py \
    $GPT_ARGS --save ${CKPT:-/tmp/ckpt} --distributed-backend nccl 2>&1 | tee logs/run-$(date +%s).log
