python tools/preprocess_data.py --input data.json --output-prefix my --workers 8
export NCCL_DEBUG=WARN WANDB_MODE=offline
OMP_NUM_THREADS=1 torchrun --nproc_per_node 8 \
  pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
  --max-position-embeddings 2048 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 8 --bf16 \
  --num-experts 8 --expert-model-parallel-size 8 && echo done
