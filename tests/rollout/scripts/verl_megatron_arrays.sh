#!/usr/bin/env bash
set -xeuo pipefail
python3 examples/data_preprocess/gsm8k.py --local_dir ~/data/gsm8k
NNODES=${NNODES:-4}
RAY_DATA_HOME=${RAY_DATA_HOME:-"${HOME}/verl"}
MODEL_PATH=${MODEL_PATH:-"${RAY_DATA_HOME}/models/Qwen3-30B-A3B-Base"}
prompt=$((1024 * 2)); answer=$((1024 * 8))
COMMON_TP=${COMMON_TP:-2}
ACTOR_TP=${ACTOR_TP:-$COMMON_TP}
ACTOR_VPP=${ACTOR_VPP:-null}
DATA=(
    data.train_files="$HOME/data/train.parquet"
    data.train_batch_size=512  # prompts
    data.max_prompt_length=$prompt
    data.max_response_length=${answer}
)
ACTOR=(
    actor_rollout_ref.model.path="$MODEL_PATH"
    actor_rollout_ref.actor.ppo_mini_batch_size=128
    actor_rollout_ref.actor.use_dynamic_bsz=True
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$(((prompt + answer) * 1))
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${ACTOR_TP}
    actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2
    actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size=${ACTOR_VPP}
    actor_rollout_ref.actor.megatron.context_parallel_size=2
    actor_rollout_ref.actor.megatron.expert_model_parallel_size=8
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1
)
python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml'\
    algorithm.adv_estimator=grpo "${DATA[@]}" "${ACTOR[@]}" \
    actor_rollout_ref.rollout.n=16 actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
    trainer.logger=['console','wandb'] trainer.n_gpus_per_node=8 trainer.nnodes="${NNODES}" $@ 2>&1 | tee run.log
python3 -m verl.model_merger merge --backend megatron
