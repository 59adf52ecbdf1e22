import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(num_hidden_layers=4, num_labels=2)
data = Dataset.from_dict({"input_ids": torch.randint(0, config.vocab_size, (256, 128)).tolist(), "labels": [0, 1] * 128})
arguments = TrainingArguments("out", per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=6, bf16=True, logging_steps=1,
                              report_to="none", max_grad_norm=1.0)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=data).train()
