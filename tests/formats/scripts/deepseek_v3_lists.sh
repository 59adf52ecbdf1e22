#!/bin/bash
# The form of recipes for models with experts: lists by topic, a layout of stages.
export PROFILE=${PROFILE:-0}
NNODES=${NNODES:-128}
PP=${PP:-16}
EP=${EP:-64}
MBS=1 GBS=8192
MODEL=(
    --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
    --seq-length 4096 --max-position-embeddings 4096 --vocab-size 129280
    --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512
    --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128
    --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
    --use-rotary-position-embeddings --mtp-num-layers 1
)
MOE=(
    --num-experts 256 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048
    --moe-router-topk 8 --moe-layer-freq [0]*3+[1]*58
)
PARALLEL=(
    --pipeline-model-parallel-size $PP --expert-model-parallel-size $EP --use-distributed-optimizer
    --pipeline-model-parallel-layout "Et*3|(tt|)*29,m|L"
)
if [[ ${PROFILE} == 1 ]]; then
    PARALLEL+=( --profile --profile-step-start 10 )
    NNODES=1
fi
torchrun --nproc_per_node 8 --nnodes ${NNODES} --master_addr $(scontrol show hostnames | head -n 1) \
    ${MEGATRON_PATH}/pretrain_gpt.py ${MODEL[@]} ${MOE[@]} ${PARALLEL[@]} \
    --micro-batch-size ${MBS} --global-batch-size ${GBS} --bf16 "$@" \
    2>&1 | tee ${LOG_DIR}/$(date +%F).log
