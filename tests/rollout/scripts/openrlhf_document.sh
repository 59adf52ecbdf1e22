read -r -d '' training_commands <<EOF
openrlhf.cli.train_ppo_ray \
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture --actor_num_nodes 2 --actor_num_gpus_per_node 8 \
   --vllm_num_engines 8 --vllm_tensor_parallel_size 2 --colocate_all_models --ref_num_nodes 2 --ref_num_gpus_per_node 8 \
   --train_batch_size 128 --rollout_batch_size 512 --n_samples_per_prompt 2 --micro_train_batch_size 4 \
   --prompt_max_len 1024 --generate_max_len 1024 --zero_stage 3 --ring_attn_size 2 --ring_head_stride 2 \
   --lora_rank 32 --target_modules q_proj v_proj --load_in_4bit --bf16 --gradient_checkpointing --init_kl_coef 0
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
