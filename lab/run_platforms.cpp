#include "lab/run_platforms.h"

#include <string_view>

#include <fmt/format.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast {

namespace {

constexpr double kBandPerAssumedField = 0.015;  // of the step, on each side

std::string row_name(const LlmRun& run) {
  return fmt::format("line {} {} {} {} gpus {} {} {}", run.line, run.model.name, run.gpu, run.n_gpus,
                     run.dtype, run.framework, layout_text(run.layout));
}

std::string shares_text(const StepPrediction& p) {
  std::string text;
  const double total = p.step.time.value();
  const auto add = [&](std::string_view name, double us) {
    if (us > 0.0005 * total) text += fmt::format("{}{} {:.3f}", text.empty() ? "" : " ", name, us / total);
  };
  for (std::size_t i = 0; i < p.shares.class_us.size(); ++i)
    add(to_string(static_cast<KernelClass>(i)), p.shares.class_us[i]);
  for (std::size_t i = 0; i < p.shares.exposed_us.size(); ++i)
    add(fmt::format("exposed_{}", to_string(static_cast<GroupKind>(i))), p.shares.exposed_us[i]);
  add("host", p.shares.host_us);
  add("bubble", p.shares.bubble_us);
  add("optimizer", p.shares.optimizer_us);
  add("fixed", p.shares.fixed_us);
  return text;
}

// Key of set, model, GPU and type.
std::string kind_of(const LlmRun& run) {
  return fmt::format("{}|{}|{}|{}", run.set, run.model.name, run.gpu, run.dtype);
}

// Releases sort as text: "25.11", "26.02", "26.02.01".
std::map<std::string, std::string> last_releases(const auto& runs, const auto& run_of) {
  std::map<std::string, std::string> last;
  for (const auto& item : runs) {
    const LlmRun& run = run_of(item);
    std::string& release = last[kind_of(run)];
    release = std::max(release, run.layout.software.version);
  }
  return last;
}

TestScore by_set(std::string test, const std::map<std::string, std::vector<const PredictedRun*>>& sets) {
  TestScore result{.test = std::move(test), .protocol = "shipped", .unit = "ms"};
  for (const auto& [name, members] : sets) {
    SetScore set{.set = name};
    for (const PredictedRun* p : members) set.rows.push_back(scored(*p));
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace

std::string RunPlatforms::key_of(const LlmRun& run) {
  return fmt::format("{}|{}|{}|{}", run.platform, run.gpu, run.gpus_per_node,
                     run.inter_node_bandwidth_Gbps.value_or(0));
}

MachineDescription machine_of(const LlmRun& run) {
  // Runs without a named GPU use a platform that states its assumptions.
  MachineDescription machine{.name = run.gpu.empty() ? "unstated-8gpu" : run.platform,
                             .gpu = run.gpu,
                             .gpus_per_node = run.gpus_per_node,
                             .node_bandwidth_Gbps = run.inter_node_bandwidth_Gbps};
  if (run.platform.find("RoCE") != std::string::npos) machine.network_kind = "RoCE";
  return machine;
}

Result<Platform> RunPlatforms::choose(const LlmRun& run) const {
  const MachineDescription machine = machine_of(run);
  for (const auto& [name, file] : overrides_)
    if (same_name(name, run.platform) || same_name(name, run.gpu) || name == "*")
      return load_platform(file.string());
  STEPCAST_ASSIGN(PlatformChoice choice, platform_for(machine));
  return std::move(choice.platform);
}

Result<StepModel*> RunPlatforms::model_for(const LlmRun& run) {
  const std::string key = key_of(run);
  if (const auto found = entries_.find(key); found != entries_.end()) return found->second->model.get();
  if (const auto known = failures_.find(key); known != failures_.end()) return known->second;
  auto entry = std::make_unique<Entry>();
  Result<Platform> chosen = choose(run);
  if (!chosen) return failures_.emplace(key, std::move(chosen).error()).first->second;
  entry->platform = *std::move(chosen);
  entry->model = std::make_unique<StepModel>(entry->platform, assumptions_);
  StepModel* model = entry->model.get();
  entries_.emplace(key, std::move(entry));
  return model;
}

std::vector<PredictedRun> predict_runs(const std::vector<LlmRun>& runs, RunPlatforms& platforms,
                                       std::vector<Skipped>& skipped) {
  std::vector<PredictedRun> predicted;
  const auto leave_out = [&](const LlmRun& run, const Error& error) {
    skipped.push_back({fmt::format("{}: line {} {}", run.set, run.line, run.model.name), error.message(), 1});
  };
  for (const LlmRun& run : runs) {
    Result<StepModel*> model = platforms.model_for(run);
    if (!model) {
      leave_out(run, model.error());
      continue;
    }
    Result<StepPrediction> prediction = (*model)->predict(run.model, run.layout);
    if (!prediction) {
      leave_out(run, prediction.error());
      continue;
    }
    // Every missing field of the row widens the band.
    const double open = kBandPerAssumedField * static_cast<double>(run.assumed.size());
    Estimate& step = prediction->step;
    step.p10 = step.p10 - step.time * open;
    step.p90 = step.p90 + step.time * open;
    predicted.push_back({&run, std::move(*prediction)});
  }
  return predicted;
}

std::string layout_text(const Layout& layout) {
  return fmt::format(
      "tp{} pp{}{} cp{} ep{} dp{} {} micro {} global {} seq {}", layout.degrees.tensor,
      layout.degrees.pipeline,
      layout.degrees.virtual_stages > 1 ? fmt::format("x{}", layout.degrees.virtual_stages) : "",
      layout.degrees.context, layout.degrees.expert, layout.degrees.data, to_string(layout.sharding.kind),
      layout.batch.micro_batch_sequences, layout.batch.global_batch_sequences, layout.batch.seq_len_tokens);
}

ScoredRow scored(const PredictedRun& p) {
  return {row_name(*p.run),
          p.run->iter_time_ms,
          p.prediction.step.time.value() / 1e3,
          p.prediction.step.p10.value() / 1e3,
          p.prediction.step.p90.value() / 1e3,
          shares_text(p.prediction)};
}

double measured_over_predicted(const PredictedRun& p) {
  return p.run->iter_time_ms / (p.prediction.step.time.value() / 1e3);
}

std::vector<LlmRun> newest_releases(const std::vector<LlmRun>& runs) {
  const auto last = last_releases(runs, [](const LlmRun& run) -> const LlmRun& { return run; });
  std::vector<LlmRun> newest;
  for (const LlmRun& run : runs) {
    const std::string& release = run.layout.software.version;
    if (!release.empty() && release == last.at(kind_of(run))) newest.push_back(run);
  }
  return newest;
}

TestScore score_newest_releases(const std::vector<PredictedRun>& runs) {
  const auto last = last_releases(runs, [](const PredictedRun& p) -> const LlmRun& { return *p.run; });
  std::map<std::string, std::vector<const PredictedRun*>> sets;
  for (const PredictedRun& p : runs) {
    const std::string& release = p.run->layout.software.version;
    if (!release.empty() && release == last.at(kind_of(*p.run))) sets[p.run->set].push_back(&p);
  }
  return by_set("newest_release", sets);
}

TestScore score_by_release(const std::vector<PredictedRun>& runs) {
  std::map<std::string, std::vector<const PredictedRun*>> sets;
  for (const PredictedRun& p : runs) {
    const std::string& release = p.run->layout.software.version;
    if (!release.empty() && p.run->model.moe) sets[fmt::format("{} {}", p.run->set, release)].push_back(&p);
  }
  return by_set("experts_by_release", sets);
}

}  // namespace stepcast
