// From a training log to the job it describes. The settings are read from the first source that the log
// prints (kSources), then overridden by what the user said, and resolved. If the lines of the steps show
// another batch size than the settings, the lines are right, since settings may be of an earlier start or of
// a batch size that grows.
#include "stepcast/logs/logged_run.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/formats/framework_config.h"
#include "stepcast/formats/huggingface.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/nemo_arguments.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/logs/detail/settings_blocks.h"

namespace stepcast {

namespace {

// Replaces the global batch size of the job by that of the step lines, if they differ. Returns true if the
// job was resolved again. Clears `run.resolved` if the batch contradicts --gbs or cannot be resolved.
bool take_batch_of_lines(const Job& said, LoggedRun& run) {
  if (!run.resolved || run.times.batch_sequences == 0) return false;
  const std::int64_t told = run.times.batch_sequences;
  const std::int64_t planned = run.resolved->layout.batch.global_batch_sequences;
  if (told == planned) {
    // The batch size was a default and the lines confirm it, so it is fixed: the forecast must not choose
    // another one.
    if (std::erase(run.not_said, "global batch") > 0) run.job->job.settings.global_batch_sequences = told;
    return false;
  }
  std::vector<std::string>& notes = run.job->notes;
  if (const auto& flag = said.settings.global_batch_sequences) {
    // Users name columns freely: a batch size in a table may be that of all GPUs or of one.
    if (run.times.format == LogFormat::csv) {
      notes.push_back(
          fmt::format("the rows have a batch size of {}; the {} sequences of --gbs are used", told, *flag));
      return false;
    }
    run.resolved.reset();
    run.why_no_job = Error::at("", "--gbs")
                         .found(fmt::format("{}, but the lines of the steps have {} sequences", *flag, told))
                         .advice("leave it out: the lines are used")
                         .message();
    return false;
  }
  const std::vector<std::string>& assumed = run.resolved->notes;
  const bool was_assumed = std::ranges::any_of(
      assumed, [](const std::string& note) { return note.starts_with("global batch not given"); });
  const std::string instead = was_assumed ? "" : fmt::format(", but the settings have {}", planned);
  run.job->job.settings.global_batch_sequences = told;
  Result<ResolvedJob> resolved = resolve(run.job->job);
  if (!resolved) {
    run.resolved.reset();
    run.why_no_job = fmt::format("the lines of the steps have {} sequences{}: {}", told, instead,
                                 resolved.error().message());
    return false;
  }
  run.resolved = *std::move(resolved);
  std::erase(run.not_said, "global batch");
  notes.push_back(fmt::format("{} sequences per step, from the lines of the steps{}", told, instead));
  return true;
}

using Arguments = std::vector<std::pair<std::string, std::string>>;

// A whole number from 1 to 1e9; empty for anything else.
std::optional<std::int64_t> whole(std::string_view text) {
  const auto value = scan<std::int64_t>(text);
  constexpr std::int64_t kMost = 1'000'000'000;
  return value && *value >= 1 && *value <= kMost ? value : std::nullopt;
}

// The value of an argument; empty if it is missing or None.
std::string_view value_of(const Arguments& arguments, std::string_view name) {
  for (const auto& [key, value] : arguments)
    if (key == name) return value == "None" ? std::string_view{} : std::string_view{value};
  return {};
}

// A word of the log; empty if it was not printed.
std::string_view word(const TrainingLog& log, std::string_view name) {
  const auto found = log.settings.words.find(name);
  return found == log.settings.words.end() ? std::string_view{} : std::string_view{found->second};
}

// Reads a table of arguments of Megatron-LM, or arguments in this form from another source. The number of
// GPUs comes from the world size, else from multiplying the degrees.
void from_megatron(const Arguments& arguments, const TrainingLog& log, LoggedJob& out) {
  out.job.command_line = command_line_of_arguments(arguments, !word(log, "is_bert").empty());
  if (!out.job.n_gpus) out.job.n_gpus = whole(value_of(arguments, "world_size"));
  if (!out.job.n_gpus) out.job.n_gpus = whole(word(log, "world_size"));
  if (!out.job.n_gpus) {
    double gpus = 1;
    for (const char* degree : {"data_parallel_size", "tensor_model_parallel_size",
                               "pipeline_model_parallel_size", "context_parallel_size"}) {
      if (const auto n = whole(value_of(arguments, degree))) gpus *= static_cast<double>(*n);
    }
    constexpr double kMost = 1e7;
    if (!value_of(arguments, "data_parallel_size").empty() && gpus <= kMost)
      out.job.n_gpus = static_cast<std::int64_t>(gpus);
  }
  if (value_of(arguments, "vocab_size").empty()) {
    if (const auto size = whole(word(log, "vocab_size")))
      out.job.settings.vocab_size = size;
    else if (const auto padded = whole(value_of(arguments, "padded_vocab_size")))
      out.job.settings.padded_vocab_size = padded;
  }
  out.evaluation_interval = whole(value_of(arguments, "eval_interval"));
  out.checkpoint_interval = whole(value_of(arguments, "save_interval"));
}

// Reads the config of DeepSpeed. Error: it is not valid JSON.
Status from_deepspeed(const TrainingLog& log, LoggedJob& out) {
  out.job.deepspeed = ConfigText{log.settings.deepspeed, log.file + ": DeepSpeed's config"};
  if (out.job.n_gpus) return Ok{};
  out.job.n_gpus = whole(word(log, "world_size"));
  if (out.job.n_gpus) return Ok{};
  // Without pipeline parallelism, the global batch is the batch per GPU (with accumulation) times the number
  // of GPUs.
  STEPCAST_ASSIGN(const JsonValue config, parse_json(log.settings.deepspeed, out.job.deepspeed->name));
  const auto number = [&](std::string_view key, double otherwise) {
    const JsonValue* value = config.find(key);
    return value != nullptr && value->is_number() ? value->number() : otherwise;
  };
  const double all = number("train_batch_size", 0);
  const double own = number("train_micro_batch_size_per_gpu", 0) * number("gradient_accumulation_steps", 1);
  constexpr double kMost = 1e6;
  if (all > 0 && own > 0 && all / own == std::floor(all / own) && all / own < kMost)
    out.job.n_gpus = static_cast<std::int64_t>(all / own);
  return Ok{};
}

// The benchmarks of MLPerf Training: name in the log, model, and sequence length in tokens for logs that do
// not print it. Source: the rules of MLPerf Training.
struct MlperfBenchmark {
  std::string_view name, model;
  std::int64_t sequence;
};
constexpr MlperfBenchmark kMlperfBenchmarks[] = {
    {"bert", "bert-large", 512},
    {"gpt3", "gpt3-175b", 2048},
    {"llama2_70b_lora", "llama-2-70b", 8192},
    {"llama31_8b", "llama-3.1-8b", 8192},
    {"llama31_405b", "llama-3.1-405b", 8192},
};

// A platform as submitters write it: "16xXE8545x4A100-SXM4-40GB", "64xNVIDIA DGX H100", "8x8xNVIDIA DGX
// A100", "MI350X". The parts are nodes, GPUs per node and GPU; parts may be missing.
struct MlperfPlatform {
  std::optional<std::int64_t> n_nodes, gpus_per_node;
  std::string gpu;
};

// Reads counts from the left as long as an 'x' follows them; the name of the GPU is searched in the rest.
MlperfPlatform mlperf_platform(std::string_view text) {
  MlperfPlatform platform;
  // A DGX node has 8 GPUs.
  constexpr std::int64_t kMost = 100'000, kOfDgx = 8;
  const auto take_count = [&](std::string_view& from) -> std::optional<std::int64_t> {
    std::string_view rest = from;
    const auto count = scan_front<std::int64_t>(rest);
    if (!count || *count < 1 || *count > kMost || !rest.starts_with('x')) return std::nullopt;
    from = rest.substr(1);
    return count;
  };
  platform.n_nodes = take_count(text);
  if (platform.n_nodes) platform.gpus_per_node = take_count(text);
  // The name of the GPU. A number directly in front of it, after an 'x', is the number of GPUs per node.
  for (const std::string_view gpu :
       {"GB300", "GB200", "GH200", "B300", "B200", "H200", "H100", "H20", "A100", "V100", "L40S", "MI355X",
        "MI350X", "MI325X", "MI300X", "MI250X", "MI250"}) {
    const std::size_t at = text.find(gpu);
    if (at == std::string_view::npos) continue;
    std::size_t from = at;
    while (from > 0 && is_digit(text[from - 1])) --from;
    if (const auto count = whole(text.substr(from, at - from)); count && from > 0 && text[from - 1] == 'x')
      platform.gpus_per_node = count;
    platform.gpu = text.substr(at, text.find(' ', at) - at);
    break;
  }
  if (!platform.gpus_per_node && text.find("DGX") != std::string_view::npos) platform.gpus_per_node = kOfDgx;
  return platform;
}

// Reads the settings that MLPerf's rules require in a log. Their words begin with "mlperf.".
Status from_mlperf(const TrainingLog& log, LoggedJob& out) {
  JobSettings& settings = out.job.settings;
  const auto setting = [&](std::string_view key) { return whole(word(log, "mlperf." + std::string{key})); };
  const std::string_view called = word(log, "submission_benchmark");
  const auto* const benchmark = std::ranges::find(kMlperfBenchmarks, called, &MlperfBenchmark::name);
  if (benchmark != std::end(kMlperfBenchmarks)) {
    out.job.model = benchmark->model;
    settings.seq_len_tokens = benchmark->sequence;
  }
  if (const auto length = setting("max_sequence_length")) settings.seq_len_tokens = length;
  settings.global_batch_sequences = setting("global_batch_size");
  settings.micro_batch_sequences = setting("micro_batch_size");
  settings.n_layers = setting("num_layers");
  settings.hidden_size = setting("hidden_size");
  settings.ffn_hidden_size = setting("ffn_hidden_size");
  settings.n_heads = setting("num_heads");
  settings.lora_rank = setting("lora_rank");
  settings.tensor = setting("tensor_model_parallel_size");
  settings.pipeline = setting("pipeline_model_parallel_size");
  settings.context = setting("context_parallel_size");
  settings.expert = setting("expert_model_parallel_size");
  const std::string_view optimizer = word(log, "mlperf.opt_name");
  constexpr std::pair<std::string_view, OptimizerKind> kOptimizers[] = {{"sgd", OptimizerKind::sgd},
                                                                        {"adam", OptimizerKind::adam},
                                                                        {"adamw", OptimizerKind::adamw},
                                                                        {"lamb", OptimizerKind::lamb},
                                                                        {"adagrad", OptimizerKind::adagrad}};
  for (const auto& [name, kind] : kOptimizers)
    if (optimizer == name) settings.optimizer = kind;
  const MlperfPlatform platform = mlperf_platform(word(log, "gpu"));
  const auto nodes = setting("number_of_nodes");
  out.job.gpus_per_node = platform.gpus_per_node;
  out.job.n_gpus = setting("number_of_ranks");
  if (!out.job.n_gpus && platform.gpus_per_node && (nodes || platform.n_nodes))
    out.job.n_gpus = *platform.gpus_per_node * (nodes ? *nodes : *platform.n_nodes);
  if (!platform.gpu.empty()) out.gpu = platform.gpu;
  return Ok{};
}

// The configuration that the log prints as YAML, read as arguments of Megatron-LM (NeMo) or as a job of LLM
// Foundry.
struct PrintedYaml {
  explicit PrintedYaml(const TrainingLog& log) {
    // YAML that other lines of the log interrupted cannot be parsed. The log is then read without it.
    const Result<JsonValue> document =
        parse_yaml(log.settings.yaml, log.file + ": the configuration as YAML");
    const YamlScalars scalars = document ? yaml_scalars(*document) : YamlScalars{};
    arguments = detail::megatron_arguments_of(scalars, n_gpus);
    if (arguments.empty()) foundry = detail::foundry_job(scalars);
  }
  std::optional<std::int64_t> n_gpus;
  Arguments arguments;
  std::optional<Job> foundry;
};

constexpr std::string_view kMlperf = "MLPerf's settings";

// A place where logs print settings: its name, whether the log has it, and how it is read. The first source
// that a log has is used, so the order matters.
struct SettingsSource {
  std::string_view called;
  bool (*is_printed)(const TrainingLog& log, const PrintedYaml& yaml);
  Status (*read)(const TrainingLog& log, const PrintedYaml& yaml, LoggedJob& out);
};

// Uses a config of TorchTitan. `words` names its origin in messages.
Status use_torchtitan(std::string toml, std::string_view words, const TrainingLog& log, LoggedJob& out) {
  out.job.torchtitan = ConfigText{std::move(toml), fmt::format("{}: {}", log.file, words)};
  out.job.n_gpus = detail::torchtitan_gpus(word(log, "titan_mesh"));
  return Ok{};
}

constexpr SettingsSource kSources[] = {
    {"Megatron's arguments",
     [](const TrainingLog& log, const PrintedYaml&) { return !log.settings.megatron.empty(); },
     [](const TrainingLog& log, const PrintedYaml&, LoggedJob& out) -> Status {
       from_megatron(log.settings.megatron, log, out);
       return log.settings.deepspeed.empty() ? Status{Ok{}} : from_deepspeed(log, out);
     }},
    {"TorchTitan's config",
     [](const TrainingLog& log, const PrintedYaml&) { return !log.settings.torchtitan.empty(); },
     [](const TrainingLog& log, const PrintedYaml&, LoggedJob& out) -> Status {
       STEPCAST_ASSIGN(std::string toml, detail::torchtitan_toml(log.settings.torchtitan, log.file));
       return use_torchtitan(std::move(toml), "TorchTitan's config", log, out);
     }},
    {"output of TorchTitan at the start",
     [](const TrainingLog& log, const PrintedYaml&) { return !word(log, "titan_model").empty(); },
     [](const TrainingLog& log, const PrintedYaml&, LoggedJob& out) {
       return use_torchtitan(detail::torchtitan_toml_of_words(log.settings.words), "what TorchTitan says",
                             log, out);
     }},
    {"the configuration as YAML",
     [](const TrainingLog&, const PrintedYaml& yaml) { return !yaml.arguments.empty(); },
     [](const TrainingLog& log, const PrintedYaml& yaml, LoggedJob& out) -> Status {
       out.job.n_gpus = yaml.n_gpus;
       out.job.framework = Framework::nemo;
       from_megatron(yaml.arguments, log, out);
       return Ok{};
     }},
    {"LLM Foundry's configuration",
     [](const TrainingLog&, const PrintedYaml& yaml) { return yaml.foundry.has_value(); },
     [](const TrainingLog&, const PrintedYaml& yaml, LoggedJob& out) -> Status {
       out.job = *yaml.foundry;
       return Ok{};
     }},
    {"MaxText's parameters",
     [](const TrainingLog& log, const PrintedYaml&) { return !log.settings.maxtext.empty(); },
     [](const TrainingLog& log, const PrintedYaml&, LoggedJob& out) -> Status {
       out.job.config =
           ConfigText{known_maxtext_keys(log.settings.maxtext), log.file + ": MaxText's parameters"};
       return Ok{};
     }},
    {"DeepSpeed's config",
     [](const TrainingLog& log, const PrintedYaml&) { return !log.settings.deepspeed.empty(); },
     [](const TrainingLog& log, const PrintedYaml&, LoggedJob& out) { return from_deepspeed(log, out); }},
    {kMlperf,
     [](const TrainingLog& log, const PrintedYaml&) {
       return !word(log, "mlperf.global_batch_size").empty();
     },
     [](const TrainingLog& log, const PrintedYaml&, LoggedJob& out) { return from_mlperf(log, out); }},
    {"the model's config",
     [](const TrainingLog& log, const PrintedYaml&) { return !log.settings.model_config.empty(); },
     [](const TrainingLog&, const PrintedYaml&, LoggedJob&) { return Status{Ok{}}; }},
};

// Overrides `job` by what the user said. Parts of `job` that describe the same thing in another form are
// removed.
void put_over(const Job& said, Job& job) {
  if (!said.model.empty() || said.transformer) {
    job.model = said.model;
    job.transformer = said.transformer;
    job.ignored_model_keys = said.ignored_model_keys;
  }
  if (said.n_gpus) job.n_gpus = said.n_gpus;
  if (said.gpus_per_node) job.gpus_per_node = said.gpus_per_node;
  if (said.framework) job.framework = said.framework;
  if (said.command_line || said.torchtitan || said.config) job.config.reset();
  if (said.command_line) job.command_line = said.command_line;
  if (said.config) job.config = said.config;
  if (said.torchtitan) {
    job.torchtitan = said.torchtitan;
    job.command_line.reset();
    job.deepspeed.reset();
  }
  if (said.deepspeed) job.deepspeed = said.deepspeed;
  job.settings = over(job.settings, said.settings);
  job.not_modelled.insert(job.not_modelled.end(), said.not_modelled.begin(), said.not_modelled.end());
}

// True if the user's job describes a model.
bool describes_something(const Job& said) {
  return !said.model.empty() || said.transformer || said.command_line || said.torchtitan || said.config ||
         said.settings.n_layers;
}

}  // namespace

namespace {

// The settings that were filled in by defaults, from the notes of the resolved job: "sequence length" from
// "sequence length not given: 2048".
std::vector<std::string> left_open(const Job& job, const ResolvedJob& resolved) {
  std::vector<std::string> open;
  if (leaves_layout_open(job)) open.emplace_back("layout");
  for (const std::string& note : resolved.notes)
    if (const std::size_t at = note.find(" not given");
        at != std::string::npos && !note.starts_with("release of"))
      open.push_back(note.substr(0, at));
  return open;
}

}  // namespace

// Resolves the job first, because rates in the log become times by its work per step. A batch size in the
// lines can change the job, and the times are then computed again.
Result<LoggedRun> logged_run(TrainingLog log, const Job& said, const LoggedWork& otherwise) {
  LoggedRun run;
  LoggedWork work = work_of(said);
  // Errors of the settings do not make the log unusable: the step times are returned with the reason.
  if (Result<LoggedJob> job = logged_job(log, said)) {
    if (Result<ResolvedJob> resolved = resolve(job->job)) {
      work = work_of(*job, *resolved);
      run.not_said = left_open(job->job, *resolved);
      const auto is_open = [&](std::string_view what) {
        return std::ranges::find(run.not_said, what) != run.not_said.end();
      };
      work.is_assumed = is_open("sequence length") || is_open("global batch") || is_open("GPUs");
      run.resolved = *std::move(resolved);
    } else {
      run.why_no_job = resolved.error().message();
    }
    run.job = *std::move(job);
  } else {
    run.why_no_job = job.error().message();
  }
  if (!work.samples_per_step) work.samples_per_step = otherwise.samples_per_step;
  if (!work.tokens_per_step) work.tokens_per_step = otherwise.tokens_per_step;
  if (!work.n_gpus) work.n_gpus = otherwise.n_gpus;
  STEPCAST_ASSIGN(run.times, logged_times(log, work));
  if (take_batch_of_lines(said, run)) {
    STEPCAST_ASSIGN(run.times, logged_times(log, work_of(*run.job, *run.resolved)));
  }
  log.steps = std::vector<LoggedStep>{};  // frees the memory of the steps
  run.log = std::move(log);
  return run;
}

Result<LoggedRun> read_logged_run(const std::filesystem::path& file, const Job& said,
                                  const LogReadOptions& options, const LoggedWork& otherwise) {
  STEPCAST_ASSIGN(TrainingLog log, read_training_log(file, options));
  return logged_run(std::move(log), said, otherwise);
}

// Reads the first printed source, adds the printed model if no source describes one, then overrides by
// `said`.
Result<LoggedJob> logged_job(const TrainingLog& log, const Job& said) {
  LoggedJob out;
  out.gpu = word(log, "gpu");
  const LoggedSettings& printed = log.settings;
  const PrintedYaml yaml{log};
  const auto* const source =
      std::ranges::find_if(kSources, [&](const SettingsSource& one) { return one.is_printed(log, yaml); });
  if (source != std::end(kSources)) {
    out.source = source->called;
    STEPCAST_TRY(source->read(log, yaml, out));
  }
  if (!printed.model_config.empty() && !out.job.command_line && !out.job.torchtitan && said.model.empty()) {
    STEPCAST_ASSIGN(Transformer model, parse_huggingface_config(detail::python_to_json(printed.model_config),
                                                                log.file + ": the model's config"));
    model.name = "the model of the log";
    out.job.transformer = std::move(model);
  }
  if (out.source.empty() && !describes_something(said)) {
    return Error::at(log.file, "", "the log prints no settings of its run")
        .advice("describe it with flags (--model, --gpus, --tp, ...) or --command-line run.sh");
  }
  if (out.source == kMlperf && out.job.model.empty() && !out.job.settings.n_layers &&
      !describes_something(said)) {
    return Error::at(log.file, "", "the log names no known model")
        .found(fmt::format("benchmark `{}`", word(log, "submission_benchmark")))
        .advice("describe it with flags (--model, --gpus, --tp, ...)");
  }
  if (out.source.empty()) out.source = "flags";
  if (!out.job.settings.global_batch_sequences && !out.job.command_line && !out.job.torchtitan &&
      !out.job.config) {
    if (const auto batch = whole(word(log, "total_batch"))) out.job.settings.global_batch_sequences = batch;
    if (const auto batch = whole(word(log, "device_batch")); batch && !out.job.deepspeed)
      out.job.settings.micro_batch_sequences = batch;
  }
  put_over(said, out.job);
  if (out.source == kMlperf && !out.job.n_gpus && !out.job.command_line && !out.job.config) {
    return Error::at(log.file, "", "the log does not give the number of GPUs")
        .found(fmt::format("platform `{}`", word(log, "gpu")))
        .advice("say --gpus");
  }
  return out;
}

LoggedWork work_of(const LoggedJob& logged, const ResolvedJob& job) {
  LoggedWork work;
  const Batch& batch = job.layout.batch;
  work.samples_per_step = static_cast<double>(batch.global_batch_sequences);
  work.tokens_per_step = *work.samples_per_step * static_cast<double>(batch.seq_len_tokens);
  work.n_gpus = static_cast<double>(job.n_gpus.value_or(job.layout.world_size()));
  work.evaluation_interval = logged.evaluation_interval;
  work.checkpoint_interval = logged.checkpoint_interval;
  return work;
}

LoggedWork work_of(const Job& said) {
  LoggedWork work;
  if (said.settings.global_batch_sequences)
    work.samples_per_step = static_cast<double>(*said.settings.global_batch_sequences);
  if (work.samples_per_step && said.settings.seq_len_tokens)
    work.tokens_per_step = *work.samples_per_step * static_cast<double>(*said.settings.seq_len_tokens);
  if (said.n_gpus) work.n_gpus = static_cast<double>(*said.n_gpus);
  return work;
}

}  // namespace stepcast
