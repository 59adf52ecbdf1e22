#!/bin/bash
#SBATCH --nodes=64 --ntasks-per-node=8 --exclusive
# Selene style: options grow, srun runs a shell that runs the script.
NAME="llama2-70b"
DIR=`pwd`
TP=4; PP=4
options=" \
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} \
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
    --group-query-attention --num-query-groups 8 --seq-length 4096 --max-position-embeddings 4096 \
    --micro-batch-size 1 --global-batch-size 512 --swiglu --normalization RMSNorm --disable-bias-linear \
    --untie-embeddings-and-output-weights --use-rotary-position-embeddings --vocab-size 32000"
options+=" --bf16 --use-distributed-optimizer --sequence-parallel"
run_cmd="python -u ${DIR}/pretrain_gpt.py ${options} --tensorboard-dir ${DIR}/logs"
srun -l --container-image "nvcr.io" sh -c "${run_cmd}"
