// Parses command lines of Megatron-LM. group_words() assigns words to flags; apply() translates each flag by
// the tables of detail/megatron_flags.h; split_launcher() reads the number of GPUs from the launcher.
#include "stepcast/formats/megatron.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/scan.h"
#include "stepcast/formats/detail/foreign_words.h"
#include "stepcast/formats/detail/megatron_flags.h"
#include "stepcast/formats/detail/shell/script.h"

namespace stepcast {
namespace {

bool is_flag(std::string_view word) { return word.starts_with("--") && word.size() > 2; }

// Whether a word contains a variable or command that the script does not determine.
bool is_open(std::string_view word) { return word.find_first_of("$`") != std::string_view::npos; }

// A flag with its values.
struct GivenFlag {
  std::string_view name;
  std::vector<std::string_view> values;
};

// A word of an array may contain a flag with its values: "--fp8-format hybrid".
void add_parts(std::string_view word, std::vector<GivenFlag>& flags) {
  const std::size_t blank = word.find(' ');
  flags.push_back({word.substr(0, blank), {}});
  for (std::string_view rest = word.substr(blank); !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    std::string_view value = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (value.size() > 1 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    if (!value.empty()) flags.back().values.push_back(value);
  }
}

// Whether a word is replaced by an unknown list of flags at run time: `$EXTRA`, `${ARGS[@]}`, `$(more_flags)`. False if the
// last flag still needs a value.
bool is_open_list(std::string_view word, const std::vector<GivenFlag>& flags) {
  const bool is_output = (word.starts_with("$(") && word.ends_with(')')) ||
                         (word.size() > 1 && word.starts_with('`') && word.ends_with('`'));
  const bool is_one_variable = word.size() > 1 && word.front() == '$' && word[1] != '(' &&
                               word.find_first_of("$`/:.,=", 1) == std::string_view::npos;
  if (!is_one_variable && !is_output) return false;
  if (flags.empty()) return is_one_variable;
  if (word.ends_with("[@]}")) return true;
  const GivenFlag& last = flags.back();
  const detail::MegatronSettingFlag* setting = detail::find_megatron_flag(last.name).setting;
  if (setting == nullptr) return !last.values.empty();
  if (std::holds_alternative<detail::MegatronWordList>(setting->setting)) return false;
  const bool is_switch = std::visit([](const auto& s) { return requires { s.value; }; }, setting->setting);
  return is_switch || !last.values.empty();
}

// Assigns values to flags. Words with unknown content go to `unknown`. Errors: the first word is not a flag.
Result<std::vector<GivenFlag>> group_words(std::span<const std::string> words,
                                           std::vector<std::string>& unknown) {
  std::vector<GivenFlag> flags;
  for (const std::string& word : words) {
    // A flag and its values in one word.
    if (is_flag(word) && word.find(' ') < word.find('=')) {
      add_parts(word, flags);
      continue;
    }
    if (is_open_list(word, flags)) {
      unknown.push_back(fmt::format("{}: the script does not set it", word.substr(0, 80)));
      continue;
    }
    if (!is_flag(word)) {
      if (flags.empty()) {
        // read_launch_script() inserts sourced files that exist; this one does not.
        if ((word == "." || word == "source") && words.size() > 1) {
          return Error{"the script reads its flags from another file"}
              .found(fmt::format("`{} {}`", word, words[1].substr(0, 60)))
              .advice("put its lines into the script");
        }
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

// The error for a flag with a wrong value. If the value is an unknown variable, the advice says so.
Error wrong_value(const GivenFlag& flag, std::string_view expected) {
  std::string found = "nothing";
  if (flag.values.size() == 1) found = fmt::format("`{}`", flag.values.front().substr(0, 60));
  if (flag.values.size() > 1) found = fmt::format("{} words", flag.values.size());
  Error error = Error::at("", std::string{flag.name}).found(std::move(found)).expected(std::string{expected});
  for (const std::string_view value : flag.values) {
    if (!is_open(value)) continue;
    return std::move(error).advice(
        fmt::format("the script does not set {}: replace it by its value", value.substr(0, 60)));
  }
  return error;
}

// Reads the only value of a flag: an integer, a number, or a word.
Status read_value(const GivenFlag& flag, std::int64_t& out) {
  constexpr std::int64_t kLargest = 1'000'000'000;
  const std::string_view text = flag.values.size() == 1 ? flag.values.front() : std::string_view{};
  const std::int64_t value = scan<std::int64_t>(text).value_or(-1);
  if (value < 0 || value > kLargest) {
    return wrong_value(flag, "a whole number from 0 to 1e9");
  }
  out = value;
  return Ok{};
}

Status read_value(const GivenFlag& flag, double& out) {
  const std::string_view text = flag.values.size() == 1 ? flag.values.front() : std::string_view{};
  const std::optional<double> value = scan<double>(text);
  if (!value || !std::isfinite(*value)) return wrong_value(flag, "a number");
  out = *value;
  return Ok{};
}

Status read_value(const GivenFlag& flag, std::string& out) {
  if (flag.values.size() != 1) return wrong_value(flag, "one word");
  out = flag.values.front();
  return Ok{};
}

// Stores the value of a flag in its member. One overload per kind of flag.
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

// The error for an unknown flag, with the flag that may have been meant.
Error unknown_flag(std::string_view name, std::span<const std::string> others) {
  Error error = Error::at("", std::string{name.substr(0, 80)}, "unknown flag");
  // Spellings of other software, or common mistakes.
  for (const auto& [elsewhere, advice] : detail::foreign_words("flags_elsewhere"))
    if (name == elsewhere) return std::move(error).advice(std::string{advice});
  std::vector<std::string> known{others.begin(), others.end()};
  for (const MegatronFlag& flag : megatron_flags()) {
    if (!flag.name.ends_with('*') && flag.use != MegatronFlagUse::out_of_scope) known.push_back(flag.name);
  }
  if (const auto meant = nearest_word(name, known)) {
    return std::move(error).advice(fmt::format("did you mean `{}`?", *meant));
  }
  return std::move(error).advice("`stepcast reference megatron-flags` lists the known flags");
}

// Whether the value of a flag cannot be expressed by its setting.
bool is_value_not_modelled(const GivenFlag& flag) {
  return std::ranges::any_of(detail::foreign_words("values_not_modelled"), [&](const auto& known) {
    return known.word == flag.name && flag.values.size() == 1 && flag.values.front() == known.says;
  });
}

// The final batch of a batch size schedule: "0:384 200B:768 400B:1152" gives 1152.
Status apply_schedule(const GivenFlag& flag, JobSettings& settings) {
  std::string_view last = flag.values.empty() ? std::string_view{} : flag.values.back();
  last.remove_prefix(std::min(last.rfind(':') + 1, last.size()));
  std::int64_t batch = 0;
  STEPCAST_TRY(read_value(GivenFlag{flag.name, {last}}, batch));
  settings.global_batch_sequences = batch;
  return Ok{};
}

// Stores a flag that is a setting. Errors: two flags for different number types.
Status apply_setting(const GivenFlag& flag, const detail::FoundMegatronFlag& found, JobSettings& settings) {
  // --bf16 and --fp16 set the same member, so a change means a contradiction.
  const std::optional<DType> before = settings.dtype;
  if (flag.name == "--num-key-value-heads") settings.grouped_query = true;
  STEPCAST_TRY(
      std::visit([&](const auto& setting) { return set(flag, setting, settings); }, found.setting->setting));
  if (const auto* on = std::get_if<detail::MegatronSwitch<bool>>(&found.setting->setting);
      on != nullptr && found.opposite) {
    settings.*on->field = !on->value;
  }
  if (before && settings.dtype != before) {
    return Error::at("", std::string{flag.name}, fmt::format("given together with --{}", to_string(*before)))
        .advice("choose one");
  }
  return Ok{};
}

// Applies one flag: sets a member, ignores it, lists it as not modelled, or rejects it (out of scope).
Status apply(const GivenFlag& flag, std::span<const std::string> others, MegatronWords& words) {
  const detail::FoundMegatronFlag found = detail::find_megatron_flag(flag.name);
  if (found.setting == nullptr && found.row == nullptr) {
    words.unknown.push_back(unknown_flag(flag.name, others).message());
    return Ok{};
  }
  if (found.setting != nullptr && !is_value_not_modelled(flag))
    return apply_setting(flag, found, words.settings);
  if (found.row != nullptr) {
    if (found.row->use == MegatronFlagUse::passed_over) return Ok{};
    if (found.row->use == MegatronFlagUse::out_of_scope)
      return Error::at("", std::string{flag.name.substr(0, 80)}, std::string{found.row->why});
  }
  if (flag.name == "--step-batch-size-schedule") STEPCAST_TRY(apply_schedule(flag, words.settings));
  std::string text{flag.name};
  for (const std::string_view value : flag.values) text += fmt::format(" {}", value);
  words.not_modelled.push_back(std::move(text));
  return Ok{};
}

// Pairs of contradicting flags. `word`: the contradicting value, if the flag has values.
struct Contradiction {
  std::string_view flag, word, other;
};
constexpr Contradiction kContradictions[] = {
    {"--recompute-granularity", "full", "--recompute-activations"},  // means selective recomputation
    {"--attention-backend", "unfused", "--use-flash-attn"},
    {"--no-tp-comm-overlap", "", "--tp-comm-overlap"},
    {"--squared-relu", "", "--swiglu"},
};

// Errors: contradicting flags, or flags that contradict settings derived from others.
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
  if (settings.zero_stage.value_or(0) > 1 && settings.distributed_optimizer.value_or(false)) {
    return Error::at("", fmt::format("--zero-stage {}", *settings.zero_stage),
                     "given with --use-distributed-optimizer, which is stage 1")
        .advice("choose one");
  }
  const std::int64_t padded = settings.padded_vocab_size.value_or(0), vocab = settings.vocab_size.value_or(0);
  if (padded > 0 && padded < vocab) {
    return bad_value("--padded-vocab-size", padded, fmt::format("at least the {} of --vocab-size", vocab));
  }
  return Ok{};
}

// The words before the script.
struct Launch {
  std::optional<std::int64_t> nodes, gpus_per_node, processes;
  std::optional<Error> unknown;  // a number that the script does not determine
  std::string script, elastic;   // elastic: a note about a number of nodes that may change
  std::span<const std::string> flags;
};

// Processes that srun or mpirun starts, each with one GPU, if they run Python directly. Nothing with
// torchrun, or if no number is given.
std::optional<std::int64_t> tasks_of(std::span<const std::string> words) {
  constexpr std::string_view kSlurm[] = {"--nodes", "-N", "--ntasks-per-node", "--ntasks", "-n"};
  constexpr std::string_view kMpi[] = {"-np", "--np", "-n"};
  std::int64_t nodes = 0, in_node = 0, all = 0;
  bool is_slurm = false, is_mpi = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.starts_with("python") || word == "bash" || word == "sh") break;
    if (word == "torchrun") return std::nullopt;
    is_slurm = is_slurm || word == "srun";
    is_mpi = is_mpi || word.ends_with("mpirun") || word.ends_with("mpiexec");
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string_view value = word.substr(std::min(equals + 1, word.size()));
    word = word.substr(0, equals);
    if (!(is_slurm && std::ranges::count(kSlurm, word) > 0) &&
        !(is_mpi && std::ranges::count(kMpi, word) > 0))
      continue;
    if (value.empty() && i + 1 < words.size()) value = words[i + 1];
    std::int64_t n = 0;
    if (!read_value(GivenFlag{word, {value}}, n).ok()) continue;
    (word == "--nodes" || word == "-N" ? nodes : word == "--ntasks-per-node" ? in_node : all) = n;
  }
  if (nodes > 0 && in_node > 0 && nodes <= 1'000'000 && in_node <= 1'000'000) all = nodes * in_node;
  return all > 0 ? std::optional{all} : std::nullopt;
}

// Splits a command at the Python script, and reads the launcher's options. Without a script, all words are flags.
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
    // Options of torchrun, accelerate and deepspeed.
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
    if (!is_nodes && (value == "gpu" || value == "auto")) {  // all GPUs of the machine, an unknown number
      launch.unknown = wrong_value(flag, "a whole number");
      continue;
    }
    // An elastic job: MIN:MAX nodes. The maximum is used.
    if (const std::size_t colon = value.find(':'); is_nodes && colon != std::string_view::npos) {
      launch.elastic = fmt::format("--nnodes {}: the maximum is used", value.substr(0, 40));
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
  if (!launch.processes) launch.processes = tasks_of(words.first(position));
  return launch;
}

// Number of GPUs of a launcher; nothing if it is not known.
std::optional<std::int64_t> gpus_of(const Launch& launch) {
  if (launch.gpus_per_node && !launch.unknown) return *launch.gpus_per_node * launch.nodes.value_or(1);
  return launch.processes;
}

// Errors: the command has its settings in a file, such as `llamafactory-cli train sft.yaml` or `tune run
// RECIPE --config NAME`.
Status check_settings_file(std::span<const std::string> words) {
  const auto is_file = [](std::string_view word) {
    return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".toml");
  };
  // Commands with the sizes of a model have their settings in flags.
  const bool has_model = std::ranges::any_of(words, [](const std::string& word) {
    return word.starts_with("--num-layers") || word.starts_with("--hidden-size") ||
           word.starts_with("--yaml-cfg");
  });
  if (has_model) return Ok{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool names = i > 0 && (words[i - 1] == "--config" || words[i - 1].ends_with("config_file") ||
                                 words[i - 1].ends_with("config-file"));
    if (!names && !is_file(word)) continue;
    return Error{"the command reads its settings from a file"}
        .found(fmt::format("`{}`", word.substr(word.find('=') + 1).substr(0, 80)))
        .advice("give that file with --config, and --gpus");
  }
  return Ok{};
}

// Derives the kind of model from the script's name. Errors: scripts for work that is not modelled.
Status apply_script(std::string_view file, MegatronWords& words) {
  for (const auto& [name, why] : detail::foreign_words("other_scripts"))
    if (file.find(name) != std::string_view::npos) return Error::at("", std::string{file}, std::string{why});
  if (file.ends_with("pretrain_bert.py")) words.is_bert = true;
  if (file.ends_with("pretrain_mamba.py") || file.ends_with("pretrain_hybrid.py"))
    words.settings.hybrid = true;
  return Ok{};
}

// Derives the kind of model from flags, if no script is named: --model-provider, and vocabulary files (BERT's
// has no merge file, GPT-2's has one).
Status apply_missing_script(std::span<const GivenFlag> flags, std::string_view script, MegatronWords& words) {
  const auto find = [&](std::string_view name) {
    const auto found =
        std::find_if(flags.begin(), flags.end(), [&](const GivenFlag& flag) { return flag.name == name; });
    return found == flags.end() ? nullptr : &*found;
  };
  if (const GivenFlag* provider = find("--model-provider"); provider != nullptr) {
    std::string word;
    STEPCAST_TRY(read_value(*provider, word));
    if (word == "mamba" || word == "hybrid") {
      words.settings.hybrid = true;
    } else if (word != "gpt") {
      return Error::at("", "--model-provider", "models of other kinds are not modelled")
          .found(fmt::format("`{}`", word.substr(0, 40)))
          .expected("gpt, mamba or hybrid");
    }
  }
  JobSettings& s = words.settings;
  const bool has_merges = find("--merge-file") != nullptr, is_gpt = script == "pretrain_gpt.py";
  if (has_merges && (script.empty() || is_gpt) && !s.tokenizer) s.tokenizer = "GPT2BPETokenizer";
  if (words.is_bert && !s.tokenizer) s.tokenizer = "BertWordPieceLowerCase";
  // WordPiece vocabularies are those of BERT.
  const bool word_pieces = s.tokenizer.value_or("").starts_with("BertWordPiece") ||
                           (!s.tokenizer && !has_merges && find("--vocab-file") != nullptr);
  const bool is_bert = word_pieces || find("--bert-no-binary-head") != nullptr;
  if (!script.empty() || words.is_bert || !is_bert || s.vocab_size) return Ok{};
  words.is_bert = true;
  if (!s.tokenizer) s.tokenizer = "BertWordPieceLowerCase";
  words.notes.emplace_back(
      "no script is named: --vocab-file without --merge-file is read as a flag of pretrain_bert.py");
  return Ok{};
}

// A description of a flag that is given twice with different values; empty if there is none. Megatron-LM uses
// the last value.
std::string repeated_flag(std::span<const GivenFlag> flags) {
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const GivenFlag& flag = flags[i];
    if (flag.values.size() != 1 || detail::find_megatron_flag(flag.name).setting == nullptr) continue;
    // The last use of the flag, which is the one that applies.
    const auto later = std::find_if(
        flags.rbegin(), flags.rend() - static_cast<std::ptrdiff_t>(i + 1),
        [&](const GivenFlag& other) { return other.name == flag.name && other.values.size() == 1; });
    if (later == flags.rend() - static_cast<std::ptrdiff_t>(i + 1) || later->values == flag.values) continue;
    return fmt::format("{} is given as {} and as {}", flag.name, flag.values.front().substr(0, 40),
                       later->values.front().substr(0, 40));
  }
  return {};
}

// Applies all flags, then checks them for contradictions.
Result<MegatronWords> read_flags(std::span<const GivenFlag> flags, std::span<const std::string> others,
                                 std::vector<std::string> unknown) {
  MegatronWords result;
  result.unknown = std::move(unknown);
  for (const GivenFlag& flag : flags) STEPCAST_TRY(apply(flag, others, result));
  STEPCAST_TRY(check_contradictions(flags, result.settings));
  return result;
}

}  // namespace

Result<MegatronWords> parse_megatron_flags(std::span<const std::string> words,
                                           std::span<const std::string> others) {
  std::vector<std::string> unknown;
  STEPCAST_ASSIGN(const std::vector<GivenFlag> flags, group_words(words, unknown));
  if (std::string twice = repeated_flag(flags); !twice.empty())
    return Error{std::move(twice)}.advice("choose one");
  STEPCAST_ASSIGN(MegatronWords result, read_flags(flags, others, std::move(unknown)));
  if (!result.unknown.empty()) return Error{result.unknown.front()};
  return result;
}

// Launchers that contradict themselves count as unknown.
std::optional<std::int64_t> launched_gpus(std::span<const std::string> words) {
  const Result<Launch> launch = split_launcher(words);
  return launch ? gpus_of(*launch) : std::nullopt;
}

Result<MegatronWords> parse_megatron_command_line(std::string_view line) {
  STEPCAST_ASSIGN(const std::vector<std::string> words, detail::launch_words(line));
  STEPCAST_TRY(check_settings_file(words));
  STEPCAST_ASSIGN(const Launch launch, split_launcher(words));
  // The script's file name with its folder: examples/multimodal/train.py.
  std::size_t folder = launch.script.rfind('/');
  const std::string_view script = std::string_view{launch.script}.substr(folder + 1);
  if (folder != std::string::npos && folder > 0) folder = launch.script.rfind('/', folder - 1);
  // The script is checked before its flags, because its error is clearer than that of an unknown flag.
  MegatronWords of_script;
  STEPCAST_TRY(apply_script(std::string_view{launch.script}.substr(folder + 1), of_script));
  std::vector<std::string> unknown;
  STEPCAST_ASSIGN(const std::vector<GivenFlag> flags, group_words(launch.flags, unknown));
  STEPCAST_ASSIGN(MegatronWords result, read_flags(flags, {}, std::move(unknown)));
  result.is_bert = of_script.is_bert;
  if (of_script.settings.hybrid) result.settings.hybrid = true;
  // T5: the decoder has as many layers as the encoder unless it is given.
  const bool is_t5 = script.find("pretrain_t5") != std::string_view::npos;
  if (is_t5 && !result.settings.decoder_layers) result.settings.decoder_layers = result.settings.n_layers;
  STEPCAST_TRY(apply_missing_script(flags, script, result));
  if (const std::string twice = repeated_flag(flags); !twice.empty())
    result.notes.push_back(twice + ": the last one is used");
  if (!launch.elastic.empty()) result.not_modelled.push_back(launch.elastic);
  result.gpus_per_node = launch.gpus_per_node;
  result.unknown_gpus = launch.unknown;
  result.n_gpus = gpus_of(launch);
  return result;
}

}  // namespace stepcast
