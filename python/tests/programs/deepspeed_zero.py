import deepspeed
import torch
from transformers import GPT2Config, GPT2LMHeadModel
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
parser.add_argument("--stage", type=int)
stage = parser.parse_args().stage
config = GPT2Config(n_layer=4)
engine, _, _, _ = deepspeed.initialize(model=GPT2LMHeadModel(config), config={
    "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "zero_optimization": {"stage": stage},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})
for step in range(6):
    tokens = torch.randint(0, config.vocab_size, (2, 256), device=engine.device)
    engine.backward(engine(input_ids=tokens, labels=tokens).loss)
    engine.step()
