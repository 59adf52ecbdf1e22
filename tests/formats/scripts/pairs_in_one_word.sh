#!/bin/bash
# Arrays whose elements hold a flag and its value, sizes that a condition chooses, a check with an exit.
TOKENIZER=${1:-"MOCK"}
DATA=${2:-"MOCK"}
mkdir -p "$(dirname "$TOKENIZER")"
SCRIPT="pretrain_gpt.py"
DTYPE="fp8"
SEQ=8192
LAUNCH=(
    --nproc_per_node 8
    --nnodes 1
)
MODEL=(
    --num-layers 32
    --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --seq-length $SEQ
    --max-position-embeddings $SEQ   # rotated anyway
    --position-embedding-type rope --swiglu --disable-bias-linear --untie-embeddings-and-output-weights
)
TRAINING=(--micro-batch-size 1 --global-batch-size 128 --bf16 --recompute-activations)
NARROW=()
if [[ "$DTYPE" == "fp8" ]]; then
    NARROW+=(
        "--fp8-format hybrid"
        "--fp8-amax-history-len 1024"
    )
fi
WORDS=()
if [[ "$TOKENIZER" == "MOCK" ]] || [[ "$DATA" == "MOCK" ]] || [[ -z "$TOKENIZER" ]]; then
    WORDS+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128256" "--split '99,1,0'")
else
    WORDS+=("--tokenizer-model $TOKENIZER")
fi
if [ ! -f "$SCRIPT" ]; then
    echo "no $SCRIPT here" >&2
    exit 1
fi
torchrun ${LAUNCH[@]} "$SCRIPT" "${MODEL[@]}" "${TRAINING[@]}" "${NARROW[@]}" "${WORDS[@]}"
