import torch
from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

config = GPT2Config(n_layer=4)
tokens = torch.randint(0, config.vocab_size, (256, 256)).tolist()
data = Dataset.from_dict({"input_ids": tokens, "labels": tokens})
arguments = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=6, fp16=True, logging_steps=1,
                              gradient_checkpointing=True, report_to="none")
Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data).train()
