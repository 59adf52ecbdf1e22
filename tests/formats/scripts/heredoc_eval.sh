#!/usr/bin/env bash
set -ex
ds_config=ds.json
ZERO_STAGE=1
cat <<EOT > $ds_config
{
  "train_batch_size": 256,
  "zero_optimization": {"stage": $ZERO_STAGE},
  "bf16": {"enabled": true}
}
EOT
cat > hostfile <<- 'EOF'
	worker-1 slots=8
	worker-2 slots=8
EOF
declare -a args=(--num-layers 24 --hidden-size 2048)
readonly HEADS=16
let SEQ=1024*2
args+=( --num-attention-heads "${HEADS}" --seq-length ${SEQ}
        --max-position-embeddings ${SEQ} )
cmd="deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py ${args[*]} \
 --micro-batch-size 4 --global-batch-size 256 --vocab-size 50257 --bf16 --zero-stage=$ZERO_STAGE"
echo $cmd
eval ${cmd} 2>&1 | tee -a out.log
