#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
srun --nodes=1 docker exec "${CONTAINER}" ray start --head --num-gpus 8 --block &
srun --overlap --nodes=1 docker exec -it "${CONTAINER}" bash -c "python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=gae data.train_batch_size=256 data.max_prompt_length=512 data.max_response_length=512 \
    actor_rollout_ref.model.path=/mnt/Qwen2.5-7B-Instruct actor_rollout_ref.model.lora_rank=64 \
    actor_rollout_ref.model.target_modules=[q_proj,v_proj] actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size=32 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 critic.model.path=/mnt/Qwen2.5-7B-Instruct \
    trainer.n_gpus_per_node=${SLURM_GPUS_PER_NODE} trainer.nnodes=${SLURM_NNODES}" | tee log
