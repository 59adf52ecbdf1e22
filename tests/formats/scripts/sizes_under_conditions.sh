#!/bin/bash
# Megatron-DeepSpeed style: one script for several sizes.
MODEL_SIZE=${MODEL_SIZE:-13}
NUM_GPUS=32
if [[ ${MODEL_SIZE} == 7 ]]; then
    HIDDEN_SIZE=4096
    NUM_LAYERS=32
    NUM_HEADS=32
    FFN=11008
elif [[ ${MODEL_SIZE} == 13 ]]; then
    HIDDEN_SIZE=5120
    NUM_LAYERS=40
    NUM_HEADS=40
    FFN=13824
else
    echo "invalid model size"; exit 1
fi
SEQ=4096
TP=4
PP=1
USE_FLASH=1
EXTRA=""
if [ $USE_FLASH -eq 1 ]; then
  EXTRA="$EXTRA --use-flash-attn"
fi
MICRO_BATCH=1
GLOBAL_BATCH=$(( MICRO_BATCH * NUM_GPUS / TP * 4 ))
torchrun --nnodes $((NUM_GPUS / 8)) --nproc_per_node 8 pretrain_gpt.py \
  --num-layers $NUM_LAYERS --hidden-size $HIDDEN_SIZE --num-attention-heads $NUM_HEADS --ffn-hidden-size $FFN \
  --seq-length $SEQ --max-position-embeddings $SEQ --vocab-size 32000 --micro-batch-size $MICRO_BATCH \
  --global-batch-size $GLOBAL_BATCH --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --bf16 --swiglu $EXTRA
