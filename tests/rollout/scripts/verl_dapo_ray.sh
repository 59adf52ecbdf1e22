#!/usr/bin/env bash
response=$((1024 * 20))
bsz=512
WORKING_DIR=${WORKING_DIR:-"${PWD}"}
ray job submit --no-wait --runtime-env="${WORKING_DIR}/env.yaml" -- python3 -m recipe.dapo.main_dapo \
    data.max_prompt_length=2048 data.max_response_length=${response} \
    data.gen_batch_size=$((bsz * 3)) data.train_batch_size=${bsz} \
    actor_rollout_ref.rollout.n=16 algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True \
    actor_rollout_ref.model.path="${HOME}/models/models--Qwen--Qwen2.5-32B/snapshots/main" \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$((2048 + response)) \
    actor_rollout_ref.actor.fsdp_config.param_offload=True actor_rollout_ref.actor.fsdp_config.fsdp_size=32 \
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=8 \
    actor_rollout_ref.ref.ulysses_sequence_parallel_size=8 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=4 trainer.n_gpus_per_node=8 trainer.nnodes=16
