#!/bin/bash
# Another script launches; this one holds what it is told.
INTERLEAVED="YES"
if [ ${INTERLEAVED} == "YES" ]; then
    STAGES="--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 6"
elif [ ${INTERLEAVED} == "NO" ]; then
    STAGES="--pipeline-model-parallel-size 2"
else
    echo "neither"
    exit 1
fi
MODEL_OPTIONS="--num-layers 24 --hidden-size 1024 --num-attention-heads 16 \
    --seq-length 1024 --max-position-embeddings 1024 \
    --micro-batch-size 1 --global-batch-size 32 --bf16"
. `pwd`/launch.sh
exit 0
