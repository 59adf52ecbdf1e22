#include "stepcast/sweep/sweep_keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/spelled_number.h"
#include "stepcast/base/text.h"
#include "stepcast/describe/megatron.h"

namespace stepcast {
namespace {

struct OwnKey {
  std::string_view name;
  bool predicts, plans;
  bool is_file = false;
};
constexpr std::array kOwn{
    OwnKey{"model", true, true, true},
    OwnKey{"ignore_key", true, true},
    OwnKey{"platform", true, true, true},
    OwnKey{"gpus", true, true},
    OwnKey{"nodes", true, false},
    OwnKey{"gpus_per_node", true, true},
    OwnKey{"framework", true, true},
    OwnKey{"dtype", true, true},
    OwnKey{"what_if", true, true},
    OwnKey{"train_tokens", true, true},
    OwnKey{"train_samples", true, false},
    OwnKey{"train_iterations", true, false},
    OwnKey{"gpu_hour_price", true, true},
    OwnKey{"gpu_power_watts", true, false},
    OwnKey{"failures", true, false, true},
    OwnKey{"recovery", true, false},
    // Pools of different GPUs instead of gpus and platform.
    OwnKey{"pools", true, false},
    OwnKey{"zones", true, false},
    OwnKey{"command_line", true, false, true},
    OwnKey{"torchtitan", true, false, true},
    OwnKey{"deepspeed", true, false, true},
    OwnKey{"expert_load", true, false, true},
    OwnKey{"config", true, false, true},
    OwnKey{"lora_rank", true, false},
    OwnKey{"packed_mean_tokens", true, false},
    // Recommendation models.
    OwnKey{"tables", true, false, true},
    OwnKey{"indices", true, false, true},
    OwnKey{"plan", true, false, true},
    OwnKey{"batch", true, false},
    OwnKey{"links_of", true, false, true},
    // Steps of post-training.
    OwnKey{"rl", true, false},
    OwnKey{"prompts", true, false},
    OwnKey{"generations", true, false},
    OwnKey{"lengths", true, false, true},
    OwnKey{"prompt_tokens", true, false},
    OwnKey{"oversampling", true, false},
    OwnKey{"policy", true, false},
    OwnKey{"generation_gpus", true, false},
    OwnKey{"generation_tp", true, false},
    OwnKey{"generation_pp", true, false},
    OwnKey{"generation_dtype", true, false},
    OwnKey{"generation_memory", true, false},
    OwnKey{"reward_model", true, false, true},
    // The space of a plan; the first four also of one layout.
    OwnKey{"schedules", true, true},
    OwnKey{"sharding", true, true},
    OwnKey{"recompute", true, true},
    OwnKey{"sp", true, true},
    OwnKey{"max_memory_gib", false, true},
    OwnKey{"objective", false, true},
};

// Short names of what everybody sets, in both modes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kShort{
    {{"tp", "tensor_model_parallel_size"},
     {"pp", "pipeline_model_parallel_size"},
     {"vp", "num_virtual_stages_per_pipeline_rank"},
     {"cp", "context_parallel_size"},
     {"ep", "expert_model_parallel_size"},
     {"etp", "expert_tensor_parallel_size"},
     {"mbs", "micro_batch_size"},
     {"gbs", "global_batch_size"},
     {"seq", "seq_length"}}};

std::string underscored(std::string_view text) {
  while (text.starts_with('-')) text.remove_prefix(1);
  std::string key = lower(text);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

const OwnKey* find_own(std::string_view key) {
  const auto* found = std::ranges::find(kOwn, key, &OwnKey::name);
  return found == kOwn.end() ? nullptr : found;
}

// Keys whose values are numbers.
constexpr std::array<std::string_view, 5> kWholes{"gpus", "nodes", "gpus_per_node", "lora_rank", "batch"};
constexpr std::array<std::string_view, 7> kNumbers{"train_tokens",   "train_samples",   "train_iterations",
                                                   "gpu_hour_price", "gpu_power_watts", "packed_mean_tokens",
                                                   "max_memory_gib"};
// Those of Megatron-LM that people write with letters.
constexpr std::array<std::string_view, 3> kCounts{"mbs", "gbs", "seq"};

template <class Keys>
bool is_in(const Keys& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

bool is_short(std::string_view key) {
  return std::ranges::any_of(kShort, [&](const auto& pair) { return pair.first == key; });
}

}  // namespace

std::string sweep_key(std::string_view spelled) {
  std::string key = underscored(spelled);
  for (const auto& [name, flag] : kShort)
    if (key == flag) return std::string{name};
  return key;
}

std::string flag_of_key(std::string_view key) {
  for (const auto& [name, flag] : kShort)
    if (key == name) key = flag;
  std::string text = fmt::format("--{}", key);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool is_sweep_key(std::string_view key, SweepMode mode) {
  if (is_short(key)) return true;
  if (const OwnKey* own = find_own(key)) return mode == SweepMode::plan ? own->plans : own->predicts;
  return use_of_megatron_flag(flag_of_key(key)).has_value();
}

std::vector<std::string> own_sweep_keys(SweepMode mode) {
  std::vector<std::string> all;
  for (const auto& pair : kShort) all.emplace_back(pair.first);
  for (const OwnKey& key : kOwn)
    if (mode == SweepMode::plan ? key.plans : key.predicts) all.emplace_back(key.name);
  return all;
}

std::string advice_for_key(std::string_view key, SweepMode mode) {
  const SweepMode other = mode == SweepMode::plan ? SweepMode::predict : SweepMode::plan;
  if (is_sweep_key(key, other)) return fmt::format("it belongs to mode = \"{}\"", to_string(other));
  std::vector<std::string> all = own_sweep_keys(mode);
  for (const MegatronFlag& flag : megatron_flags()) all.push_back(underscored(flag.name));
  if (const std::optional<std::string> nearest = nearest_word(key, all))
    return fmt::format("did you mean {}?", *nearest);
  return fmt::format("known: mode, {}, and the flags of Megatron-LM", join(own_sweep_keys(mode)));
}

std::string_view expected_instead(std::string_view key, const JsonValue& value) {
  const bool is_positive = value.is_number() && value.number() > 0;
  if (is_in(kWholes, key) && !(is_positive && value.number() == std::floor(value.number())))
    return "a whole number from 1 on";
  if (is_in(kNumbers, key) && !is_positive) return "a number above 0";
  return {};
}

JsonValue spelled_out(std::string_view key, const JsonValue& value) {
  if (!value.is_text()) return value;
  std::string text = value.text();
  // Digits of a flag of Megatron-LM stay the text that ids were made of.
  const bool is_count = is_in(kCounts, key) && !text.empty() && !is_digit(text.back());
  const bool is_whole = is_in(kWholes, key) || is_count;
  if (!is_whole && !is_in(kNumbers, key)) return value;
  if (!(is_whole ? spell_out_whole(text) : spell_out_number(text)).empty()) return value;
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return value;
  JsonValue result{number};
  result.set_line(value.line());
  return result;
}

bool names_file(std::string_view key) {
  const OwnKey* own = find_own(key);
  return own != nullptr && own->is_file;
}

}  // namespace stepcast
