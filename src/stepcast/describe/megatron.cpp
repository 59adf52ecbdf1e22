#include "stepcast/describe/megatron.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/describe/detail/megatron_flags.h"
#include "stepcast/describe/detail/shell/script.h"

namespace stepcast {
namespace {

bool is_flag(std::string_view word) { return word.starts_with("--") && word.size() > 2; }

// A variable or a command that the script does not tell.
bool is_open(std::string_view word) { return word.find_first_of("$`") != std::string_view::npos; }

// A flag and the words behind it.
struct GivenFlag {
  std::string_view name;
  std::vector<std::string_view> values;
};

Result<std::vector<GivenFlag>> group_words(std::span<const std::string> words) {
  std::vector<GivenFlag> flags;
  for (const std::string& word : words) {
    if (!is_flag(word)) {
      if (flags.empty()) {
        return Error{"the first word is not a flag"}
            .found(fmt::format("`{}`", word.substr(0, 60)))
            .expected("--...");
      }
      flags.back().values.emplace_back(word);
      continue;
    }
    const std::string_view text = word;
    const std::size_t equals = text.find('=');
    GivenFlag flag{text.substr(0, equals), {}};
    if (equals != std::string_view::npos) flag.values.push_back(text.substr(equals + 1));
    flags.push_back(std::move(flag));
  }
  return flags;
}

Error wrong_value(const GivenFlag& flag, std::string_view expected) {
  std::string found = "nothing";
  if (flag.values.size() == 1) found = fmt::format("`{}`", flag.values.front().substr(0, 60));
  if (flag.values.size() > 1) found = fmt::format("{} words", flag.values.size());
  Error error = Error::at("", std::string{flag.name}).found(std::move(found)).expected(std::string{expected});
  for (const std::string_view value : flag.values) {
    if (!is_open(value)) continue;
    return std::move(error).advice(
        fmt::format("the script does not say what {} is: write its value in its place", value.substr(0, 60)));
  }
  return error;
}

Status read_value(const GivenFlag& flag, std::int64_t& out) {
  constexpr std::int64_t kLargest = 1'000'000'000;
  std::int64_t value = 0;
  const std::string_view text = flag.values.size() == 1 ? flag.values.front() : std::string_view{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < 0 || value > kLargest) {
    return wrong_value(flag, "a whole number from 0 to 1e9");
  }
  out = value;
  return Ok{};
}

Status read_value(const GivenFlag& flag, double& out) {
  double value = 0;
  const std::string_view text = flag.values.size() == 1 ? flag.values.front() : std::string_view{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || !std::isfinite(value)) {
    return wrong_value(flag, "a number");
  }
  out = value;
  return Ok{};
}

Status read_value(const GivenFlag& flag, std::string& out) {
  if (flag.values.size() != 1) return wrong_value(flag, "one word");
  out = flag.values.front();
  return Ok{};
}

template <class Value>
Status set(const GivenFlag& flag, std::optional<Value> JobSettings::*field, JobSettings& settings) {
  Value value{};
  STEPCAST_TRY(read_value(flag, value));
  settings.*field = std::move(value);
  return Ok{};
}

Status set(const GivenFlag& flag, const detail::MegatronWordList& known, JobSettings& settings) {
  if (flag.values.empty()) return wrong_value(flag, "one word or several");
  std::string words;
  for (const std::string_view value : flag.values)
    words += fmt::format("{}{}", words.empty() ? "" : " ", value);
  settings.*known.field = std::move(words);
  return Ok{};
}

template <class Value>
Status set(const GivenFlag& flag, const detail::MegatronSwitch<Value>& known, JobSettings& settings) {
  if (!flag.values.empty()) return wrong_value(flag, "no value");
  settings.*known.field = known.value;
  return Ok{};
}

template <class Value>
Status set(const GivenFlag& flag, const detail::MegatronChoice<Value>& known, JobSettings& settings) {
  std::string word, words;
  STEPCAST_TRY(read_value(flag, word));
  for (const auto& [name, value] : known.words) {
    if (name == word) {
      settings.*known.field = value;
      return Ok{};
    }
    words += fmt::format("{}{}", words.empty() ? "" : ", ", name);
  }
  return wrong_value(flag, fmt::format("one of {}", words));
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Error unknown_flag(std::string_view name, std::span<const std::string> others) {
  std::vector<std::string> known{others.begin(), others.end()};
  for (const MegatronFlag& flag : megatron_flags()) known.emplace_back(flag.name);
  constexpr std::string_view kOtherWork[] = {"inference", "serv", "generat", "decode",
                                             "rlhf",      "ppo",  "grpo",    "reward"};
  if (std::any_of(std::begin(kOtherWork), std::end(kOtherWork),
                  [&](std::string_view word) { return name.find(word) != std::string_view::npos; })) {
    return Error::at(
        "", std::string{name.substr(0, 80)},
        "inference and reinforcement learning are not modelled: a forecast is of a training step");
  }
  Error error = Error::at("", std::string{name.substr(0, 80)}, "unknown flag");
  // As other software, or nobody, spells it.
  constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
      {"--fsdp", "--zero-stage 3 or --framework fsdp shards weights, gradients and optimizer states"},
      {"--zero", "write --zero-stage 1, 2 or 3"},
      {"--dp", "data parallel is what --gpus leaves: give --gpus"},
      {"--lora", "write --lora-rank 16"},
      {"--qlora",
       "--lora-rank trains adapters on frozen weights in 16 bits; weights of 4 bits are not modelled"},
      {"--peft", "write --lora-rank 16"},
      {"--packing", "write --packed-mean-tokens 512, the mean length of what is packed"},
      {"--list-models", "`stepcast models` lists them"},
      {"--batch-size", "write --mbs for a micro-batch and --gbs for a step, both in sequences"},
      {"--virtual-pipeline-model-parallel-size",
       "write --num-virtual-stages-per-pipeline-rank 2, or --num-layers-per-virtual-pipeline-stage 4"},
      {"--layers-per-stage", "write --pipeline-model-parallel-layout 7,8,8,7"},
      {"--num-gpus", "write --gpus"},
      {"--bf16-params", "write --dtype bf16"}};
  for (const auto& [elsewhere, advice] : kElsewhere) {
    if (name == elsewhere) return std::move(error).advice(std::string{advice});
  }
  if (const auto meant = nearest_word(name, known)) {
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  }
  return std::move(error).advice("`stepcast reference megatron-flags` lists the flags that are known");
}

// Values that the setting of their flag cannot hold.
bool is_value_not_modelled(const GivenFlag& flag) {
  constexpr std::pair<std::string_view, std::string_view> kValues[] = {{"--cp-comm-type", "a2a+p2p"}};
  return std::any_of(std::begin(kValues), std::end(kValues), [&](const auto& known) {
    return known.first == flag.name && flag.values.size() == 1 && flag.values.front() == known.second;
  });
}

Status apply(const GivenFlag& flag, std::span<const std::string> others, MegatronWords& words) {
  const bool value_not_modelled = is_value_not_modelled(flag);
  if (!value_not_modelled) {
    for (const detail::MegatronSettingFlag& known : detail::megatron_setting_flags()) {
      if (known.name != flag.name) continue;
      const std::optional<DType> before = words.settings.dtype;
      STEPCAST_TRY(
          std::visit([&](const auto& setting) { return set(flag, setting, words.settings); }, known.setting));
      if (before && words.settings.dtype != before) {
        return Error::at("", std::string{flag.name},
                         fmt::format("given together with --{}", to_string(*before)))
            .advice("choose one");
      }
      return Ok{};
    }
    if (contains(detail::megatron_flags_passed_over(), flag.name)) return Ok{};
    if (!contains(detail::megatron_flags_not_modelled(), flag.name)) return unknown_flag(flag.name, others);
  }
  std::string text{flag.name};
  for (const std::string_view value : flag.values) text += fmt::format(" {}", value);
  words.not_modelled.push_back(std::move(text));
  return Ok{};
}

// Flags that say different things of one thing. `word` is the one that contradicts, of a flag that has words.
struct Contradiction {
  std::string_view flag, word, other;
};
constexpr Contradiction kContradictions[] = {
    {"--recompute-granularity", "full", "--recompute-activations"},  // which means selective
    {"--attention-backend", "unfused", "--use-flash-attn"},
    {"--no-tp-comm-overlap", "", "--tp-comm-overlap"},
    {"--squared-relu", "", "--swiglu"},
};

Status check_contradictions(std::span<const GivenFlag> flags, const JobSettings& settings) {
  const auto is_given = [&](std::string_view name, std::string_view word) {
    return std::any_of(flags.begin(), flags.end(), [&](const GivenFlag& flag) {
      return flag.name == name && (word.empty() || (flag.values.size() == 1 && flag.values.front() == word));
    });
  };
  for (const auto& [flag, word, other] : kContradictions) {
    if (!is_given(flag, word) || !is_given(other, "")) continue;
    return Error::at("", fmt::format("{}{}{}", flag, word.empty() ? "" : " ", word),
                     fmt::format("given together with {}", other))
        .advice("choose one");
  }
  const std::int64_t padded = settings.padded_vocab_size.value_or(0), vocab = settings.vocab_size.value_or(0);
  if (padded > 0 && padded < vocab) {
    return Error::at("", "--padded-vocab-size")
        .found(fmt::format("{}", padded))
        .expected(fmt::format("at least the {} of --vocab-size", vocab));
  }
  return Ok{};
}

// What stands in front of the script.
struct Launch {
  std::optional<std::int64_t> nodes, gpus_per_node, processes;
  std::optional<Error> unknown;  // a number that the script does not tell
  std::string script, elastic;   // elastic: what is not modelled of a number of nodes that may change
  std::span<const std::string> flags;
};

Result<Launch> split_launcher(std::span<const std::string> words) {
  Launch launch;
  const auto script =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.ends_with(".py"); });
  if (script == words.end()) {
    launch.flags = words;
    return launch;
  }
  launch.script = *script;
  const auto position = static_cast<std::size_t>(script - words.begin());
  launch.flags = words.subspan(position + 1);
  for (std::size_t i = 0; i < position; ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const bool is_nodes = name == "--nnodes" || name == "--num_nodes";
    const bool is_all = name == "--num_processes";
    if (!is_nodes && !is_all && name != "--nproc_per_node" && name != "--nproc-per-node" &&
        name != "--num_gpus")
      continue;
    GivenFlag flag{name, {}};
    if (equals != std::string_view::npos) {
      flag.values.push_back(word.substr(equals + 1));
    } else if (i + 1 < position) {
      flag.values.push_back(words[i + 1]);
    }
    std::int64_t n = 0;
    const std::string_view value = flag.values.empty() ? std::string_view{} : flag.values.front();
    if (!is_nodes &&
        (value == "gpu" || value == "auto")) {  // as many as there are: who runs it says how many
      launch.unknown = wrong_value(flag, "a whole number");
      continue;
    }
    if (const std::size_t colon = value.find(':'); is_nodes && colon != std::string_view::npos) {
      launch.elastic = fmt::format("--nnodes {}: the most of them are taken", value.substr(0, 40));
      flag.values.front() = value.substr(colon + 1);
    }
    if (is_open(value)) {
      launch.unknown = wrong_value(flag, "a whole number");
      continue;
    }
    STEPCAST_TRY(read_value(flag, n));
    constexpr std::int64_t kMost = 10'000'000;
    if (n < 1 || n > kMost) return wrong_value(flag, "1 or more");
    (is_nodes ? launch.nodes : is_all ? launch.processes : launch.gpus_per_node) = n;
  }
  return launch;
}

Status check_script(std::string_view file) {
  for (const std::string_view other :
       {"pretrain_t5.py", "pretrain_ict.py", "pretrain_vision_classify.py", "pretrain_vision_inpaint.py",
        "pretrain_vision_dino.py", "pretrain_retro.py", "pretrain_mamba.py", "pretrain_vlm.py"}) {
    if (file == other)
      return Error{fmt::format("`{}` trains no decoder or BERT", file)}.expected("pretrain_gpt.py");
  }
  return Ok{};
}

}  // namespace

Result<MegatronWords> parse_megatron_flags(std::span<const std::string> words,
                                           std::span<const std::string> others) {
  MegatronWords result;
  STEPCAST_ASSIGN(const std::vector<GivenFlag> flags, group_words(words));
  for (const GivenFlag& flag : flags) STEPCAST_TRY(apply(flag, others, result));
  STEPCAST_TRY(check_contradictions(flags, result.settings));
  return result;
}

Result<MegatronWords> parse_megatron_command_line(std::string_view line) {
  STEPCAST_ASSIGN(const std::vector<std::string> words, detail::launch_words(line));
  STEPCAST_ASSIGN(const Launch launch, split_launcher(words));
  const std::string_view script = std::string_view{launch.script}.substr(launch.script.rfind('/') + 1);
  STEPCAST_TRY(check_script(script));
  STEPCAST_ASSIGN(MegatronWords result, parse_megatron_flags(launch.flags));
  if (!launch.elastic.empty()) result.not_modelled.push_back(launch.elastic);
  result.is_bert = script == "pretrain_bert.py";
  // The script's own default (args_defaults); --merge-file says that it is meant.
  const bool has_merges = std::any_of(launch.flags.begin(), launch.flags.end(), [](std::string_view word) {
    return word == "--merge-file" || word.starts_with("--merge-file=");
  });
  if (script == "pretrain_gpt.py" && has_merges && !result.settings.tokenizer) {
    result.settings.tokenizer = "GPT2BPETokenizer";
  }
  result.gpus_per_node = launch.gpus_per_node;
  result.unknown_gpus = launch.unknown;
  if (launch.processes) result.n_gpus = launch.processes;
  if (launch.gpus_per_node && !launch.unknown)
    result.n_gpus = *launch.gpus_per_node * launch.nodes.value_or(1);
  return result;
}

std::vector<MegatronFlag> megatron_flags() {
  std::vector<MegatronFlag> flags;
  for (const auto& flag : detail::megatron_setting_flags())
    flags.push_back({flag.name, MegatronFlagUse::understood});
  for (const std::string_view name : detail::megatron_flags_not_modelled()) {
    flags.push_back({name, MegatronFlagUse::not_modelled});
  }
  for (const std::string_view name : detail::megatron_flags_passed_over()) {
    flags.push_back({name, MegatronFlagUse::passed_over});
  }
  return flags;
}

}  // namespace stepcast
