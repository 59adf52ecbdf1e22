#!/bin/bash
# An encoder, whose vocabulary stands in the file of its tokenizer.
GPUS=8
VOCAB=$2
LAUNCH=(--nproc_per_node $GPUS --nnodes 1)
MODEL=(
    --num-layers 24
    --hidden-size 1024
    --num-attention-heads 16
    --seq-length 512
    --max-position-embeddings 512
)
TRAINING=(--micro-batch-size 4 --global-batch-size 32 --fp16 --lr 0.0001)
DATA=(--data-path $3 --vocab-file $VOCAB --split 949,50,1)
torchrun ${LAUNCH[@]} pretrain_bert.py ${MODEL[@]} ${TRAINING[@]} --tensor-model-parallel-size $GPUS ${DATA[@]}
