# What a condition decides is not known; what matters is said elsewhere.
set -euo pipefail
if [ -n "${DEBUG:-}" ]; then
  LOG_INTERVAL=1
else
  LOG_INTERVAL=100
fi
NUM_LAYERS=${NUM_LAYERS:-32}
HIDDEN=$((128 * 32))
ARGS=(--num-layers "$NUM_LAYERS" --hidden-size $HIDDEN --num-attention-heads 32)
ARGS+=(--seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000)
ARGS+=(--micro-batch-size 1 --global-batch-size 32 --bf16 --log-interval $LOG_INTERVAL)
for i in 1 2 3; do echo "waiting $i"; done
torchrun --nproc-per-node=8 --nnodes=1:4 pretrain_gpt.py "${ARGS[@]}" --tensor-model-parallel-size 4 > out.log 2> err.log &
wait
