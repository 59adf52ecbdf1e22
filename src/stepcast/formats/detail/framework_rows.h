// Tables of the keys in training frameworks' config files, and the settings that they mean.
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

// The values of a config before values that depend on each other are combined. Rows of the tables write here.
struct ConfigWords {
  JobSettings settings;
  std::string model;      // name on a hub, class or component
  std::string precision;  // a word, unless one of the switches below is set
  std::string sharding, recompute, adapter, adapter_targets, work, optimizer, quantization;
  bool bf16 = false, fp16 = false, all_linear = false;
  // Quantised frozen weights below adapters: bits, the quantisation library, and whether scales are quantised
  // too ("true" or "false").
  bool four_bits = false, eight_bits = false;
  std::string base_bits, base_method, nested_scales;
  bool keeps_activations = false, recomputes = false;
  double rank_batch = 0;  // sequences per data-parallel rank or per GPU; 0: not given
  // Micro-batches into which a rank's sequences are divided for the pipeline; 0: as many as stages.
  std::int64_t pipeline_parts = 0;
  // accumulation: gradient accumulation steps. data, adapter_rank: 0 if not given.
  std::int64_t accumulation = 1, nodes = 1, node_gpus = 0, data = 0, adapter_rank = 0;
  // MaxText: parallelism degrees inside and between slices (-1: all remaining devices), and the location of
  // each result of a layer: "device", "offload" or "remat".
  std::int64_t tensor_outside = 1, copies_inside = 1, copies_outside = -1, sharded_outside = 1;
  std::int64_t sharded_inside = -1, also_sharded_inside = 1;
  std::string kept_input, kept_query, kept_key, kept_value, kept_qkv, kept_attention, kept_attention_output,
      kept_ffn_up, kept_ffn_down;
  // Below 0: not given.
  double gradient_clip = -1;
  double adapter_dropout = -1;
  // Capacity factor with padding. Used if it is above 0 and sparse_experts is "false".
  double expert_capacity = -1;
  std::string sparse_experts;
};

// What a row may write to. Only these types occur.
using ConfigTarget = std::variant<std::optional<std::int64_t> JobSettings::*,
                                  std::optional<bool> JobSettings::*, std::int64_t ConfigWords::*,
                                  double ConfigWords::*, bool ConfigWords::*, std::string ConfigWords::*>;
// A key of a config, and the member that it sets.
struct ConfigRow {
  std::string_view path;  // "tokens.micro_batch_size"
  ConfigTarget target;
};

// A framework, recognised by the keys of its configs. Its configs are read with `rows`, or with the function
// `read`. The defaults are those that the framework uses if a config does not contain the key.
struct ConfigFramework {
  std::string_view name;  // as shown to users
  // Paths that identify the framework, separated by blanks; all must be present. `a|b`: one of the two. `!a`:
  // must be absent.
  std::string_view needs;
  double rank_batch = 1;                               // default: sequences per rank
  std::int64_t sequence_tokens = 0;                    // default; 0: the length of the model
  std::int64_t adapter_rank = 8;                       // default
  double adapter_dropout = 0;                          // default
  std::string_view adapter_targets = "q_proj v_proj";  // default; that of PEFT
  std::string_view base_method = "bnb";  // default: library that quantises frozen weights; empty: none
  bool nested_scales = true;             // default
  Framework habits = Framework::pytorch;
  bool recomputes = false;     // default
  bool batch_per_gpu = false;  // rank_batch is per GPU, not per data-parallel rank
  bool has_mesh_axes = false;  // has degrees inside and between slices, which imply copies of the weights
  bool has_remat_policies = false;       // recomputation is given as the name of a policy (use_remat_policy)
  bool has_no_master_weights = false;    // no fp32 copy of the weights if it computes in bf16
  bool all_linear_of_attention = false;  // adapters on "all linear layers" include those of attention
  // Determines the kind of training (a word of ConfigReader::use_work) from several keys. Null: it is ConfigWords::work.
  std::string (*work)(const JsonValue& root) = nullptr;
  // Reads the whole config, instead of `rows`. Null: not used.
  Status (*read)(const JsonValue& root, const Job& said, FrameworkConfig& out) = nullptr;
  std::vector<ConfigRow> rows = {};  // from tables/framework_settings.csv
  // Paths, separated by blanks, of keys without a row: those that matter but are not priced, and those
  // without effect. A trailing `*` matches any rest, and a path includes all paths below it. From
  // tables/framework_keys.csv.
  std::string not_priced = {}, passed_over = {};
};
// All frameworks, in the order in which they are tried. Read on the first call.
[[nodiscard]] std::span<const ConfigFramework> config_frameworks();

// The value at a path ("tokens.micro_batch_size"). Null: it is missing.
[[nodiscard]] const JsonValue* config_value(const JsonValue& root, std::string_view path);

// The framework of a config. Errors: none matches; they name the kind of file that it seems to be, and what
// to do or which keys are missing.
[[nodiscard]] Result<const ConfigFramework*> framework_of(const JsonValue& root, const std::string& file);

// Sets recomputation by a rematerialisation policy of MaxText (models/decoders.py, get_remat_policy): which
// results a layer keeps, on the GPU or the CPU. All names are those of jax. "custom" uses the keys for single
// results. Returns false for an unknown policy.
[[nodiscard]] bool use_remat_policy(const std::string& name, ConfigWords& words);

}  // namespace stepcast::detail
