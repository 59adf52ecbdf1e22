#!/bin/bash
# Layers with a state, of which shares attend and feed forward; one text of options.
SCALE="small"
case "${SCALE}" in
    "small")
        TP=1
        LAYERS=48
        WIDTH=1024
        ;;
    "large")
        TP=4
        LAYERS=56
        WIDTH=4096
        ;;
    *)
        echo "unknown scale"
        exit 1
        ;;
esac
SAMPLES=1000000
WARMUP=50000
DECAY=$((SAMPLES - WARMUP))
options=" \
    --tensor-model-parallel-size ${TP} \
    --num-layers ${LAYERS} \
    --hidden-size ${WIDTH} \
    --num-attention-heads 16 \
    --hybrid-attention-ratio 0.08 \
    --hybrid-mlp-ratio 0.5 \
    --position-embedding-type none \
    --seq-length 4096 --max-position-embeddings 4096 \
    --lr-decay-samples ${DECAY} \
    --tokenizer-type GPTSentencePieceTokenizer --tokenizer-model $2 \
    --micro-batch-size 4 --global-batch-size 32 \
    --spec some.specs stack_spec \
    --bf16"
torchrun --nproc_per_node 8 ../../pretrain_mamba.py ${options}
