"""Writes tests/formats/family_parameters.jsonl: small configs of families and the parameters of their modules.

    python tools/family_parameters.py TYPE... > tests/formats/family_parameters.jsonl

Needs torch (--no-deps is enough) and transformers. Every line is a config as transformers writes it, with sizes drawn at
random; `total` are the parameters of the module that the class builds on the `meta` device, `active` those that a token
meets.
"""

import json
import random
import sys

import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SIZES = {
    "hidden_size": [64, 96], "num_hidden_layers": [3, 4], "num_attention_heads": [4, 8], "num_key_value_heads": [2, 4],
    "intermediate_size": [80, 160], "vocab_size": [500], "head_dim": [16, 24], "num_experts": [8],
    "num_local_experts": [8], "n_routed_experts": [8], "moe_num_experts": [8], "num_experts_per_tok": [2], "moe_k": [2],
    "moe_intermediate_size": [24, 40], "shared_expert_intermediate_size": [32], "first_k_dense_replace": [1],
    "num_dense_layers": [1], "q_lora_rank": [24], "kv_lora_rank": [16], "qk_nope_head_dim": [16], "qk_rope_head_dim": [8],
    "v_head_dim": [16], "index_n_heads": [2], "index_head_dim": [16], "index_topk": [8], "max_position_embeddings": [128],
    "linear_num_value_heads": [4], "linear_num_key_heads": [2], "linear_key_head_dim": [8], "linear_value_head_dim": [16],
    "moe_layer_start_index": [1], "top_k_experts": [2], "sliding_window": [16], "n_group": [1], "topk_group": [1],
    "mamba_num_heads": [4], "mamba_head_dim": [8], "ssm_state_size": [8], "n_groups": [2], "intermediate_size_mlp": [80],
    "hidden_size_per_layer_input": [0, 16], "vocab_size_per_layer_input": [100],
    "mamba_n_heads": [8], "mamba_d_head": [16], "mamba_d_state": [8], "shared_intermediate_size": [40], "o_groups": [2],
    "o_lora_rank": [8], "num_global_key_value_heads": [2], "mamba_n_groups": [1], "d_model": [64, 96], "d_kv": [8],
    "d_ff": [80], "num_heads": [4, 8], "num_layers": [2, 3], "num_decoder_layers": [2], "encoder_layers": [2, 3],
    "decoder_layers": [2], "encoder_ffn_dim": [80, 160], "decoder_ffn_dim": [40, 80], "encoder_attention_heads": [4],
    "decoder_attention_heads": [4], "max_source_positions": [30], "n_embd": [64], "n_head": [4], "n_layer": [2, 3],
    "dense_intermediate_size": [160], "expert_ffn_hidden_size": [24], "ffn_hidden_size": [80], "zero_expert_num": [4],
    "moe_topk": [3], "rotary_dim": [8], "linear_num_heads": [2, 4], "linear_head_dim": [8], "state_size": [8],
    "time_step_rank": [4], "mamba_dt_rank": [4], "mamba_d_ssm": [128], "num_experts_per_token": [2], "layer_group_size": [2],
    "expert_layer_period": [2], "attn_layer_period": [2], "attn_layer_offset": [1], "num_expert_group": [1],
}
# Of a tower for images.
VISION = {"hidden_size": [32, 48], "intermediate_size": [40], "num_hidden_layers": [2, 3], "num_attention_heads": [2],
          "patch_size": [4], "image_size": [16, 32], "projection_dim": [64], "head_dim": [16], "vision_use_head": [False]}
LISTS = ("layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers", "indexer_types", "mlp_only_layers",
         "moe_layers", "layer_rope_theta", "compress_rates", "num_attention_heads_per_layer")
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
VISITED = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts")
LEFT_OUT = ("qk_head_dim", "time_step_limit", "per_layer_config", "rope_parameters", "head_dim_of_rope")
NO_SHAPE = ("transformers_version", "_name_or_path", "architectures", "id2label", "label2id", "dtype", "use_cache",
            "rope_parameters", "time_step_limit", "chunk_size_feed_forward", "is_encoder_decoder", "output_attentions",
            "output_hidden_states", "return_dict", "initializer_range", "rms_norm_eps", "output_router_logits")


def seeing(model_type, draw):
    """A config of a model with a tower for images, both with other sizes."""
    config = json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False))
    sizes = {"text_config": {**SIZES, "head_dim": [16], "hidden_size": [64]}, "vision_config": VISION}
    for part, choices in sizes.items():
        if config.get(part) is None:
            continue
        config[part] = {k: v for k, v in config[part].items() if k not in LISTS + LEFT_OUT}
        for key, values in choices.items():
            if config[part].get(key) is not None or key == "vision_use_head":
                config[part][key] = draw.choice(values)
        config[part].update({k: 1 for k in config[part] if k.endswith("_token_id")})
    if "projection_hidden_size" in config:
        config["projection_hidden_size"] = config["vision_config"]["hidden_size"]
    if model_type == "muse_glimmer":
        config["out_hidden_size"] = 4 * config["vision_config"]["hidden_size"]
    if model_type == "minimax_m3_vl":
        config["text_config"]["num_hidden_layers"] = 3
    if model_type in ("aya_vision", "cohere2_vision"):
        config["alignment_intermediate_size"] = 48
    if model_type == "paligemma":
        config["projection_dim"] = config["hidden_size"] = 64
    config.pop("model_type")
    return CONFIG_MAPPING[model_type](**config)


def drawn(model_type, draw):
    """A config of the class with other sizes."""
    config = json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False))
    for key in [k for k in config if k in LISTS + LEFT_OUT]:
        del config[key]
    for key, choices in SIZES.items():
        if config.get(key) is not None:
            config[key] = draw.choice(choices)
    if "mamba_n_heads" in config:
        config["hidden_size"] = 64
    if model_type == "mamba2":
        config.update(num_heads=8, head_dim=16, hidden_size=64)
    if model_type == "mimo_v2_flash":
        config["num_attention_heads"] = 8
    if model_type in ("ministral", "hunyuan_v1_moe"):
        config["head_dim"] = 16
    if model_type == "jamba":
        config.update(num_hidden_layers=4)
    if model_type == "hunyuan_v1_moe":
        config.update(num_experts=8, moe_topk=2)
    if model_type == "lfm2_moe":
        config["layer_types"] = (["conv", "full_attention"] * 2)[: config["num_hidden_layers"]]
    if model_type == "bamba":
        config["attn_layer_indices"] = [1]
    if model_type == "minimax_m3_vl_text":
        config["num_hidden_layers"] = 3
        config["layer_types"] = ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"]
        config["mlp_layer_types"] = ["dense", "sparse", "sparse"]
    if "attention_types" in config:
        config.update(num_layers=2, attention_types=[[["global", "local"], 1]])
        del config["attention_layers"]
    if "o_lora_rank" in config:
        config["num_key_value_heads"] = 1
    for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
        config[key] = 1
    config.pop("model_type")
    return CONFIG_MAPPING[model_type](**config)


def shaping(config):
    """What of it shapes the model."""
    return {k: shaping(v) if k in ("text_config", "vision_config") else v for k, v in config.items()
            if v is not None and v != [] and k not in NO_SHAPE and not k.endswith("_token_id")}


def line(model_type, draw):
    sees = "vision_config" in CONFIG_MAPPING[model_type]().to_dict()
    config = seeing(model_type, draw) if sees else drawn(model_type, draw)
    with torch.device("meta"):
        classes = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        if config.is_encoder_decoder:
            classes = AutoModelForSpeechSeq2Seq if hasattr(config, "num_mel_bins") else AutoModelForSeq2SeqLM
        module = classes.from_config(config)
    kept = shaping(json.loads(config.to_json_string(use_diff=False)))
    routed = sum(p.numel() for name, p in module.named_parameters() if ".experts." in name and "shared" not in name)
    total = sum(p.numel() for p in module.parameters())
    text = kept.get("text_config", kept)
    experts = next((text[k] for k in EXPERTS if text.get(k)), 1)
    visited = next((text[k] for k in VISITED if text.get(k)), 1)
    return json.dumps({"config": kept, "total": total, "active": total - routed // experts * (experts - visited)})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        random_of = random.Random(name)
        for _ in range(2):
            try:
                print(line(name, random_of), flush=True)
            except (TypeError, ValueError) as problem:
                print(f"{name}: {problem}", file=sys.stderr)
