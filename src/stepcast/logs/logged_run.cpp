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
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/nemo_arguments.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/logs/detail/settings_blocks.h"

namespace stepcast {

namespace {

// The lines of the steps say what ran; settings may be those of another start, or of a batch that grows. False where
// nothing has changed.
bool take_batch_of_lines(const Job& said, LoggedRun& run) {
  if (!run.resolved || run.times.batch_sequences == 0) return false;
  const std::int64_t told = run.times.batch_sequences;
  const std::int64_t planned = run.resolved->layout.batch.global_batch_sequences;
  if (told == planned) return false;
  std::vector<std::string>& notes = run.job->notes;
  if (const auto& flag = said.settings.global_batch_sequences) {
    // Columns of tables are called as people like: of all GPUs, of one.
    if (run.times.format == LogFormat::csv) {
      notes.push_back(
          fmt::format("the rows have a batch size of {}; taken are the {} sequences of --gbs", told, *flag));
      return false;
    }
    run.resolved.reset();
    run.why_no_job = Error::at("", "--gbs")
                         .found(fmt::format("{}, where the lines of the steps say {} sequences", *flag, told))
                         .advice("leave it out: the lines hold")
                         .message();
    return false;
  }
  const std::vector<std::string>& assumed = run.resolved->notes;
  const bool was_assumed = std::ranges::any_of(
      assumed, [](const std::string& note) { return note.starts_with("global batch not given"); });
  const std::string instead = was_assumed ? "" : fmt::format(", where the settings say {}", planned);
  run.job->job.settings.global_batch_sequences = told;
  Result<ResolvedJob> resolved = resolve(run.job->job);
  if (!resolved) {
    run.resolved.reset();
    run.why_no_job = fmt::format("the lines of the steps say {} sequences{}: {}", told, instead,
                                 resolved.error().message());
    return false;
  }
  run.resolved = *std::move(resolved);
  notes.push_back(fmt::format("{} sequences per step, as the lines of the steps say{}", told, instead));
  return true;
}

using Arguments = std::vector<std::pair<std::string, std::string>>;

std::optional<std::int64_t> whole(std::string_view text) {
  const auto value = scan<std::int64_t>(text);
  constexpr std::int64_t kMost = 1'000'000'000;
  return value && *value >= 1 && *value <= kMost ? value : std::nullopt;
}

std::string_view value_of(const Arguments& arguments, std::string_view name) {
  for (const auto& [key, value] : arguments)
    if (key == name) return value == "None" ? std::string_view{} : std::string_view{value};
  return {};
}

std::string_view word(const TrainingLog& log, std::string_view name) {
  const auto found = log.settings.words.find(name);
  return found == log.settings.words.end() ? std::string_view{} : std::string_view{found->second};
}

// The table of arguments, or what stands for it.
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

Status from_deepspeed(const TrainingLog& log, LoggedJob& out) {
  out.job.deepspeed = ConfigText{log.settings.deepspeed, log.file + ": DeepSpeed's config"};
  if (out.job.n_gpus) return Ok{};
  out.job.n_gpus = whole(word(log, "world_size"));
  if (out.job.n_gpus) return Ok{};
  // Without pipelines a batch is micro-batches of every GPU.
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

// The configuration that the log prints as YAML, as arguments of Megatron-LM and as the job of LLM Foundry.
struct PrintedYaml {
  explicit PrintedYaml(const TrainingLog& log) {
    // What other lines broke is no YAML any more; the log is read without it.
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

// Where a log prints the settings of its run, and who reads them: the first that is there.
struct SettingsSource {
  std::string_view called;
  bool (*is_printed)(const TrainingLog& log, const PrintedYaml& yaml);
  Status (*read)(const TrainingLog& log, const PrintedYaml& yaml, LoggedJob& out);
};

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
    {"what TorchTitan says when it starts",
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
    {"the model's config",
     [](const TrainingLog& log, const PrintedYaml&) { return !log.settings.model_config.empty(); },
     [](const TrainingLog&, const PrintedYaml&, LoggedJob&) { return Status{Ok{}}; }},
};

// What somebody said holds; what describes the same model otherwise gives way.
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

bool describes_something(const Job& said) {
  return !said.model.empty() || said.transformer || said.command_line || said.torchtitan || said.config ||
         said.settings.n_layers;
}

}  // namespace

Result<LoggedRun> logged_run(TrainingLog log, const Job& said, const LoggedWork& otherwise) {
  LoggedRun run;
  LoggedWork work = work_of(said);
  if (Result<LoggedJob> job = logged_job(log, said)) {
    if (Result<ResolvedJob> resolved = resolve(job->job)) {
      work = work_of(*job, *resolved);
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
  log.steps = std::vector<LoggedStep>{};  // and its memory
  run.log = std::move(log);
  return run;
}

Result<LoggedRun> read_logged_run(const std::filesystem::path& file, const Job& said,
                                  const LogReadOptions& options, const LoggedWork& otherwise) {
  STEPCAST_ASSIGN(TrainingLog log, read_training_log(file, options));
  return logged_run(std::move(log), said, otherwise);
}

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
  if (out.source.empty()) out.source = "flags";
  if (!out.job.settings.global_batch_sequences && !out.job.command_line && !out.job.torchtitan &&
      !out.job.config) {
    if (const auto batch = whole(word(log, "total_batch"))) out.job.settings.global_batch_sequences = batch;
    if (const auto batch = whole(word(log, "device_batch")); batch && !out.job.deepspeed)
      out.job.settings.micro_batch_sequences = batch;
  }
  put_over(said, out.job);
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
