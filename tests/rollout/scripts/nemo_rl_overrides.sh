NUM_NODES=4
uv run examples/run_grpo_math.py --config examples/configs/grpo_math_1B.yaml \
    cluster.num_nodes=$NUM_NODES cluster.gpus_per_node=8 policy.model_name="Qwen/Qwen3-30B-A3B" \
    policy.dtensor_cfg.enabled=False policy.megatron_cfg.enabled=True policy.max_total_sequence_length=4096 \
    policy.megatron_cfg.tensor_model_parallel_size=2 policy.megatron_cfg.expert_model_parallel_size=8 \
    policy.megatron_cfg.moe_permute_fusion=true policy.generation.vllm_cfg.tensor_parallel_size=4 \
    logger.wandb_enabled=True $@ 2>&1 | tee $RUN_LOG
