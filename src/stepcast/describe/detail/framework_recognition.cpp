#include "stepcast/describe/detail/framework_recognition.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/words.h"

namespace stepcast::detail {

const JsonValue* config_value(const JsonValue& root, std::string_view path) {
  const JsonValue* at = &root;
  (void)any_word(
      path, [&](std::string_view key) { return (at = at->find(key)) == nullptr; }, '.');
  return at;
}

namespace {

// The needed paths that are not there: "a", "b or c".
std::string missing_keys(const JsonValue& root, std::string_view needs) {
  std::string missing;
  (void)any_word(needs, [&](std::string_view all) {
    if (all.front() == '!') {
      if (config_value(root, all.substr(1)) != nullptr) missing += "no " + std::string{all.substr(1)} + " ";
      return false;
    }
    const auto is_there = [&](std::string_view path) { return config_value(root, path) != nullptr; };
    if (!any_word(all, is_there, '|')) {
      for (const char c : all) missing += c == '|' ? std::string{" or "} : std::string{c};
      missing += ' ';
    }
    return false;
  });
  return missing.substr(0, missing.empty() ? 0 : missing.size() - 1);
}

}  // namespace

Result<const ConfigFramework*> framework_of(const JsonValue& root, const std::string& file) {
  const ConfigFramework* nearest = nullptr;
  std::ptrdiff_t most = 0;
  for (const ConfigFramework& framework : config_frameworks()) {
    if (missing_keys(root, framework.needs).empty()) return &framework;
    const auto hits = std::count_if(framework.rows.begin(), framework.rows.end(), [&](const ConfigRow& row) {
      return config_value(root, row.path) != nullptr;
    });
    if (hits > most) {
      most = hits;
      nearest = &framework;
    }
  }
  Error error = Error::at(file, "");
  struct Other {
    std::string_view keys, what, advice;
  };
  constexpr Other kOthers[] = {
      {"pipe_parallel_size|pipe-parallel-size|model_parallel_size|model-parallel-size",
       "a config of GPT-NeoX",
       "give its sizes and degrees as flags of Megatron-LM with --framework neox, and its DeepSpeed keys "
       "with "
       "--deepspeed"},
      {"train_micro_batch_size_per_gpu|zero_optimization|train_batch_size", "a DeepSpeed config",
       "give it with --deepspeed, together with a model"},
      {"distributed_type|compute_environment",
       "a config of Hugging Face's accelerate, which names no model and no batch",
       "give the arguments of the script, or --model, --gpus, --mbs, --gbs and --framework fsdp"},
      {"apiVersion", "a manifest of Kubernetes", "give the command that it runs with --command-line"},
      {"services", "a file of Docker Compose", "give the command that it runs with --command-line"},
      {"max_seq_len model.d_model", "a config of LLM Foundry",
       "give its sizes as flags of Megatron-LM with --framework fsdp"},
      {"model.hidden_dim", "a config of Levanter", "give its model with --model, and --framework maxtext"},
      {"resources run", "a task of SkyPilot", "give the command that it runs with --command-line"},
      {"num_hidden_layers|model_type", "a model's config.json", "give it with --model"}};
  for (const Other& other : kOthers)
    if (missing_keys(root, other.keys).empty())
      return std::move(error).found(std::string{other.what}).advice(std::string{other.advice});
  if (nearest != nullptr) {
    return std::move(error)
        .found(fmt::format("keys of {}", nearest->name))
        .expected(missing_keys(root, nearest->needs) + " together with them");
  }
  return std::move(error)
      .found("keys of no framework that is known")
      .expected(
          "a config of NeMo 2, Megatron-Bridge, Axolotl, LLaMA-Factory, TRL, Hugging Face's Trainer, "
          "Nanotron, torchtune or "
          "MaxText (docs/models.md)");
}

}  // namespace stepcast::detail
