// stepcast as a library: the one header that stays as it is.
//
//   const stepcast::Session session;
//   const auto f = session.predict({.job = {.model = "llama-3-70b", .n_gpus = 512}, .platform = "dgx-h100"});
//   if (!f.ok()) return fail(f.error().message());
//   f->step_time_ms, f->critical().parts(), f->coverage.fitted
//   const auto r = session.replay({.places = {"traces/"}});
//   const auto t = session.predict(PredictTraceRequest{.places = {"traces/"}, .platform = "8xmi300x"});
//   stepcast::compare(r->measured, r->simulated).parts.front().key
//
// Values go in and come out; nothing that is returned refers to anything else. A Session may be used from
// several threads at once. Errors are values (base/result.h); nothing prints, exits or throws but for memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/compare.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/base/result.h"
#include "stepcast/base/stop.h"
#include "stepcast/base/version.h"
#include "stepcast/describe/job.h"
#include "stepcast/recommend/reshard.h"
#include "stepcast/recommend/sharding_comparison.h"
#include "stepcast/report/comparison_document.h"
#include "stepcast/report/document.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/html/page.h"
#include "stepcast/report/replay_document.h"
#include "stepcast/report/result_reader.h"
#include "stepcast/report/rl_document.h"
#include "stepcast/report/scaling_series.h"
#include "stepcast/report/sharding_document.h"
#include "stepcast/rollout/rl_forecast.h"
#include "stepcast/sweep/sweep_shard.h"
#include "stepcast/sweep/sweep_spec.h"
#include "stepcast/trace/read_progress.h"

namespace stepcast {

class StepModel;
// A recorded step that stays in memory, so that questions about it read no files (Session::step_time()).
struct KeptStep;
struct LayoutRestrictions;
struct LoggedRun;
struct MeasuredTimes;
struct Platform;
struct ReplayAnalysis;

// Of the version: a program that was compiled with the headers of another one does not link (docs/library.md).
inline namespace v0_2 {

// A step of a described training.
// How work is spread over GPUs where nobody says, or says a part of it (formats/layout_choice.h): the rest is searched given
// what is said.
enum class OpenLayout : std::uint8_t {
  usual,  // as fastest, but a layout of which degrees, micro-batch and batch are said (says_whole_layout()) is as said
  // As `plan` chooses for the same question. Faster parts change what a step takes, not how it is laid out: the choice is
  // that for the machine as it is.
  fastest,
  least_memory,  // the plainest way that fits
  replanned,     // as fastest, for the parts of PredictRequest::what_if
  as_said,       // what is said of it is all of it; as fastest where nothing is
  as_planned,    // as as_said, of what a search found: the expected step is that of `plan` (plan/promise.h)
};

enum class LargestBatch : std::uint8_t {
  none,
  micro,   // the largest micro-batch that fits, of the batch that is said
  global,  // the largest batch that fits without adding up gradients of several micro-batches
};

// What is searched where the layout on several pools of GPUs is open.
struct PoolSpace {
  std::shared_ptr<const LayoutRestrictions> lists{};  // plan/layout_space.h; null: what the job leaves open
  std::size_t top = 0;  // layouts to list (Forecast::pool_layouts); above 0 searches what the job leaves open
  friend bool operator==(const PoolSpace&, const PoolSpace&) = default;
};

struct PredictRequest {
  Job job;
  std::string platform = "dgx-h100";      // name of a shipped platform, or a platform file
  std::vector<std::string> what_if;       // "nvlink=2x", see predict/what_if.h
  std::optional<double> power_limit_W{};  // of each GPU, see cost/node_power.h
  // Share of what the links between switches pass that other jobs ask for (predict/network_sharing.h); the platform has to
  // state the tiers of its network.
  double background_load = 0;
  // Pools of GPUs instead of `platform` and the GPUs of `job`, as "64xh100@east+64xa100@west", and their zones, as
  // "east:price=2.5,bandwidth=400Gbps" (describe/gpu_pools.h, docs/shared-clusters.md). One pool is the question about its
  // platform, and so are several of one platform in one zone.
  std::string pools{};
  std::vector<std::string> zones{};
  PoolSpace pool_space{};
  // Steps that were measured on the platform, which the forecast is anchored on (predict/anchor.h): words of a layout with
  // milliseconds behind them ("gpus=64 tp=8 pp=2=4120"; what they do not say is as `job` says), logs of training runs, or
  // recorded traces of the job. One of the very job also gives Forecast::measured_check.
  std::vector<std::string> measured{};
  std::shared_ptr<const MeasuredTimes> measured_steps{};  // those that were read already; null: none
  OpenLayout open_layout = OpenLayout::usual;
  // By a word of `predict --layout`. Errors: another word.
  [[nodiscard]] Status set_open_layout(std::string_view word);
  LargestBatch largest = LargestBatch::none;
  TrainingBudget budget;          // what training would cost
  bool explained = false;         // also the operations of every kind of layer
  bool path_steps = false;        // every step of the critical path
  std::size_t collectives = 256;  // to list, those that cost most; 0 is all
  // Of the ranks, those alone that decide how long the step takes: no other ones, no collectives and no critical path.
  bool only_critical = false;
  // Notes where products in fp8 or fp4 make the step slower than in 16 bits, which takes the time of a second forecast.
  bool compares_types = true;
  // Also the step as Chrome trace JSON, one rank of every class; compressed if the name ends in .gz.
  std::filesystem::path timeline{};
  // Also the step as Chakra execution traces in this folder, one of every rank class (report/chakra_export.h).
  std::filesystem::path chakra{};
  bool chakra_per_rank = false;  // one of every rank instead, with their process groups beside them
};

// What completes a layout: together with the job it says a whole one, which gives the same forecast as `layout`.
struct CompletingSettings {
  JobSettings settings;
  OpenLayout layout = OpenLayout::as_said;  // as_planned where the expected step is not the forecast
};

struct StepTime {
  double step_time_ms = 0, step_time_p10_ms = 0, step_time_p90_ms = 0;
};

// Points of a series of described steps: every combination; empty: as the request says.
struct StepSeries {
  std::vector<std::int64_t> gpus, micro_batches, global_batches;
  // What the request leaves open of the layout is that of the first point, and not searched for each.
  bool same_layout = false;
  std::vector<std::int64_t> batches_per_rank{};  // samples, of recommendation models
};

// A step of post-training by reinforcement learning (docs/post-training.md).
struct PredictRlRequest {
  // The policy, with all GPUs of the step, and how it is trained; an open layout is chosen.
  Job actor;
  RlSettings rl;
  std::string platform = "dgx-h100";  // name of a shipped platform, or a platform file
  std::vector<std::string> what_if;   // as for a step of training
};

// How the step of recorded ranks is distributed.
struct SpreadRequest {
  bool all_steps = false;       // every recorded step by itself: Forecast::series
  std::uint64_t scenarios = 0;  // so many straggler scenarios: Forecast::scenarios
  std::uint64_t seed = 1;       // of their draws
  // Draw these instead of what was measured: "5%", "host=10%", "network=20%".
  std::vector<std::string> jitter;
};

// A step of a described recommendation model (describe/dlrm_job.h).
struct PredictDlrmRequest {
  std::string model;    // a preset or a file
  std::string tables;   // a CSV file, or a folder of traces, instead of the model's tables; empty: those
  std::string indices;  // a .npz file with the indices of a batch (docs/dlrm.md); empty: the model's pattern
  std::string platform = "dgx-h100";  // name of a shipped platform, or a platform file
  std::int64_t n_gpus = 0;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::int64_t> global_batch;  // samples, instead of the model's
  std::string plan;                          // TorchRec's sharding plan as JSON; empty: found by search
  std::vector<std::string> what_if;
  std::optional<std::int64_t> batch_per_rank;  // samples, instead of global_batch
  std::string links_of;                        // transfers go over the links of this platform
  TrainingBudget budget;
  std::size_t collectives = 256;
  std::filesystem::path timeline{};
  bool explained = false;  // also the kernels of the slowest rank
  // Keys of a model's file (docs/dlrm.md) and their values, instead of what it says: {"release", "v3.1"}.
  std::vector<std::pair<std::string, std::string>> settings{};
};

// Which sharding of its embedding tables makes the step of a recommendation model shortest.
struct ShardRequest {
  std::string model = "dlrm-multi-gpu";  // a preset or a file
  std::string tables{};  // a CSV file, or a folder of traces, instead of the model's; empty: those
  // A .npz file with the indices of a batch (docs/dlrm.md); empty: the model's pattern.
  std::string indices{};
  // Instead of `tables`: drawn, by the seed of the choices, from a set with published totals: 2021, 2022, 2021-heavy,
  // 2022-heavy (plan/table_sets.h).
  std::string generate{};
  std::string platform = "dgx-h100";  // name of a shipped platform, or a platform file
  std::int64_t n_gpus = 0;
  std::optional<std::int64_t> gpus_per_node{};
  std::optional<std::int64_t> global_batch{};  // samples, instead of the model's
  ShardingsToCompare choices{};
  std::vector<std::pair<std::string, std::string>> settings{};  // as of a prediction
  std::filesystem::path plan{};        // also the best as a TorchRec plan (JSON); an error where none fits
  std::filesystem::path tables_csv{};  // also the tables as a CSV file
};

// Gets the step as it was recorded. Not called where there are too many ranks to keep them, two recordings or two steps.
using KeepStep = std::function<void(std::shared_ptr<const KeptStep>)>;

// Recorded ranks, with simulated waiting.
struct ReplayRequest {
  // A folder of profiler (and execution) traces, of Chakra traces or with the timeline of a pipeline; or the files.
  std::vector<std::filesystem::path> places;
  std::optional<std::int64_t> step;  // N of ProfilerStep#N; otherwise the median one that all ranks have
  std::vector<std::int32_t> ranks;   // only these; empty: all
  std::string ranks_from{};          // how names of files show the rank: "host{}_gpu"; empty: file_ranks.h
  bool own_delays = false;           // each operation's own launch delay where small
  bool smallest_handoff = false;     // the smallest latency over ranks between CPU threads
  bool path_steps = false;           // every step of the critical path
  unsigned threads = 0;              // to read with; 0: one per hardware thread
  TrainingBudget budget;             // what training would cost at the simulated step time
  std::optional<double> samples_per_step, tokens_per_step;  // of all ranks, where known
  SpreadRequest spread;                                     // into Replayed::simulated
  ProgressReport progress{};                                // while traces are read (trace/read_progress.h)
  std::filesystem::path timeline{};                         // as above
  bool timeline_with_measured = false;                      // the recorded times beside the simulated ones
  bool pictures = false;                                    // also Replayed::pictures
  KeepStep keeps{};                                         // as `predict` reads it
};

// The step of recorded ranks under other circumstances.
struct PredictTraceRequest {
  // As for a replay; execution traces alone will do where the platform has host overheads. Of Chakra traces,
  // recorded durations stay ("ratio" where `recorded_on` is named), and the platform prices the rest.
  std::vector<std::filesystem::path> places;
  std::optional<std::int64_t> step;
  std::vector<std::int32_t> ranks;
  std::string ranks_from{};
  // To predict on: name or file of a platform; empty: the machine that recorded.
  std::string platform{};
  // What stands for the machine that recorded; empty: the shipped platform that has its GPU.
  std::string recorded_on{};
  // Times of GPU work: "recorded", "models" (of the platform, whatever was recorded), "ratio" (recorded, times
  // what the models say of the platform over what they say of the GPU that recorded). Empty: "ratio" with a
  // platform and "recorded" without.
  std::string kernels{};
  std::string host = "recorded";     // times of CPU threads: "recorded", "overheads" (of the platform)
  std::vector<std::string> what_if;  // "gemm=2x", "host=1.5x", see predict/what_if.h
  bool median_ranks = false;         // every rank as fast as the median rank
  bool barrier = false;              // all ranks begin the step at one moment
  // Samples per rank to predict for (0: as recorded), and what the traces took (0: as their shapes show); changed_work.h.
  std::int64_t batch = 0, recorded_batch = 0;
  // The step with the shapes of this one of the same traces, as packed or bucketed sequences vary; other_shapes.h.
  std::optional<std::int64_t> shapes_of_step{};
  // The same ranks recorded at another batch: what scales is what differs (batch_pair.h). Needs both recorded batches.
  std::vector<std::filesystem::path> second_places{};
  std::int64_t second_batch = 0;
  std::string dtype{};                   // of products: "bf16", "fp16", "tf32", "fp32"; empty: as recorded
  std::int64_t data_parallel_ranks = 0;  // 0: as recorded
  // Of transfers with computation: "none", "perfect"; of the host with the GPU: "host" (overlap_change.h); empty: as recorded.
  std::string overlap{};
  // "full", "selective": what runs its forward again (predict/added_recomputation.h)
  std::string recompute{};
  double bucket_mb = 0;  // MiB that a bucket of gradients holds (predict/gradient_buckets.h); 0: as recorded
  std::string links_of{};  // platform whose links transfers go over; empty: those of the platform
  std::vector<std::string> rank_platforms{};                // "2=fpga.json": rank 2 computes on that platform
  bool path_steps = false;                                  // every step of the critical path
  std::size_t collectives = 256;                            // to list, those that cost most; 0 is all
  unsigned threads = 0;                                     // to read with; 0: one per hardware thread
  TrainingBudget budget;                                    // what training would cost
  std::optional<double> samples_per_step, tokens_per_step;  // of all ranks, where known
  SpreadRequest spread;
  ProgressReport progress{};
  std::filesystem::path timeline{}, chakra{};  // as for a description
  bool chakra_per_rank = false;
  KeepStep keeps{};
};

struct Replayed {
  Forecast simulated, measured;
  // What a comparison with the record adds (analyze/replay_analysis.h); not part of what stays as it is. Null for
  // Chakra traces, which hold no measured step; `measured` is empty then.
  std::shared_ptr<const ReplayAnalysis> analysis;
  StepPictures pictures;  // of the simulated step, where asked for
};

// The step that the log of a training run tells, predicted.
struct PredictLogRequest {
  std::filesystem::path log;
  // `job` says what the log does not, and holds against what it does; an empty `platform` is the one that has the GPU
  // that the log names, or else dgx-h100.
  PredictRequest request;
  // What `job` says is another step than the one that the log tells by itself: that one anchors the forecast.
  bool anchors = true;
  bool pictures = false;  // also the sensitivities and pictures of the forecast
  ProgressReport progress{};
};
struct PredictedLog {
  Forecast forecast, measured;  // the second of kind "log"
  Comparison comparison;        // a: the forecast, b: the log
  Sensitivity sensitivity;      // empty, as the pictures are, where they were not asked for
  StepPictures pictures;
  [[nodiscard]] ForecastIllustrations illustrations() const { return {&sensitivity, &pictures}; }
  // Everything that the log tells (logs/logged_run.h); not part of what stays as it is.
  std::shared_ptr<const LoggedRun> run;
};

// A forecast with what a report shows beside it: report_html(forecast_document(answer.forecast, answer.illustrations())).
struct Report {
  Forecast forecast;
  Sensitivity sensitivity;
  StepPictures pictures;
  [[nodiscard]] ForecastIllustrations illustrations() const { return {&sensitivity, &pictures}; }
};
using Sensitive = Report;  // without pictures

struct RlReport {
  RlForecast forecast;
  Sensitivity sensitivity;
};

// A shard of a sweep (sweep/sweep_spec.h), and the folder that its rows go to.
//
//   STEPCAST_ASSIGN(const SweepSpec spec, read_sweep("sweep.toml"));
//   STEPCAST_ASSIGN(const SweepReport report, session.sweep(spec, {.folder = "out"}));
//
// A folder serves all shards at once. Who is killed loses a quarter of a second of work: the same call does the rest.
struct SweepRun {
  std::filesystem::path folder;
  SweepShard shard{};
  unsigned threads = 0;  // 0: one per hardware thread; the rows are the same
  bool extends = false;  // the spec has become longer since the folder was begun
  // After every point: how many of the shard are done; not by two threads at once.
  std::function<void(std::size_t done, std::size_t all)> progress{};
};

struct SweepReport {
  std::size_t n_points = 0;  // of the shard
  std::size_t n_before = 0;  // that had a row before
  std::size_t n_run = 0;
  std::filesystem::path file{};
};

// Decides while a recommendation model trains whether its tables should move, from what a new batch looks up.
//
//   STEPCAST_ASSIGN(Resharder resharder, Resharder::create({.model = "dlrm.toml", .n_gpus = 8}));
//   STEPCAST_ASSIGN(const Resharded next, resharder.decide(reuse));   // reuse_factors() of every table
//   next.moved_tables, next.kept_step_us, next.step_us
//
// A decision takes less than a millisecond for dozens of tables. Not for several threads at once.
class Resharder {
 public:
  // Starts from the plan of the request, or from one that is found. Errors: as of a prediction; a model whose rows
  // are on all ranks.
  [[nodiscard]] static Result<Resharder> create(const PredictDlrmRequest& request);
  Resharder(Resharder&&) noexcept;
  Resharder& operator=(Resharder&&) noexcept;
  ~Resharder();

  // Of the last decision.
  [[nodiscard]] const ShardingPlan& plan() const;
  // Errors: reuse factors of another number of tables.
  [[nodiscard]] Result<Resharded> decide(const std::vector<ReuseFactors>& batch);

 private:
  struct Impl;
  explicit Resharder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Where layouts are searched (plan/layout_plan.h).
struct SearchedPlatform {
  std::string name;  // of the node that a GPU was named for, where there are several
  std::shared_ptr<const Platform> platform;
  std::shared_ptr<const StepModel> steps;  // shares what searches have priced: PlanRequest::steps
};

class Session {
 public:
  Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Platforms and prices are kept for the next call. Errors: a job that cannot be resolved, a platform that
  // cannot be read, a layout that the platform cannot hold, a timeline that cannot be written.
  [[nodiscard]] Result<Forecast> predict(const PredictRequest& request) const;

  // The step time that predict() gives, to the last digit, without the parts of the forecast: at a tenth of the cost for a
  // layout that is new. Errors: those of predict(). Nothing where predict() may have more of them, or more to price: several
  // pools, the load of experts, a training, files to write.
  [[nodiscard]] Result<std::optional<StepTime>> step_time(const PredictRequest& request) const;

  // Errors: a model or plan that cannot be read or does not fit the GPUs. Tables that do not fit are a verdict.
  [[nodiscard]] Result<Forecast> predict(const PredictDlrmRequest& request) const;

  // What has to be said besides the job for a layout of which nothing is left open: as predict() completes it. Nothing is said
  // where nothing is open. Errors: those of predict().
  [[nodiscard]] Result<CompletingSettings> completing_settings(const PredictRequest& request) const;

  // Errors: settings that contradict each other, a model that generates nothing, keys and values that fit on no engine.
  [[nodiscard]] Result<RlForecast> predict(const PredictRlRequest& request) const;

  // Errors: a log that cannot be read or tells no step time; one that prints no settings while `job` describes nothing;
  // and those of a prediction.
  [[nodiscard]] Result<PredictedLog> predict(const PredictLogRequest& request) const;

  // The same on other numbers of GPUs and with other batches, in the order given. Errors: those of predict(), at the
  // point that has them.
  [[nodiscard]] Result<std::vector<ScalingPoint>> predict_series(const PredictRequest& request,
                                                                 const StepSeries& series) const;

  // The same on other numbers of GPUs and with other batches per rank, in the order given; none: as the request says.
  [[nodiscard]] Result<std::vector<ScalingPoint>> predict_series(
      const PredictDlrmRequest& request, std::span<const std::int64_t> gpus,
      std::span<const std::int64_t> batches_per_rank) const;

  // Errors: no profiler trace, a platform that cannot be read, a GPU that recorded and that no platform has
  // where its prices are needed, host overheads that the platform does not have.
  [[nodiscard]] Result<Forecast> predict(const PredictTraceRequest& request) const;

  // The step time that predict() gives, to the last digit, of a step that was kept, whatever files the request names. Errors:
  // those of predict().
  [[nodiscard]] Result<StepTime> step_time(const PredictTraceRequest& request, const KeptStep& step) const;

  // The same forecasts, and which resource (kernels of a class, links, host, batch) would make the step how much
  // shorter.
  [[nodiscard]] Result<Sensitive> sensitivity(const PredictRequest& request) const;
  [[nodiscard]] Result<Sensitive> sensitivity(const PredictDlrmRequest& request) const;
  [[nodiscard]] Result<Sensitive> sensitivity(const PredictTraceRequest& request) const;
  // The ways to spread the step stay as they are.
  [[nodiscard]] Result<RlReport> sensitivity(const PredictRlRequest& request) const;

  // The same forecasts, with the operations of a layer, the pictures and the sensitivities of a report. Errors: those of
  // predict().
  [[nodiscard]] Result<Report> report(const PredictRequest& request) const;
  [[nodiscard]] Result<Report> report(const PredictDlrmRequest& request) const;
  [[nodiscard]] Result<Report> report(const PredictTraceRequest& request) const;

  // Both are kept for the next call. `n_gpus`: of the job, one or several. Errors: a platform that cannot be read.
  [[nodiscard]] Result<SearchedPlatform> searched_platform(const std::string& name,
                                                           std::optional<std::int64_t> gpus_per_node,
                                                           std::int64_t n_gpus) const;

  [[nodiscard]] Result<Replayed> replay(const ReplayRequest& request) const;

  // Every sharding that was asked for, the best first; sharding_text() and sharding_json() write them. Errors: a model,
  // table or plan that cannot be read or does not fit the GPUs. That none fits into memory is a verdict.
  [[nodiscard]] Result<ShardingComparison> shard(const ShardRequest& request) const;

  // The row of one point (report/sweep_document.h, docs/sweeps.md), without a line break: what an executor of another program
  // hands to its workers. A point that cannot be run has a row that says why; only what the machine fails at is an error.
  [[nodiscard]] Result<std::string> run(const SweepPoint& point) const;
  // Errors: a folder of another sweep, or one that cannot be written.
  [[nodiscard]] Result<SweepReport> sweep(const SweepSpec& spec, const SweepRun& run) const;

 private:
  [[nodiscard]] Result<std::string> answer(const SweepPoint& point) const;
  struct Extras {  // filled in, too, where not null
    Sensitivity* sensitivity = nullptr;
    StepPictures* pictures = nullptr;
    ResolvedJob* job = nullptr;           // with the layout that was chosen
    JobSettings* chosen = nullptr;        // what says a layout that the request leaves open
    ScalingPoint* point = nullptr;        // without its forecast
    std::optional<double> measured_ms{};  // the step of a log: Forecast::measured_check
  };
  [[nodiscard]] Result<Forecast> predict(const PredictRequest& request, const Extras& extras) const;
  [[nodiscard]] Result<Forecast> predict(const PredictTraceRequest& request, const Extras& extras) const;
  [[nodiscard]] Result<Forecast> predict(const PredictDlrmRequest& request, const Extras& extras) const;
  template <class Request>
  [[nodiscard]] Result<Report> detailed(Request request, bool with_pictures) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0_2
}  // namespace stepcast
