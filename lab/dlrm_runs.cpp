// Scores predicted steps of recommendation models against measured ones.
//
// From a description: files with the columns of iterations/dlrm_runs.csv, and DLRM rows of iterations/nvidia_dle.csv.
// Nothing is fitted to their times. A separate test fits one factor for each software stack to rows of other organisations
// (or, of one organisation, to other systems with that release); its trivial answer is a median of similar machines.
//
// From a recorded step: the time of a rank's GPU, in total and by class of kernels, and the step time, each compared with a
// prediction from a description.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/statistics.h"
#include "stepcast/base/text.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/replay.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_job.h"
#include "stepcast/recommend/dlrm_presets.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/sharders.h"
#include "stepcast/sources/trace_listing.h"
#include "stepcast/sources/trace_set.h"

#include "lab/dlrm_lookups.h"
#include "lab/sharding_study.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

struct DlrmRun {
  std::string set, model, organisation, system, gpu, links, framework, round;
  DlrmStack stack = DlrmStack::hugectr;
  DType dtype = DType::fp16;
  std::int64_t n_nodes = 1, gpus_per_node = 1, n_gpus = 1, global_batch = 1;
  double iter_time_ms = 0;
  std::int32_t release = 0;  // of the software, as in DlrmTraining
  std::uint32_t line = 0;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Submissions of MLPerf name several frameworks of their container. The model uses HugeCTR unless PyTorch is the only one
// named. Version 3 of HugeCTR and the second round, v1.0, are both of 2021.
DlrmStack stack_of(std::string_view framework, std::string_view round) {
  const std::string name = lower(framework);
  if (contains(name, "torchrec")) return DlrmStack::torchrec;
  const bool others = contains(name, "hugectr") || contains(name, "mxnet") || contains(name, "tensorflow");
  return contains(name, "pytorch") && !others ? DlrmStack::nvidia
         : round.starts_with("v0.")           ? DlrmStack::hugectr_2
                                              : DlrmStack::hugectr;
}

// The release of the named container, else that of the round.
std::int32_t release_of(std::string_view framework, std::string_view round) {
  for (std::size_t at = 0; at + 5 <= framework.size(); ++at) {
    const bool inside = at > 0 && is_digit(framework[at - 1]);
    if (const auto named = inside ? std::nullopt : parse_dlrm_release(framework.substr(at, 5))) return *named;
  }
  return parse_dlrm_release(round).value_or(0);
}

std::string preset_of(std::string_view model) {
  const std::string name = lower(model);
  if (contains(name, "dcnv2") || contains(name, "dcn_v2")) return "dlrm-dcnv2-mlperf";
  if (contains(name, "torchrec")) return "dlrm-torchrec";
  if (contains(name, "extra large") || contains(name, "extra_large")) return "dlrm-nvidia-extra-large";
  if (contains(name, "large")) return "dlrm-nvidia-large";
  if (contains(name, "small")) return "dlrm-nvidia-small";
  return "dlrm-mlperf-v1";
}

MachineDescription machine_of(const DlrmRun& run) {
  MachineDescription machine{.name = run.system, .gpu = run.gpu, .gpus_per_node = run.gpus_per_node};
  return machine;
}

struct Predicted {
  const DlrmRun* run = nullptr;
  Estimate time;
  std::string where;
};

class RunPredictor {
 public:
  explicit RunPredictor(const SuiteOptions& options) : options_(&options) {}

  Result<Predicted> predict(const DlrmRun& run) {
    const std::string key =
        fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", run.model, run.gpu, run.gpus_per_node, run.n_gpus,
                    run.global_batch, to_string(run.stack), to_string(run.dtype), run.system, run.release);
    if (const auto found = known_.find(key); found != known_.end()) {
      Predicted again = found->second;
      again.run = &run;
      return again;
    }
    STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job(preset_of(run.model)));
    STEPCAST_ASSIGN(const Platform platform, platform_of(run));
    job.training.stack = run.stack;
    job.training.release = run.release;
    job.training.global_batch = run.global_batch;
    job.training.dtype = run.dtype;
    STEPCAST_ASSIGN(DlrmStepModel steps,
                    DlrmStepModel::create(job.model, job.training, platform, run.n_gpus));
    STEPCAST_ASSIGN(const DlrmStep step, steps.predict(usual_sharding(steps)));
    Predicted p{&run, step.time, {}};
    const Coverage coverage = steps.coverage();
    const double us = step.time.time.value();
    for (std::size_t c = 0; c < coverage.gpu_us.size(); ++c) {
      const double share = coverage.gpu_share(static_cast<KernelClass>(c)) * coverage.gpu_total_us() / us;
      if (share > 0.005) p.where += fmt::format("{} {:.2f} ", to_string(static_cast<KernelClass>(c)), share);
    }
    p.where +=
        fmt::format("platform {} exchange {:.0f} us lookup {:.0f} us backward {:.0f} us", platform.name,
                    step.exchange_us, step.ranks[0].lookup_us, step.ranks[0].lookup_backward_us);
    known_.emplace(key, p);
    return p;
  }

 private:
  Result<Platform> platform_of(const DlrmRun& run) const {
    for (const auto& [name, file] : options_->platforms)
      if (same_name(name, run.system) || same_name(name, run.gpu) || name == "*")
        return load_platform(file.string());
    if (run.n_nodes > 1) {
      if (const std::optional<std::string> rack = rack_of_trays(run.gpu, run.gpus_per_node, run.n_gpus))
        return load_platform(*rack);
    }
    STEPCAST_ASSIGN(PlatformChoice choice, platform_for(machine_of(run)));
    return std::move(choice.platform);
  }

  const SuiteOptions* options_;
  std::map<std::string, Predicted> known_;
};

std::string row_name(const DlrmRun& run) {
  return fmt::format("line {} {} {} {} {} x {} nodes {} batch {} {}", run.line, run.model, run.organisation,
                     run.system, run.gpu, run.n_nodes, to_string(run.stack), run.global_batch,
                     to_string(run.dtype));
}

ScoredRow scored(const Predicted& p) {
  return {row_name(*p.run),         p.run->iter_time_ms,      p.time.time.value() / 1e3,
          p.time.p10.value() / 1e3, p.time.p90.value() / 1e3, p.where};
}

using ClassTimes = std::array<double, kKernelClassCount>;
constexpr std::size_t kCommunication = static_cast<std::size_t>(KernelClass::communication);

// GPU time of a rank, mean over ranks, without work launched before the step.
ClassTimes recorded_us(const Replay& replayed) {
  ClassTimes us{};
  const Program& program = replayed.recorded.program;
  const auto n_ranks = static_cast<double>(program.rank_classes().size());
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.block(BlockId{b});
    const std::vector<bool> before = left_over_tasks(block);
    const std::span<const double> durations = replayed.costs.duration_us(BlockId{b});
    for (std::size_t t = 0; t < block.tasks().size(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      if (before[t] || (task.kind != TaskKind::kernel && task.kind != TaskKind::memcpy)) continue;
      us[static_cast<std::size_t>(task.kernel_class)] += durations[t] / n_ranks;
    }
  }
  us[kCommunication] = 0;
  return us;
}

// The job of the traces, from the shapes in its execution traces.
Dlrm described_model() {
  Dlrm model = *dlrm_preset("dlrm-dcnv2-mlperf");
  model.name = "dlrm8";
  model.bottom_mlp = {256, 128, 16};
  model.top_mlp = {512, 512, 256, 1};
  model.interaction = Interaction::dot;
  for (EmbeddingTable& table : model.tables) table.dim = 16;
  return model;
}

// Three tables on every rank, as rows and lookups in the execution traces show, and the two tables of 3 and 4 rows on all.
ShardingPlan described_plan() {
  constexpr std::size_t kTables = 26;
  constexpr std::array<std::array<std::size_t, 3>, 8> kTablesOfRank{{{0, 1, 7},
                                                                     {9, 4, 17},
                                                                     {19, 2, 15},
                                                                     {20, 23, 24},
                                                                     {21, 14, 8},
                                                                     {10, 3, 25},
                                                                     {22, 6, 18},
                                                                     {11, 13, 12}}};
  ShardingPlan plan{.name = "as traced", .tables = std::vector<TablePlan>(kTables)};
  for (TablePlan& table : plan.tables) table.kind = ShardingKind::data_parallel;
  for (std::size_t r = 0; r < kTablesOfRank.size(); ++r)
    for (const std::size_t t : kTablesOfRank[r])
      plan.tables[t] = {.kind = ShardingKind::table_wise, .ranks = {static_cast<std::int32_t>(r)}};
  return plan;
}

double sum_of(const ClassTimes& us) {
  double sum = 0;
  for (const double x : us) sum += x;
  return sum;
}

bool looks_like_dlrm_runs(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  const bool runs = contains(header, "global_batch_samples") && contains(header, "model,");
  return runs || (contains(header, "throughput_samples_per_s") && contains(header, "variant"));
}

Result<std::vector<DlrmRun>> parse_dlrm_runs(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  const bool examples = rows.has("variant");
  for (const std::string_view column :
       {"model", "system", "gpu", "n_nodes", "gpus_per_node", "n_gpus", "framework", "iter_time_ms"}) {
    if (!rows.has(column)) {
      return Error::at(name, "the header")
          .found("no column " + std::string{column})
          .expected("the columns of dlrm_runs.csv (docs/dlrm.md)");
    }
  }
  std::vector<DlrmRun> runs;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    DlrmRun run{.line = rows.line()};
    run.model = rows.cell("model");
    if (examples && run.model.find("DLRM") == std::string::npos && run.model.find("DCN") == std::string::npos)
      continue;
    run.system = rows.cell("system");
    run.gpu = rows.cell("gpu");
    run.links = rows.cell("accelerator_interconnect");
    run.framework = rows.cell("framework");
    run.round = rows.cell("round");
    STEPCAST_TRY(rows.extents(
        {{"n_nodes", &run.n_nodes}, {"gpus_per_node", &run.gpus_per_node}, {"n_gpus", &run.n_gpus}}));
    STEPCAST_ASSIGN(run.global_batch, rows.extent(examples ? "global_batch" : "global_batch_samples"));
    STEPCAST_ASSIGN(run.iter_time_ms, rows.number("iter_time_ms", 0));
    if (!(run.iter_time_ms > 0)) return rows.error("iter_time_ms").expected("a time above 0 in milliseconds");
    if (examples) {
      // The sizes of the cross network of this model are not published.
      run.set = run.model == "DLRM"
                    ? (run.n_gpus > 1 ? "nvidia_examples 8-16 GPUs" : "nvidia_examples one GPU")
                    : "nvidia_examples DCNv2 (sizes assumed)";
      run.model = fmt::format("{} {}", run.model, rows.cell("variant"));
      run.organisation = "NVIDIA";
      run.stack = DlrmStack::nvidia;
      const std::string_view precision = rows.cell("precision");
      run.dtype = contains(precision, "fp16") ? DType::fp16 : parse_dtype(precision);
      if (run.dtype == DType::unknown) return rows.error("precision").expected("fp16, tf32 or fp32");
    } else {
      run.set = rows.cell("set");
      run.organisation = lower(rows.cell("org"));
      run.stack = stack_of(run.framework, run.round);
      run.dtype = run.stack == DlrmStack::torchrec ? DType::tf32 : DType::fp16;
      run.release = release_of(run.framework, run.round);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

// Adds the tests steps, one_factor_per_stack and median_of_like_machines.
void score_dlrm_runs(const std::vector<DlrmRun>& runs, const SuiteOptions& options, SuiteResult& result) {
  RunPredictor predictor{options};
  std::vector<Predicted> predicted;
  for (const DlrmRun& run : runs) {
    Result<Predicted> p = predictor.predict(run);
    if (p)
      predicted.push_back(std::move(*p));
    else
      result.skipped.push_back({row_name(run), p.error().message(), 1});
  }
  if (predicted.empty()) return;
  const auto test_of = [](std::string name, std::string_view protocol) {
    TestScore test{.test = std::move(name), .protocol = std::string{protocol}, .unit = "ms"};
    return test;
  };
  TestScore steps = test_of("steps", "shipped"), factored = test_of("one_factor_per_stack", "refit"),
            baseline = test_of("median_of_like_machines", "refit");
  std::map<std::string, std::vector<const Predicted*>> sets;
  for (const Predicted& p : predicted) sets[p.run->set].push_back(&p);
  for (const auto& [name, members] : sets) {
    SetScore shipped{.set = name}, by_stack{.set = name}, medians{.set = name};
    const bool organisations = std::ranges::any_of(members, [&](const Predicted* p) {
      return p->run->organisation != members.front()->run->organisation;
    });
    for (const Predicted* p : members) {
      shipped.rows.push_back(scored(*p));
      std::vector<double> factors, like;
      for (const Predicted* o : members) {
        // Of one organisation alone: another system with the software of that round.
        const bool other = organisations ? o->run->organisation != p->run->organisation
                                         : o->run->n_gpus != p->run->n_gpus &&
                                               o->run->release == p->run->release && o->run->release != 0;
        if (!other) continue;
        if (o->run->stack == p->run->stack)
          factors.push_back(o->run->iter_time_ms * 1e3 / o->time.time.value());
        if (o->run->gpu.find(p->run->gpu.substr(0, 11)) != std::string::npos &&
            o->run->n_gpus == p->run->n_gpus)
          like.push_back(o->run->iter_time_ms);
      }
      if (!factors.empty()) {
        by_stack.rows.push_back(scaled(scored(*p), quantile(factors, 0.5)));
        by_stack.n_fit += factors.size();
      }
      if (!like.empty()) {
        medians.rows.push_back({row_name(*p->run), p->run->iter_time_ms, quantile(like, 0.5)});
        medians.n_fit += like.size();
      }
    }
    steps.sets.push_back(std::move(shipped));
    if (!by_stack.rows.empty()) factored.sets.push_back(std::move(by_stack));
    if (!medians.rows.empty()) baseline.sets.push_back(std::move(medians));
  }
  result.add(finished({&steps, &factored, &baseline}));
}

// Adds the test described_trace for the traces in `folder` of TorchRec's DLRM on eight V100 (the 26 tables of DCNv2 with 16
// columns, 16 samples per rank, eager Adagrad). Errors: traces that cannot be read or rebuilt.
Status score_described_trace(const std::filesystem::path& folder, SuiteResult& result) {
  constexpr std::int64_t kRanks = 8, kSamples = 16;
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::vector{folder}));
  STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing));
  STEPCAST_ASSIGN(const Replay replayed, replay(set.inputs(), {.compare_variants = false}));
  STEPCAST_ASSIGN(const Platform platform, load_platform("dgx-1-v100-32gb"));
  const DlrmTraining training{.stack = DlrmStack::torchrec,
                              .global_batch = kRanks * kSamples,
                              .dtype = DType::fp32,
                              .dense_optimizer = OptimizerKind::adagrad,
                              .table_optimizer = OptimizerKind::adagrad,
                              .dense_optimizer_implementation = OptimizerImplementation::for_loop};
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(described_model(), training, platform, kRanks));
  STEPCAST_ASSIGN(const DlrmStep step, steps.predict(described_plan()));
  const Coverage coverage = steps.coverage();
  ClassTimes predicted{};
  for (std::size_t k = 0; k < kKernelClassCount; ++k) {
    if (k == kCommunication) continue;
    for (const double us : coverage.gpu_us[k]) predicted[k] += us;
  }
  const ClassTimes recorded = recorded_us(replayed);
  TestScore test{.test = "described_trace", .protocol = "shipped", .unit = "us"};
  SetScore gpu{.set = "dlrm8 GPU time"}, classes{.set = "dlrm8 by class"}, whole{.set = "dlrm8 step"};
  gpu.rows.push_back({"computation of a rank", sum_of(recorded), sum_of(predicted)});
  for (std::size_t k = 0; k < kKernelClassCount; ++k)
    if (recorded[k] > 0 || predicted[k] > 0)
      classes.rows.push_back(
          {std::string{to_string(static_cast<KernelClass>(k))}, recorded[k], predicted[k]});
  // Ranks begin up to 7.5 ms after one another, when the profiler starts on each, and end together. So all steps except that
  // of the last rank to begin include waiting for others. A description does not know the start of each rank. Given the
  // starts, it forecasts the steps of all ranks.
  double mean = 0, last_to_begin = replayed.ranks.front().step.measured_us;
  for (const ReplayedRank& rank : replayed.ranks) {
    mean += rank.step.measured_us / static_cast<double>(replayed.ranks.size());
    last_to_begin = std::min(last_to_begin, rank.step.measured_us);
  }
  SetScore without_waiting{.set = "dlrm8 step of the last rank to begin"};
  const auto scored_step = [&](std::string name, double measured) {
    return ScoredRow{std::move(name), measured, step.time.time.value(), step.time.p10.value(),
                     step.time.p90.value()};
  };
  whole.rows.push_back(scored_step("mean over ranks", mean));
  without_waiting.rows.push_back(scored_step("last rank to begin", last_to_begin));
  SetScore told{.set = "dlrm8 step from when each rank began"};
  std::vector<double> starts_us;
  for (const RecordedStepFacts& facts : replayed.recorded.facts) starts_us.push_back(facts.step_us.start_us);
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(steps.program()));
  STEPCAST_ASSIGN(const Timeline timeline,
                  plan.simulate(steps.costs(), {.unfold = false, .start_offset_us = starts_us}));
  for (std::size_t r = 0; r < starts_us.size(); ++r) {
    told.rows.push_back({fmt::format("rank {}", r), replayed.recorded.facts[r].step_us.length_us(),
                         timeline.rank_end_us(RankClassId{r}) - starts_us[r]});
  }
  test.sets = {std::move(gpu), std::move(classes), std::move(whole), std::move(without_waiting),
               std::move(told)};
  test.finish();
  result.tests.push_back(std::move(test));
  return Ok{};
}

// The CSV files in a folder and its sub-folders that contain measurements of recommendation models.
std::vector<std::filesystem::path> csv_files(const std::filesystem::path& data) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(data, ignored)) return {data};
  std::vector<std::filesystem::path> files;
  for (const char* below : {"", "iterations", "embedding", "modern/embedding", "field"})
    std::ranges::move(csv_files_in(*below == 0 ? data : data / below), std::back_inserter(files));
  std::ranges::sort(files);
  return files;
}

}  // namespace

Result<SuiteResult> validate_dlrm(const std::filesystem::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "dlrm"};
  std::vector<MeasuredLookup> lookups;
  std::vector<DlrmRun> runs;
  const std::vector<std::filesystem::path> files = csv_files(data);
  for (const std::filesystem::path& file : files) {
    STEPCAST_ASSIGN(const std::string text, read_file(file));
    if (looks_like_lookups(text)) {
      STEPCAST_ASSIGN(std::vector<MeasuredLookup> more, parse_lookups(text, file.string()));
      std::move(more.begin(), more.end(), std::back_inserter(lookups));
    } else if (looks_like_dlrm_runs(text)) {
      STEPCAST_ASSIGN(std::vector<DlrmRun> more, parse_dlrm_runs(text, file.string()));
      std::move(more.begin(), more.end(), std::back_inserter(runs));
    } else if (files.size() == 1) {
      return Error::at(file.string(), "the header")
          .found("no file of recommendation models")
          .expected("the columns of dlrm_runs.csv or tbe_kernels_in_traces.csv (docs/dlrm.md)");
    }
  }
  score_dlrm_runs(runs, options, result);
  score_lookups(lookups, options, result);
  // The studies take minutes and read none of these files: they run only with the whole collection. A sub-folder such as
  // iterations is scored by its rows alone.
  std::error_code ignored;
  if (std::filesystem::is_directory(data / "traces" / "dlrm8", ignored))
    STEPCAST_TRY(score_described_trace(data / "traces" / "dlrm8", result));
  if (std::filesystem::is_directory(data / "dlrm_tables", ignored)) {
    STEPCAST_TRY(score_shardings(options, result));
    STEPCAST_TRY(score_learned_lookups(options, result));
  }
  if (result.tests.empty()) {
    return Error::at(data.string(), "the folder", "holds no measurements of recommendation models")
        .expected("files with the columns of dlrm_runs.csv or tbe_kernels_in_traces.csv (docs/dlrm.md)");
  }
  return result;
}

}  // namespace stepcast
