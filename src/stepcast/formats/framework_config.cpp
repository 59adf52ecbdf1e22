// Reads the configs of training frameworks in three steps: level() walks over all keys and stores the values
// of known ones in ConfigWords; the use_...() functions combine values that depend on each other; merge()
// applies the job's settings on top.
#include "stepcast/formats/framework_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/detail/framework_rows.h"
#include "stepcast/formats/detail/job_format.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/presets.h"
#include "stepcast/formats/resolve_job.h"

namespace stepcast {
namespace {

using detail::config_value;
using detail::ConfigFramework;
using detail::ConfigRow;
using detail::ConfigWords;

// The value that "${other.key}" (OmegaConf) refers to, up to eight references deep. `value` itself if the key
// does not exist.
const JsonValue& interpolated(const JsonValue& root, const JsonValue& value) {
  const JsonValue* at = &value;
  for (int depth = 0; depth < 8 && at->is_text() && at->text().starts_with("${") && at->text().ends_with('}');
       ++depth) {
    const JsonValue* other =
        config_value(root, std::string_view{at->text()}.substr(2, at->text().size() - 3));
    if (other == nullptr) break;
    at = other;
  }
  return *at;
}

// Whether a path is in a list of paths, separated by blanks; `*` at the end of an entry matches any rest.
bool is_listed(std::string_view names, std::string_view path) {
  return any_word(names, [&](std::string_view name) {
    return name.ends_with('*') ? path.starts_with(name.substr(0, name.size() - 1)) : name == path;
  });
}

// A value as text: the items of a list are separated by blanks, switches are "true" or "false".
std::string words_of(const JsonValue& value) {
  if (value.is_text()) return value.text();
  if (value.is_bool()) return value.truth() ? "true" : "false";
  std::string words;
  if (value.is_array()) {
    for (const JsonValue& item : value.items()) words += (words.empty() ? "" : " ") + words_of(item);
  } else if (value.is_number()) {
    words = compact_json(value);
  }
  return words;
}

// A number, which may be in quotes and have underscores: "2", 8_192.
std::optional<double> number_of(const JsonValue& value) {
  if (value.is_number()) return value.number();
  if (!value.is_text()) return std::nullopt;
  std::string digits = value.text();
  std::erase(digits, '_');
  return scan<double>(digits);
}

// Reads one config of one framework, by its rows.
class ConfigReader {
 public:
  ConfigReader(const ConfigFramework& framework, const Job& said, FrameworkConfig& out)
      : framework_(framework), said_(said), file_(said.config->name), out_(out) {
    words_.rank_batch = framework.rank_batch;
    words_.adapter_rank = framework.adapter_rank;
  }

  // Reads the whole document into `out`. The order matters: batches depend on degrees, and degrees on merged settings.
  Status read(const JsonValue& root) {
    root_ = &root;
    STEPCAST_TRY(level(root, ""));
    // Liger's switch for the loss also enables its kernels for rotary positions and gated activations.
    for (const std::string_view key : {"use_liger_kernel", "enable_liger_kernel"})
      if (const JsonValue* on = root.find(key); on != nullptr && on->is_bool() && on->truth())
        words_.settings.fuse_rotary = words_.settings.fuse_bias_activation = true;
    if (const JsonValue* deepspeed = root.find("deepspeed"); deepspeed != nullptr)
      STEPCAST_TRY(use_deepspeed(*deepspeed));
    if (framework_.work != nullptr) words_.work = framework_.work(root);
    const JsonValue* precomputed = root.find("precompute_ref_log_probs");
    STEPCAST_TRY(use_work(precomputed != nullptr && precomputed->is_bool() && precomputed->truth()));
    STEPCAST_TRY(use_words());
    STEPCAST_TRY(use_model());
    merge();
    if (framework_.has_mesh_axes && !said_.settings.sharding) STEPCAST_TRY(use_copies());
    return use_batches();
  }

 private:
  // The error for a key with a wrong value.
  Error wrong(std::string_view key, std::string_view found, std::string expected) const {
    return Error::at(file_, std::string{key})
        .found(fmt::format("`{}`", found.substr(0, 80)))
        .expected(std::move(expected));
  }

  // Reads the keys of an object and of the objects below it. `above`: path of the object.
  Status level(const JsonValue& object, const std::string& above) {
    for (const JsonValue::Member& member : object.members()) {
      const std::string path = above.empty() ? member.key : above + "." + member.key;
      const JsonValue& value = interpolated(*root_, member.value);
      // In order of precedence: a key with a row, a key that is not priced, an ignored key, a section to
      // descend into, an unknown key.
      const auto row = std::find_if(framework_.rows.begin(), framework_.rows.end(),
                                    [&](const ConfigRow& r) { return r.path == path; });
      if (row != framework_.rows.end()) {
        STEPCAST_TRY(take(*row, value));
      } else if (is_listed(framework_.not_priced, path)) {
        if (!is_off(value)) out_.job.not_modelled.push_back(path);
      } else if (value.is_object() && !is_listed(framework_.passed_over, path)) {
        if (path != "deepspeed") STEPCAST_TRY(level(value, path));
      } else if (value.is_object()) {
        STEPCAST_TRY(listed_below(value, path));
      } else if (!is_listed(framework_.passed_over, path) && path != "deepspeed" && !is_below_listed(path)) {
        STEPCAST_TRY(unknown(path, value));
      }
    }
    return Ok{};
  }

  // Reads a section that is ignored except for keys with rows or notes in it.
  Status listed_below(const JsonValue& object, const std::string& path) {
    passed_.push_back(path + ".");
    Status status = level(object, path);
    passed_.pop_back();
    return status;
  }
  // Whether a path is inside such a section.
  bool is_below_listed(const std::string& path) const {
    return std::any_of(passed_.begin(), passed_.end(),
                       [&](const std::string& p) { return path.starts_with(p); });
  }

  // Whether a value means "off" or "chosen by an integration".
  static bool is_off(const JsonValue& value) {
    return value.is_null() || (value.is_bool() && !value.truth()) ||
           (value.is_number() && value.number() == 0) ||
           (value.is_text() && (value.text().empty() || value.text() == "auto"));
  }

  // An unknown key: an error if the job is strict, else listed as not modelled. If it resembles a known key,
  // a note suggests that key.
  Status unknown(const std::string& path, const JsonValue& value) {
    std::vector<std::string> known;
    for (const ConfigRow& row : framework_.rows) known.emplace_back(row.path);
    const auto meant = nearest_word(path, known);
    std::string text = fmt::format("`{}` is not a known key of {}", path.substr(0, 80), framework_.name);
    if (meant) text += fmt::format("; did you mean `{}`?", *meant);
    if (said_.strict) return Error::at(file_, "", std::move(text));
    if (!is_off(value)) out_.job.not_modelled.push_back(path.substr(0, 80));
    if (meant) out_.notes.push_back("left out: " + text);
    return Ok{};
  }

  // Stores the value of a key in the member of its row, converted to the type of the member. Errors: another
  // kind of value, a number that is not an integer or above 1e12.
  Status take(const ConfigRow& row, const JsonValue& value) {
    // "auto" is filled in by an integration at run time.
    const bool says_nothing = value.is_null() || (value.is_text() && value.text() == "auto");
    return std::visit(
        [&](auto target) -> Status {
          using Target = decltype(target);
          // The error for a value of the wrong kind.
          const auto kind = [&](std::string expected) {
            return Error::at(file_, fmt::format("line {}: {}", value.line(), row.path))
                .found(
                    fmt::format("`{}`", (value.is_text() ? value.text() : compact_json(value)).substr(0, 80)))
                .expected(std::move(expected));
          };
          if constexpr (std::is_same_v<Target, std::string ConfigWords::*>) {
            if (value.is_null()) return Ok{};
            std::string& text = words_.*target;
            text += (text.empty() ? "" : " ") + words_of(value);
          } else if constexpr (std::is_same_v<Target, bool ConfigWords::*> ||
                               std::is_same_v<Target, std::optional<bool> JobSettings::*>) {
            const bool truth =
                value.is_bool() ? value.truth() : value.is_text() && lower(value.text()) != "false";
            if (value.is_null()) return Ok{};
            if (!value.is_bool() && !value.is_text()) return kind("true or false");
            if constexpr (std::is_same_v<Target, bool ConfigWords::*>)
              words_.*target = words_.*target || truth;
            else
              words_.settings.*target = truth;
          } else {
            // Automodel: a packed sequence size of 0 means no packing.
            if (says_nothing ||
                (row.path == "packed_sequence.packed_sequence_size" && number_of(value) == 0.0))
              return Ok{};
            constexpr double kMost = 1e12;
            constexpr bool is_whole = !std::is_same_v<Target, double ConfigWords::*>;
            const std::optional<double> number = number_of(value);
            if (!number || std::abs(*number) > kMost || (is_whole && *number != std::floor(*number)))
              return kind(is_whole ? "a whole number" : "a number");
            if constexpr (std::is_same_v<Target, double ConfigWords::*>)
              words_.*target = *number;
            else if constexpr (std::is_same_v<Target, std::int64_t ConfigWords::*>)
              words_.*target = static_cast<std::int64_t>(*number);
            else
              words_.settings.*target = static_cast<std::int64_t>(*number);
          }
          return Ok{};
        },
        row.target);
  }

  // The DeepSpeed section: a file next to the config, or the settings themselves. If the file does not exist,
  // the ZeRO stage is taken from its name ("zero3_offload.json"), with a note. Errors: neither works.
  Status use_deepspeed(const JsonValue& value) {
    if (value.is_null() || said_.deepspeed) return Ok{};
    if (value.is_object()) {
      out_.job.deepspeed = ConfigText{compact_json(value), file_ + ": deepspeed"};
      return Ok{};
    }
    if (!value.is_text()) return wrong("deepspeed", compact_json(value), "a file, or its content");
    // A relative path is looked up in the working directory, then next to the config.
    std::filesystem::path file = value.text();
    std::error_code ignored;
    if (file.is_relative() && !std::filesystem::exists(file, ignored))
      file = std::filesystem::path{file_}.parent_path() / file;
    if (std::filesystem::exists(file, ignored)) {
      STEPCAST_ASSIGN(out_.job.deepspeed, read_config_text(file));
      return Ok{};
    }
    const std::string name = lower(file.filename().string());
    for (const char stage : {'0', '1', '2', '3'}) {
      if (name.find(std::string{"zero"} + stage) == std::string::npos &&
          name.find(std::string{"z"} + stage) == std::string::npos)
        continue;
      words_.settings.zero_stage = stage - '0';
      const bool offloads = name.find("offload") != std::string::npos;
      if (offloads) words_.settings.optimizer_offload = true;
      if (offloads && stage == '3') out_.job.not_modelled.emplace_back("offload_param, by the file's name");
      out_.job.framework = Framework::deepspeed;
      out_.notes.push_back(fmt::format("{} does not exist: ZeRO stage {}{} is assumed from its name",
                                       value.text().substr(0, 80), stage,
                                       offloads ? " with the optimizer on the host" : ""));
      return Ok{};
    }
    return wrong("deepspeed", value.text(), "an existing file, or another one with --deepspeed");
  }

  // The kind of training. Preferences train on pairs of answers, which are two sequences per sample. A
  // reference model adds a forward pass, unless its results were computed before the training (TRL). Errors:
  // kinds that generate text during training.
  Status use_work(bool knows_reference) {
    // A kind of training: whether samples are pairs, and whether it has a reference model.
    struct Work {
      std::string_view name;
      bool pairs, reference;
    };
    constexpr Work kWorks[] = {{"sft", false, false}, {"pt", false, false},  {"false", false, false},
                               {"", false, false},    {"dpo", true, true},   {"ipo", true, true},
                               {"kto", false, true},  {"rm", true, false},   {"reward", true, false},
                               {"orpo", true, false}, {"simpo", true, false}};
    const std::string work = lower(words_.work);
    const auto* const known = std::ranges::find(kWorks, work, &Work::name);
    if (known == std::end(kWorks)) {
      return wrong("stage or rl", words_.work,
                   "supervised training (sft, pt) or preferences (dpo, orpo, kto, rm)")
          .advice(
              "it generates answers between training steps: `stepcast predict --rl grpo` (or ppo, dapo) "
              "forecasts both (docs/post-training.md)");
    }
    if (known->pairs) {
      words_.rank_batch *= 2;
      out_.notes.push_back(fmt::format("{}: a sample is a pair of answers, two sequences", work));
    }
    if (known->reference && !knows_reference) words_.settings.reference_model = true;
    return Ok{};
  }

  // Translates words: number type, recomputation, quantisation, sharding, expert capacity, optimizer, adapters.
  Status use_words() {
    JobSettings& s = words_.settings;
    STEPCAST_TRY(use_precision());
    std::string recompute = words_.recomputes ? "full" : lower(words_.recompute);
    if (recompute.empty() && framework_.recomputes && !words_.keeps_activations) {
      recompute = "full";
      if (!said_.settings.recompute)
        out_.notes.push_back(
            fmt::format("recomputation not given: full, the default of {}", framework_.name));
    }
    // Unknown words for recomputation are treated as selective recomputation of attention.
    if (framework_.has_remat_policies && !recompute.empty() && recompute != "none") {
      STEPCAST_TRY(use_policy(recompute));
    } else if (recompute == "true" || recompute == "full" || recompute == "unsloth" ||
               recompute == "offload") {
      s.recompute = Recompute::full;
    } else if (!recompute.empty() && recompute != "none" && recompute != "false") {
      out_.notes.push_back(
          fmt::format("recomputation `{}`: modelled as recomputation of attention", recompute.substr(0, 60)));
      s.recompute = Recompute::selective;
    } else if (recompute == "none") {
      s.recompute = Recompute::none;
    }
    // Words of PyTorch's FSDP, such as "full_shard auto_wrap" or "SHARD_GRAD_OP".
    const std::string sharding = lower(words_.sharding);
    const std::string quantization = lower(words_.quantization);
    if (quantization.find("fp8") != std::string::npos) {
      s.fp8 = true;
    } else if (!quantization.empty() && quantization != "false") {
      out_.job.not_modelled.push_back("quantization: " + quantization.substr(0, 60));
    }
    if (!sharding.empty() && sharding != "false") {
      s.sharding = sharding.find("no_shard") != std::string::npos        ? Sharding::none
                   : sharding.find("shard_grad_op") != std::string::npos ? Sharding::zero2
                                                                         : Sharding::zero3;
      out_.job.framework = Framework::fsdp;
      if (sharding.find("offload") != std::string::npos) out_.job.not_modelled.emplace_back("fsdp: offload");
    }
    if (words_.expert_capacity > 0 && lower(words_.sparse_experts) == "false") {
      s.expert_capacity_factor = words_.expert_capacity;
      s.pad_experts_to_capacity = true;
    }
    // Variants of Adam need no note, because they have the same state, except for 8-bit ones.
    const std::string optimizer = lower(words_.optimizer);
    if (!optimizer.empty() &&
        (optimizer.find("adam") == std::string::npos || optimizer.find("8bit") != std::string::npos))
      out_.job.not_modelled.push_back("optimizer: " + optimizer.substr(0, 60));
    if (words_.gradient_clip >= 0) s.clip_gradients = words_.gradient_clip;
    use_adapters();
    use_quantised_base();
    return Ok{};
  }

  // Recomputation in MaxText.
  Status use_policy(const std::string& name) {
    if (detail::use_remat_policy(name, words_)) return Ok{};
    return wrong("remat_policy", name,
                 "full, minimal, minimal_with_context, save_dot_except_mlp, save_dot_except_mlpwi, "
                 "save_qkv_proj, save_out_proj, qkv_proj_offloaded, minimal_offloaded, custom or none");
  }

  // MaxText: the number of weight copies is that inside a slice times that between slices. An axis of -1
  // takes all remaining devices. Errors: axes that do not divide the devices.
  Status use_copies() {
    constexpr double kMost = 1e6;
    const auto number = [](std::int64_t x) { return static_cast<double>(x); };
    const JobSettings& s = out_.job.settings;
    // A slice is what the job calls a node.
    const double gpus = number(out_.job.n_gpus.value_or(1)),
                 in_slice = std::max(1.0, number(out_.job.gpus_per_node.value_or(0))),
                 slices = out_.job.gpus_per_node ? std::max(1.0, std::floor(gpus / in_slice)) : 1;
    const auto rest = [](double all, double taken) {
      return taken > 0 ? std::max(1.0, std::floor(all / taken)) : 1;
    };
    double inside = number(words_.copies_inside), outside = number(words_.copies_outside);
    const double axes = number(words_.sharded_inside) * number(words_.also_sharded_inside) *
                        number(s.tensor.value_or(1)) * number(s.context.value_or(1)) *
                        number(s.pipeline.value_or(1));
    if (inside < 1) inside = rest(gpus / slices, axes);
    // An axis of -1 takes the remaining devices.
    const bool open = words_.sharded_inside < 1 || words_.also_sharded_inside < 1;
    if (out_.job.n_gpus && !open && std::fmod(gpus, inside * axes) != 0) {
      return wrong("ici_* axes", fmt::format("a product of {:g}", inside * axes),
                   fmt::format("one that divides {:g} devices, or -1 for the rest of them", gpus));
    }
    if (outside < 1) outside = rest(slices, number(words_.sharded_outside) * number(words_.tensor_outside));
    if (inside * outside > kMost) {
      return wrong("ici_data_parallelism x dcn_data_parallelism", fmt::format("{:g}", inside * outside),
                   "1 to 1e6 copies of the weights");
    }
    if (inside * outside > 1) out_.job.settings.weight_copies = static_cast<std::int64_t>(inside * outside);
    return Ok{};
  }

  // The number type: switches first, then the word.
  Status use_precision() {
    JobSettings& s = words_.settings;
    if (words_.bf16 || words_.fp16) {
      s.dtype = words_.bf16 ? DType::bf16 : DType::fp16;
      return Ok{};
    }
    const std::string word = lower(words_.precision);
    if (word.empty()) return Ok{};
    constexpr std::pair<std::string_view, DType> kWords[] = {{"bf16", DType::bf16}, {"bfloat16", DType::bf16},
                                                             {"fp16", DType::fp16}, {"float16", DType::fp16},
                                                             {"fp32", DType::fp32}, {"float32", DType::fp32}};
    const auto* const known =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& w) { return w.first == word; });
    if (known == std::end(kWords)) return wrong("dtype", words_.precision, "bfloat16, float16 or float32");
    s.dtype = known->second;
    if (framework_.has_no_master_weights && s.dtype == DType::bf16)
      out_.job.not_modelled.emplace_back("dtype: bf16 (weights and states without fp32 copies)");
    return Ok{};
  }

  // LoRA adapters, if the config has any, and which GEMMs they are on, given by names of Hugging Face modules.
  void use_adapters() {
    const std::string adapter = lower(words_.adapter);
    const bool has = adapter == "lora" || adapter == "qlora" || adapter == "true" ||
                     adapter.ends_with("peftconfig") ||
                     (framework_.adapter_rank == 0 && words_.adapter_rank > 0) ||
                     words_.model.find("lora_") != std::string::npos;
    if (!has && !adapter.empty() && adapter != "full" && adapter != "false")
      out_.job.not_modelled.push_back("fine-tuning: " + adapter.substr(0, 60));
    if (!has) return;
    words_.settings.lora_rank = words_.adapter_rank;
    const double dropout = words_.adapter_dropout < 0 ? framework_.adapter_dropout : words_.adapter_dropout;
    if (dropout > 0) words_.settings.lora_dropout = dropout;
    std::string targets = words_.adapter_targets;
    if (words_.all_linear)
      targets = framework_.all_linear_of_attention ? "all" : targets + " gate_proj up_proj down_proj";
    if (targets.empty()) targets = framework_.adapter_targets;
    std::ranges::replace(targets, ',', ' ');
    // Only plain names are checked, not regular expressions. Adapters on embeddings and the output matrix are
    // not modelled.
    (void)any_word(targets, [&](std::string_view one) {
      if (one.find_first_of("()[]|\\^$*") == std::string_view::npos && adapter_products(one).empty())
        out_.job.not_modelled.push_back(fmt::format("adapters on {}", one.substr(0, 60)));
      return false;
    });
    const std::string products = adapter_products(targets);
    words_.settings.lora_targets = products.empty() ? "linear_qkv" : products;
  }

  // Quantised frozen weights with 4 or 8 bits. 4-bit checkpoints, such as those of Unsloth, have it in their name.
  void use_quantised_base() {
    // Four ways to say 4 bits: a switch, QLoRA as the kind of adapter, a model class, the name of the checkpoint.
    const bool is_nf4 = words_.four_bits || lower(words_.adapter) == "qlora" ||
                        words_.model.find("qlora_") != std::string::npos ||
                        words_.model.ends_with("-bnb-4bit");
    const std::string bits = is_nf4 ? "4" : words_.eight_bits ? "8" : words_.base_bits;
    if (bits.empty()) return;
    const std::string method = !words_.base_method.empty() ? lower(words_.base_method)
                               : words_.base_bits.empty()  ? "bnb"
                                                           : std::string{framework_.base_method};
    const bool is_known = (bits == "4" || bits == "8") && (method == "bnb" || method == "bitsandbytes");
    if (!words_.settings.lora_rank || !is_known) {
      out_.job.not_modelled.push_back(fmt::format("weights in {} bits{}", bits.substr(0, 60),
                                                  !words_.settings.lora_rank ? " without adapters"
                                                  : method.empty()           ? " without a method"
                                                                   : " by " + method.substr(0, 60)));
      return;
    }
    const bool nested =
        words_.nested_scales.empty() ? framework_.nested_scales : words_.nested_scales == "true";
    words_.settings.lora_base_weights = bits == "8" ? "int8" : nested ? "nf4-double" : "nf4";
  }

  // The model: of the job, described by sizes, a folder with a config.json, or a preset by its hub name.
  // Errors: none of these.
  Status use_model() {
    JobSettings& s = words_.settings;
    Job& job = out_.job;
    const auto forget_shapes = [&] {
      setting_groups::kModel.each([&](auto member) { (s.*member).reset(); });
    };
    if (!said_.model.empty() || said_.transformer) {
      forget_shapes();
      return Ok{};
    }
    if (s.n_experts.value_or(0) == 1)
      s.n_experts = s.experts_per_token = std::nullopt;  // in MaxText one expert means none
    if (s.n_layers && (words_.model.empty() || words_.model == "default")) {  // sizes of a model like Llama
      if (!s.tied_embeddings) s.tied_embeddings = false;
      s.swiglu = true;
      s.linear_bias = false;
      s.norm = NormKind::rms_norm;
      s.position = PositionEncoding::rotary;
      s.grouped_query = s.query_groups.has_value();
      s.hidden_dropout = s.attention_dropout = 0;
      return Ok{};
    }
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::path{words_.model} / "config.json", ignored)) {
      job.model = (std::filesystem::path{words_.model} / "config.json").string();
      return Ok{};
    }
    if (std::optional<std::string> preset = preset_of_hub_name(words_.model)) {
      job.model = *std::move(preset);
      forget_shapes();
      return Ok{};
    }
    if (words_.model.empty()) return Error::at(file_, "", "no model is named").advice("say it with --model");
    return wrong("the model", words_.model, "the name of a preset")
        .advice("give its config.json with --model");
  }

  // Combines the settings of the config with those of the job, which have precedence.
  void merge() {
    Job& job = out_.job;
    // `job` is replaced by the given job, so the results of reading are saved first.
    const std::vector<std::string> found = std::move(job.not_modelled);
    const std::optional<Framework> habits = job.framework;
    std::optional<ConfigText> deepspeed = std::move(job.deepspeed);
    const std::string model = job.model;
    job = said_;
    job.config.reset();
    if (job.model.empty() && !job.transformer) job.model = model;
    if (!job.deepspeed) job.deepspeed = std::move(deepspeed);
    if (!job.framework && !job.deepspeed) job.framework = habits.value_or(framework_.habits);
    job.not_modelled.insert(job.not_modelled.end(), found.begin(), found.end());
    JobSettings& s = words_.settings;
    if (framework_.sequence_tokens > 0 && !s.seq_len_tokens) {
      s.seq_len_tokens = framework_.sequence_tokens;
      if (!said_.settings.seq_len_tokens)
        out_.notes.push_back(fmt::format("sequence length not given: {}, the default of {}",
                                         *s.seq_len_tokens, framework_.name));
    }
    if (words_.tensor_outside > 1) s.tensor = s.tensor.value_or(1) * words_.tensor_outside;
    job.settings = over(s, said_.settings);
    if (!job.n_gpus && words_.data > 0 && !job.settings.data) job.settings.data = words_.data;
  }

  // The batches: a micro-batch per data-parallel rank, times the gradient accumulation steps. Errors: degrees
  // or batches out of range, batches that cannot be divided.
  Status use_batches() {
    JobSettings& s = out_.job.settings;
    const std::int64_t tensor = s.tensor.value_or(1),
                       others = tensor * s.pipeline.value_or(1) * s.context.value_or(1);
    constexpr std::int64_t kMost = 1'000'000;
    for (const std::int64_t degree :
         {tensor, s.pipeline.value_or(1), s.context.value_or(1), s.data.value_or(1)})
      if (degree < 1 || degree > kMost)
        return wrong("parallelism", fmt::format("{}", degree), "degrees from 1 to 1e6");
    // Without a number of GPUs, the degrees imply it.
    const std::int64_t gpus = out_.job.n_gpus.value_or(s.data.value_or(1) * std::min(others, kMost));
    const std::int64_t data =
        std::max<std::int64_t>(1, s.data.value_or(gpus / std::max<std::int64_t>(others, 1)));
    double micro = words_.rank_batch;
    if (framework_.batch_per_gpu) {
      // The batch of a GPU is processed in micro-batches by all pipeline stages.
      const std::int64_t stages = s.pipeline.value_or(1),
                         parts = words_.pipeline_parts > 0 ? words_.pipeline_parts : stages;
      micro *= static_cast<double>(gpus) / static_cast<double>(data);
      if (stages > 1 && micro >= 1 && std::fmod(micro, static_cast<double>(parts)) != 0)
        return wrong("num_pipeline_microbatches", fmt::format("{}", parts),
                     fmt::format("a divisor of {:g} sequences", micro));
      if (stages > 1) {
        micro /= static_cast<double>(parts);
        words_.accumulation *= std::min(parts, kMost);
      }
    }
    // The batch per GPU may be a fraction (MaxText), that of a data-parallel rank may not.
    if (micro < 1 || micro > kMost || micro != std::floor(micro))
      return wrong("the batch size per rank", fmt::format("{:g}", micro),
                   "a whole number of sequences, 1 to 1e6");
    if (words_.accumulation < 1 || words_.accumulation > kMost)
      return wrong("gradient accumulation", fmt::format("{}", words_.accumulation), "1 to 1e6");
    if (!s.micro_batch_sequences) s.micro_batch_sequences = static_cast<std::int64_t>(micro);
    constexpr double kMostSequences = 1e9;
    const double all = static_cast<double>(*s.micro_batch_sequences) *
                       static_cast<double>(words_.accumulation) * static_cast<double>(data);
    if (all > kMostSequences)
      return wrong("the global batch", fmt::format("{:g}", all), "at most 1e9 sequences");
    if (!s.global_batch_sequences) s.global_batch_sequences = static_cast<std::int64_t>(all);
    return Ok{};
  }

  // Configuration of the reader, its output, and state while reading. passed_: paths, with a dot, of ignored
  // sections that are being read.
  const ConfigFramework& framework_;
  const Job& said_;
  const std::string& file_;
  FrameworkConfig& out_;
  const JsonValue* root_ = nullptr;
  ConfigWords words_;
  std::vector<std::string> passed_;
};

}  // namespace

std::string adapter_products(std::string_view names) {
  // A GEMM of a layer, and the module names in which it is found.
  struct Product {
    std::string_view name, named;
  };
  constexpr Product kProducts[] = {
      {"linear_qkv", "linear_qkv q_proj k_proj v_proj qkv_proj query_key_value c_attn Wqkv W_pack *_proj"},
      {"linear_proj", "linear_proj o_proj output_proj out_proj *_proj"},
      {"linear_fc1", "linear_fc1 gate_proj up_proj gate_up_proj fc1 dense_h_to_4h c_fc w1 w3 *_proj"},
      {"linear_fc2", "linear_fc2 down_proj fc2 dense_4h_to_h w2 *_proj"}};
  // Regular expressions select modules, too: `(self_attn|mlp).(up|down|q|k|v)_proj` expands to up_proj, down_proj, ...
  std::string targets{names};
  if (const std::size_t end = targets.rfind(")_proj"); end != std::string::npos) {
    const std::size_t begin = targets.rfind('(', end) + 1;
    const std::string choice = targets.substr(begin, end - begin);
    const auto add = [&](std::string_view one) {
      targets += fmt::format(" {}_proj", one);
      return false;
    };
    (void)any_word(choice, add, '|');
  }
  std::string products;
  for (const Product& product : kProducts) {
    // "all" and "all-linear" mean all four GEMMs.
    const bool is_named = targets.starts_with("all") || any_word(product.named, [&](std::string_view n) {
                            return targets.find(n) != std::string::npos;
                          });
    if (is_named) products += (products.empty() ? "" : " ") + std::string{product.name};
  }
  return products;
}

Result<FrameworkConfig> parse_framework_config(const Job& said) {
  const ConfigText& text = *said.config;
  STEPCAST_ASSIGN(const JsonValue root, parse_yaml(text.text, text.name));
  if (!root.is_object())
    return Error::at(text.name, "").found(std::string{root.kind_name()}).expected("keys with their values");
  STEPCAST_ASSIGN(const ConfigFramework* framework, detail::framework_of(root, text.name));
  FrameworkConfig out;
  out.framework = framework->name;
  out.notes.push_back(fmt::format("read as a config of {}", framework->name));
  STEPCAST_TRY(framework->read != nullptr ? framework->read(root, said, out)
                                          : ConfigReader(*framework, said, out).read(root));
  return out;
}

// Lines with unknown keys are dropped, because MaxText prints hundreds of parameters without effect.
std::string known_maxtext_keys(std::string_view parameters) {
  const ConfigFramework& maxtext =
      *std::ranges::find(detail::config_frameworks(), "MaxText", &ConfigFramework::name);
  std::string known;
  const auto add = [&](std::string_view line) {
    const std::string_view key = line.substr(0, line.find(':'));
    if (std::ranges::any_of(maxtext.rows, [&](const ConfigRow& row) { return row.path == key; }))
      known += std::string{line} + "\n";
    return false;
  };
  (void)any_word(parameters, add, '\n');
  return known;
}

namespace detail {

JobFormat config_format() {
  static constexpr JobPart kOthers[] = {JobPart::command_line, JobPart::torchtitan};
  const auto read = [](const Job& job) -> Result<ResolvedJob> {
    STEPCAST_ASSIGN(const FrameworkConfig config, parse_framework_config(job));
    STEPCAST_ASSIGN(ResolvedJob result, stepcast::resolve(config.job));
    result.notes.insert(result.notes.begin(), config.notes.begin(), config.notes.end());
    return result;
  };
  return {.flag = "--config",
          .is = [](const Job& job) { return job.config.has_value(); },
          .excludes = kOthers,
          .resolve = read};
}

}  // namespace detail
}  // namespace stepcast
