import os
import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer import TransformerConfig

torch.distributed.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
parallel_state.initialize_model_parallel(tensor_model_parallel_size=2, pipeline_model_parallel_size=2)
tensor_parallel.model_parallel_cuda_manual_seed(1)
config = TransformerConfig(num_layers=4, hidden_size=1024, num_attention_heads=16, tensor_model_parallel_size=2, pipeline_model_parallel_size=2,
                           bf16=True, pipeline_dtype=torch.bfloat16, finalize_model_grads_func=finalize_model_grads)
model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=32000, max_sequence_length=1024,
                 pre_process=parallel_state.is_pipeline_first_stage(), post_process=parallel_state.is_pipeline_last_stage()).cuda().bfloat16()
model = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), model)
optimizer = get_megatron_optimizer(OptimizerConfig(lr=1e-4, bf16=True, use_distributed_optimizer=True), [model])


def forward(_, model):
    tokens = torch.randint(0, 32000, (2, 1024), device="cuda")
    positions = torch.arange(1024, device="cuda").expand(2, -1)
    mask = torch.ones(1, 1, 1024, 1024, device="cuda").tril() < 0.5
    losses = model(tokens, positions, mask, labels=tokens)
    return losses, lambda out: (out.float().mean(), {"loss": out.float().mean().detach()})


for step in range(6):
    model.zero_grad_buffer()
    optimizer.zero_grad()
    get_forward_backward_func()(forward_step_func=forward, data_iterator=None, model=model, num_microbatches=4, seq_length=1024,
                                micro_batch_size=2, forward_only=False)
    optimizer.step()
