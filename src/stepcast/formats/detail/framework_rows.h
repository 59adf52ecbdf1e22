// The keys of training frameworks' configs in tables: which setting each one is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {
struct FrameworkConfig;
}

namespace stepcast::detail {

// What keys say, before it is known what several of them come to together.
struct ConfigWords {
  JobSettings settings;
  std::string model;      // a name at a hub, a class, a component
  std::string precision;  // a word, where no switch below says it
  std::string sharding, recompute, adapter, adapter_targets, work, optimizer, quantization;
  bool bf16 = false, fp16 = false, all_linear = false;
  // Frozen weights under adapters: bits, who quantises them, whether their scales are quantised ("true", "false").
  bool four_bits = false, eight_bits = false;
  std::string base_bits, base_method, nested_scales;
  bool keeps_activations = false, recomputes = false;
  double rank_batch = 0;  // sequences of a data-parallel rank, or of a GPU; 0: not said
  std::int64_t pipeline_parts =
      0;  // of a rank's sequences, one after the other through the stages; 0: as many as stages
  std::int64_t accumulation = 1, nodes = 1, node_gpus = 0, data = 0, adapter_rank = 0;
  // MaxText: degrees inside a slice and between slices (-1: the rest), and what becomes of results of a layer: "device",
  // "offload", "remat".
  std::int64_t tensor_outside = 1, copies_inside = 1, copies_outside = -1, sharded_outside = 1;
  std::int64_t sharded_inside = -1, also_sharded_inside = 1;
  std::string kept_input, kept_query, kept_key, kept_value, kept_qkv, kept_attention, kept_attention_output,
      kept_ffn_up, kept_ffn_down;
  double gradient_clip = -1;
  double adapter_dropout = -1;  // below 0: not said
  double expert_capacity = -1;  // above 0, and not sparse: experts take so many times the mean, padded
  std::string sparse_experts;
};

using ConfigTarget = std::variant<std::optional<std::int64_t> JobSettings::*,
                                  std::optional<bool> JobSettings::*, std::int64_t ConfigWords::*,
                                  double ConfigWords::*, bool ConfigWords::*, std::string ConfigWords::*>;
struct ConfigRow {
  std::string_view path;  // "tokens.micro_batch_size"
  ConfigTarget target;
};

// A framework whose config is recognised by its keys. It is read by the rows of its keys, or by a reader of its own.
struct ConfigFramework {
  std::string_view name;  // as it is called
  std::string_view
      needs;  // paths that show it, all of them, blanks between; `a|b`: one of the two; `!a`: not a
  double rank_batch = 1;             // what the framework takes where the config says nothing
  std::int64_t sequence_tokens = 0;  // the same; 0: the model's
  std::int64_t adapter_rank = 8;     // the same
  double adapter_dropout = 0;        // the same
  std::string_view adapter_targets = "q_proj v_proj";  // the same; PEFT's own
  std::string_view base_method = "bnb";  // the same: who quantises frozen weights; empty: nobody
  bool nested_scales = true;             // the same
  Framework habits = Framework::pytorch;
  bool recomputes = false;             // where the config says nothing
  bool batch_per_gpu = false;          // and not per data-parallel rank
  bool has_mesh_axes = false;          // degrees inside and between slices, which leave copies of the weights
  bool has_remat_policies = false;     // recomputation by the names of policies (use_remat_policy)
  bool has_no_master_weights = false;  // in fp32 where it computes in bf16
  bool all_linear_of_attention = false;  // adapters on "all linear layers" are on those of attention, too
  // What is trained (a word of ConfigReader::use_work), where several keys say it; null: ConfigWords::work.
  std::string (*work)(const JsonValue& root) = nullptr;
  // Instead of rows of keys.
  Status (*read)(const JsonValue& root, const Job& said, FrameworkConfig& out) = nullptr;
  std::vector<ConfigRow> rows = {};  // of tables/framework_settings.csv
  // Paths with blanks between; `*` at an end stands for any rest, and what is below a path counts as the path. They are in
  // tables/framework_keys.csv.
  std::string not_priced = {}, passed_over = {};
};
// In the order in which they are tried.
[[nodiscard]] std::span<const ConfigFramework> config_frameworks();

// The value at a path ("tokens.micro_batch_size"); null if it is not there.
[[nodiscard]] const JsonValue* config_value(const JsonValue& root, std::string_view path);

// Which training framework a config is of. Errors name the file it looks like, what to do with that, or the keys that are missing.
[[nodiscard]] Result<const ConfigFramework*> framework_of(const JsonValue& root, const std::string& file);

// Rematerialisation policies of MaxText (models/decoders.py, get_remat_policy): what a layer keeps and what the CPU keeps.
// All names are jax's; "custom" leaves it to the keys of single results. False: no policy is called so.
[[nodiscard]] bool use_remat_policy(const std::string& name, ConfigWords& words);

}  // namespace stepcast::detail
