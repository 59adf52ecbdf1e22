#include "stepcast/describe/megatron.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/describe/detail/megatron_flags.h"
#include "stepcast/describe/detail/megatron_job.h"
#include "stepcast/describe/detail/shell_words.h"

namespace stepcast {
namespace {

using detail::megatron_tables;
using detail::MegatronScratch;

bool is_flag(std::string_view word) { return word.starts_with("--") && word.size() > 2; }

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
        return Error{"the first word is no flag"}
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
  return Error::at("", std::string{flag.name}).found(std::move(found)).expected(std::string{expected});
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

enum class Found : std::uint8_t { no, yes };

// Sets the field of `target` that a table has for the flag.
template <class Fields, class Target>
Result<Found> set_value(const Fields& fields, const GivenFlag& flag, Target& target) {
  for (const auto& entry : fields) {
    if (entry.name != flag.name) continue;
    STEPCAST_TRY(read_value(flag, target.*entry.field));
    return Found::yes;
  }
  return Found::no;
}

template <class Switches, class Target>
Result<Found> set_switch(const Switches& switches, const GivenFlag& flag, Target& target) {
  for (const auto& entry : switches) {
    if (entry.name != flag.name) continue;
    if (!flag.values.empty()) return wrong_value(flag, "no value");
    target.*entry.field = entry.value;
    return Found::yes;
  }
  return Found::no;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Error unknown_flag(std::string_view name) {
  std::vector<std::string> known;
  for (const MegatronFlag& flag : megatron_flags()) known.emplace_back(flag.name);
  Error error = Error::at("", std::string{name.substr(0, 80)}, "unknown flag");
  if (const auto meant = nearest_word(name, known)) {
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  }
  return std::move(error).advice("docs/models.md lists the flags that are known");
}

Status apply(const GivenFlag& flag, DescribedJob& job, MegatronScratch& scratch) {
  const auto& t = megatron_tables();
  Found found = Found::no;
  const auto in = [&found](Result<Found> result) -> Status {
    if (!result.ok()) return result.error();
    found = *result;
    return Ok{};
  };
  const auto try_all = [&]() -> Status {
    Layout& layout = job.layout;
    STEPCAST_TRY(in(set_value(t.model_counts, flag, job.model)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.degrees, flag, layout.degrees)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.batch, flag, layout.batch)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.software_counts, flag, layout.software)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.scratch_counts, flag, scratch)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.model_numbers, flag, job.model)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.scratch_numbers, flag, scratch)));
    if (found == Found::no) STEPCAST_TRY(in(set_value(t.texts, flag, scratch)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.model_switches, flag, job.model)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.layer_switches, flag, layout.layer)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.pipeline_switches, flag, layout.pipeline)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.sharding_switches, flag, layout.sharding)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.fused_switches, flag, layout.layer.fused)));
    if (found == Found::no)
      STEPCAST_TRY(in(set_switch(t.layer_overlap_switches, flag, layout.layer.overlap)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.fp8_switches, flag, layout.layer.precision.fp8)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.optimizer_switches, flag, layout.optimizer)));
    if (found == Found::no) STEPCAST_TRY(in(set_switch(t.scratch_switches, flag, scratch)));
    return Ok{};
  };
  STEPCAST_TRY(try_all());
  if (found == Found::yes || contains(t.passed_over, flag.name)) return Ok{};
  if (!contains(t.not_modelled, flag.name)) return unknown_flag(flag.name);
  std::string text{flag.name};
  for (const std::string_view value : flag.values) text += fmt::format(" {}", value);
  job.not_modelled.push_back(std::move(text));
  return Ok{};
}

// What stands in front of the script.
struct Launch {
  std::optional<std::int64_t> nodes, gpus_per_node;
  std::string script;
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
    const bool is_nodes = name == "--nnodes";
    if (!is_nodes && name != "--nproc_per_node" && name != "--nproc-per-node") continue;
    GivenFlag flag{name, {}};
    if (equals != std::string_view::npos) {
      flag.values.push_back(word.substr(equals + 1));
    } else if (i + 1 < position) {
      flag.values.push_back(words[i + 1]);
    }
    std::int64_t n = 0;
    STEPCAST_TRY(read_value(flag, n));
    constexpr std::int64_t kMost = 10'000'000;
    if (n < 1 || n > kMost) return wrong_value(flag, "1 or more");
    (is_nodes ? launch.nodes : launch.gpus_per_node) = n;
  }
  return launch;
}

// BERT as Megatron builds it: norms before the parts, a binary head.
Status use_script(const std::string& script, DescribedJob& job) {
  const std::string_view file = std::string_view{script}.substr(script.rfind('/') + 1);
  for (const std::string_view other :
       {"pretrain_t5.py", "pretrain_ict.py", "pretrain_vision_classify.py", "pretrain_vision_inpaint.py",
        "pretrain_vision_dino.py", "pretrain_retro.py", "pretrain_mamba.py", "pretrain_vlm.py"}) {
    if (file == other)
      return Error{fmt::format("`{}` trains no decoder or BERT", file)}.expected("pretrain_gpt.py");
  }
  if (file == "pretrain_bert.py") {
    job.model.architecture = Architecture::encoder;
    job.model.n_token_types = 2;
    job.model.pooler = job.model.mlm_head = job.model.head_bias = true;
  }
  return Ok{};
}

Result<DescribedJob> parse(const Launch& launch, const MegatronOptions& options) {
  DescribedJob job;
  if (options.model) {
    job.model = *options.model;
  } else {
    job.model.name = "model";
    job.model.hidden_dropout = job.model.attention_dropout = 0.1;  // Megatron's defaults
    STEPCAST_TRY(use_script(launch.script, job));
  }
  job.gpus_per_node = launch.gpus_per_node;
  if (launch.gpus_per_node) job.n_gpus = *launch.gpus_per_node * launch.nodes.value_or(1);
  if (options.n_gpus) job.n_gpus = options.n_gpus;
  MegatronScratch scratch;
  STEPCAST_ASSIGN(const std::vector<GivenFlag> flags, group_words(launch.flags));
  for (const GivenFlag& flag : flags) STEPCAST_TRY(apply(flag, job, scratch));
  STEPCAST_TRY(detail::finish_megatron_job(scratch, options.model.has_value(), job));
  return job;
}

}  // namespace

Result<DescribedJob> parse_megatron_arguments(std::span<const std::string> words,
                                              const MegatronOptions& options) {
  Launch launch;
  launch.flags = words;
  return parse(launch, options);
}

Result<DescribedJob> parse_megatron_command_line(std::string_view line, const MegatronOptions& options) {
  STEPCAST_ASSIGN(const std::vector<std::string> words, detail::split_shell_words(line));
  STEPCAST_ASSIGN(const Launch launch, split_launcher(words));
  return parse(launch, options);
}

std::vector<MegatronFlag> megatron_flags() {
  const auto& t = megatron_tables();
  std::vector<MegatronFlag> flags;
  const auto add = [&flags](const auto& fields) {
    for (const auto& entry : fields) flags.push_back({entry.name, MegatronFlagUse::understood});
  };
  add(t.model_counts);
  add(t.degrees);
  add(t.batch);
  add(t.software_counts);
  add(t.scratch_counts);
  add(t.model_numbers);
  add(t.scratch_numbers);
  add(t.texts);
  add(t.model_switches);
  add(t.layer_switches);
  add(t.pipeline_switches);
  add(t.sharding_switches);
  add(t.fused_switches);
  add(t.layer_overlap_switches);
  add(t.fp8_switches);
  add(t.optimizer_switches);
  add(t.scratch_switches);
  for (const std::string_view name : t.not_modelled) flags.push_back({name, MegatronFlagUse::not_modelled});
  for (const std::string_view name : t.passed_over) flags.push_back({name, MegatronFlagUse::passed_over});
  return flags;
}

}  // namespace stepcast
