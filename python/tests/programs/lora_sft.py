import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from trl import SFTConfig, SFTTrainer

words = "a line of some text that is trained on".split()
tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(["<pad>", "</s>", *words])}, unk_token="<pad>"))
tokenizer.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>")
config = LlamaConfig(hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816)
model = LlamaForCausalLM(config).to(torch.bfloat16)
data = Dataset.from_dict({"text": [" ".join(words * 40)] * 64})
arguments = SFTConfig("out", per_device_train_batch_size=2, max_steps=6, max_length=256, bf16=True, logging_steps=1, report_to="none")
SFTTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer,
           peft_config=LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")).train()
