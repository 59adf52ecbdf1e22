// The library interface of stepcast. This header is stable within a version.
//
//   const stepcast::Session session;
//   const auto f = session.predict({.job = {.model = "llama-3-70b", .n_gpus = 512}, .platform = "dgx-h100"});
//   if (!f.ok()) return fail(f.error().message());
//   f->step_time_ms, f->critical().parts(), f->coverage.fitted
//   const auto r = session.replay({.places = {"traces/"}});
//   const auto t = session.predict(PredictTraceRequest{.places = {"traces/"}, .platform = "8xmi300x"});
//   stepcast::compare(r->measured, r->simulated).parts.front().key
//
// Arguments and results are values: no result refers to the session or to the request. A Session may be used
// from several threads. Errors are values (base/result.h). Nothing is printed, the process does not exit, and
// only out-of-memory throws.
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

// The namespace contains the version: code that was compiled with headers of another version does not link
// (docs/library.md).
inline namespace v0_2 {

// How an incomplete layout is completed (formats/layout_choice.h). The search keeps everything that the job gives.
enum class OpenLayout : std::uint8_t {
  usual,  // as `fastest`; but if degrees, micro-batch and batch are given (says_whole_layout()), as `as_said`
  // The layout that `plan` chooses. What-ifs change the time of the step, not the choice of the layout.
  fastest,
  least_memory,  // the simplest layout that fits
  replanned,     // as `fastest`, but chosen for the changed machine of PredictRequest::what_if
  as_said,       // settings that are not given are off; as `fastest` if no layout is given at all
  // As `as_said`, for a layout that a search chose: the expected step is that of `plan` (see `plan/promise.h`)
  as_planned,
};

// Which batch is set as large as memory allows.
enum class LargestBatch : std::uint8_t {
  none,
  micro,   // the micro-batch, which must divide a given global batch
  global,  // the global batch, without gradient accumulation
};

// The search space of layouts on several pools of GPUs.
struct PoolSpace {
  // Lists of degrees (plan/layout_space.h); null: all that the job allows.
  std::shared_ptr<const LayoutRestrictions> lists{};
  // Number of alternatives in Forecast::pool_layouts; above 0 all open settings are searched.
  std::size_t top = 0;
  friend bool operator==(const PoolSpace&, const PoolSpace&) = default;
};

// A step of a described training on a described machine.
struct PredictRequest {
  Job job;
  std::string platform = "dgx-h100";      // name of a built-in platform, or path of a platform file
  std::vector<std::string> what_if;       // changes such as "nvlink=2x" (predict/what_if.h)
  std::optional<double> power_limit_W{};  // watts per GPU (cost/node_power.h)
  // Share (0 to 1) of the links between switches that other jobs use (predict/network_sharing.h). The
  // platform must have network tiers.
  double background_load = 0;
  // Pools of GPUs that replace `platform` and the GPUs of `job`, "64xh100@east+64xa100@west", and their
  // zones, "east:price=2.5,bandwidth=400Gbps" (describe/gpu_pools.h, docs/shared-clusters.md). A single pool,
  // or several of the same platform and zone, is the same as that platform.
  std::string pools{};
  std::vector<std::string> zones{};
  PoolSpace pool_space{};
  // Measured steps on the same platform, which anchor the forecast (predict/anchor.h): a layout with its
  // milliseconds ("gpus=64 tp=8 pp=2=4120", completed from `job`), a log of a training run, or recorded
  // traces of the job. A measurement of the requested job itself also gives Forecast::measured_check.
  std::vector<std::string> measured{};
  std::shared_ptr<const MeasuredTimes> measured_steps{};  // measurements that were read before; null: none
  OpenLayout open_layout = OpenLayout::usual;
  // Sets open_layout from a value of `predict --layout`. Errors: an unknown word.
  [[nodiscard]] Status set_open_layout(std::string_view word);
  LargestBatch largest = LargestBatch::none;
  TrainingBudget budget;          // asks for duration and cost of the training
  bool explained = false;         // also list the operations of each kind of layer
  bool path_steps = false;        // also list all steps of the critical path
  std::size_t collectives = 256;  // number of most expensive collectives to list; 0: all
  // Only the rank class that determines the step time: no other ranks, no collectives, no critical path. Faster.
  bool only_critical = false;
  // Adds a note if GEMMs in fp8 or fp4 make the step slower than 16 bits. Needs a second forecast.
  bool compares_types = true;
  // Also writes the step as Chrome trace JSON with one rank per rank class; gzip if the name ends with .gz.
  // Empty: no file.
  std::filesystem::path timeline{};
  // Also writes Chakra execution traces to this folder, one per rank class (report/chakra_export.h). Empty: none.
  std::filesystem::path chakra{};
  bool chakra_per_rank = false;  // one trace per rank instead, with the process groups
};

// Settings that complete an open layout. With them, the job has a whole layout, and `layout` gives the same forecast.
struct CompletingSettings {
  JobSettings settings;
  OpenLayout layout = OpenLayout::as_said;  // as_planned if the expected step differs from the forecast
};

// A step time with its 10th and 90th percentile, in milliseconds.
struct StepTime {
  double step_time_ms = 0, step_time_p10_ms = 0, step_time_p90_ms = 0;
};

// Axes of a series of steps. Points are all combinations; an empty axis keeps the value of the request.
struct StepSeries {
  std::vector<std::int64_t> gpus, micro_batches, global_batches;
  // True: the layout that completes the first point is used for all. False: each point is searched.
  bool same_layout = false;
  std::vector<std::int64_t> batches_per_rank{};  // samples per rank, for recommendation models
};

// A step of post-training by reinforcement learning (docs/post-training.md).
struct PredictRlRequest {
  // The model that is trained, with all GPUs of the step. An open layout is chosen.
  Job actor;
  RlSettings rl;
  std::string platform = "dgx-h100";  // name of a built-in platform, or path of a platform file
  std::vector<std::string> what_if;   // as in PredictRequest
  std::filesystem::path timeline{};   // as in PredictRequest
};

// How the distribution of a recorded step is estimated.
struct SpreadRequest {
  bool all_steps = false;       // simulates each recorded step: Forecast::series
  std::uint64_t scenarios = 0;  // number of simulated straggler scenarios: Forecast::scenarios
  std::uint64_t seed = 1;       // of the random draws
  // Jitter to draw instead of the measured one: "5%", "host=10%", "network=20%".
  std::vector<std::string> jitter;
};

// A step of a described recommendation model (recommend/dlrm_job.h).
struct PredictDlrmRequest {
  std::string model;    // name of a preset, or path of a file
  std::string tables;   // CSV file or folder of traces with tables; empty: those of the model
  std::string indices;  // .npz file with the indices of a batch (docs/dlrm.md); empty: the model's pattern
  std::string platform = "dgx-h100";  // name of a built-in platform, or path of a platform file
  std::int64_t n_gpus = 0;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::int64_t> global_batch;  // samples; nothing: from the model
  std::string plan;                          // TorchRec sharding plan (JSON); empty: found by search
  std::vector<std::string> what_if;
  std::optional<std::int64_t> batch_per_rank;  // samples per rank; replaces global_batch
  std::string links_of;  // platform with the links for transfers; empty: those of `platform`
  TrainingBudget budget;
  std::size_t collectives = 256;
  std::filesystem::path timeline{};
  bool explained = false;  // also list the kernels of the slowest rank
  // Keys of the model file (docs/dlrm.md) with values that replace those of the file: {"release", "v3.1"}.
  std::vector<std::pair<std::string, std::string>> settings{};
};

// Compares shardings of the embedding tables of a recommendation model by their step time.
struct ShardRequest {
  std::string model = "dlrm-multi-gpu";  // name of a preset, or path of a file
  std::string tables{};  // CSV file or folder of traces with tables; empty: those of the model
  // A .npz file with the indices of a batch (docs/dlrm.md); empty: the pattern of the model.
  std::string indices{};
  // Generates tables instead of reading `tables`, with the seed of `choices`, from a set with published
  // totals: 2021, 2022, 2021-heavy, 2022-heavy (recommend/table_sets.h).
  std::string generate{};
  std::string platform = "dgx-h100";  // name of a built-in platform, or path of a platform file
  std::int64_t n_gpus = 0;
  std::optional<std::int64_t> gpus_per_node{};
  std::optional<std::int64_t> global_batch{};  // samples; nothing: from the model
  ShardingsToCompare choices{};
  std::vector<std::pair<std::string, std::string>> settings{};  // as in PredictDlrmRequest
  std::filesystem::path plan{};        // also writes the best TorchRec plan (JSON); an error if none fits
  std::filesystem::path tables_csv{};  // also writes the tables as a CSV file
};

// Receives the recorded step. Not called if it has too many ranks to keep, or for two recordings or two steps.
using KeepStep = std::function<void(std::shared_ptr<const KeptStep>)>;

// A replay: the recorded work with simulated waiting.
struct ReplayRequest {
  // A folder of traces, or the files: profiler traces (with execution traces), Chakra traces, or the timeline
  // of a pipeline.
  std::vector<std::filesystem::path> places;
  std::optional<std::int64_t> step;  // N of ProfilerStep#N; nothing: the median step that all ranks have
  std::vector<std::int32_t> ranks;   // ranks to read; empty: all
  std::string ranks_from{};  // pattern of ranks in file names, "host{}_gpu"; empty: automatic (file_ranks.h)
  bool own_delays = false;   // small launch delays are taken from each operation instead of a common value
  bool smallest_handoff = false;  // latency between CPU threads is the smallest over ranks
  bool path_steps = false;        // also list all steps of the critical path
  unsigned threads = 0;           // for reading; 0: one per hardware thread
  TrainingBudget budget;          // cost of the training at the simulated step time
  std::optional<double> samples_per_step, tokens_per_step;  // of all ranks, if known
  SpreadRequest spread;                                     // results are in Replayed::simulated
  ProgressReport progress{};            // called while traces are read (trace/read_progress.h)
  std::filesystem::path timeline{};     // as in PredictRequest
  bool timeline_with_measured = false;  // also draw the recorded times
  bool pictures = false;                // also fill Replayed::pictures
  KeepStep keeps{};                     // receives the step for step_time()
};

// A recorded step under changed conditions: another machine, batch, number type, overlap.
struct PredictTraceRequest {
  // As for a replay. Execution traces without profiler traces are enough if the platform has host overheads.
  // For Chakra traces, recorded durations are kept (or scaled, if `recorded_on` is given), and the platform
  // prices the other operations.
  std::vector<std::filesystem::path> places;
  std::optional<std::int64_t> step;
  std::vector<std::int32_t> ranks;
  std::string ranks_from{};
  // The target: name or file of a platform. Empty: the machine that recorded.
  std::string platform{};
  // The platform of the recording machine. Empty: the built-in platform with its GPU.
  std::string recorded_on{};
  // Times of GPU work: "recorded"; "models" of the platform; or "ratio", the recorded time multiplied by the
  // modelled time on the platform over the modelled time on the recording GPU. Empty: "ratio" with a
  // platform, "recorded" without.
  std::string kernels{};
  std::string host = "recorded";     // times of CPU work: "recorded" or "overheads" (of the platform)
  std::vector<std::string> what_if;  // changes such as "gemm=2x", "host=1.5x" (predict/what_if.h)
  bool median_ranks = false;         // all ranks are as fast as the median rank
  bool barrier = false;              // all ranks begin the step at the same time
  // Samples per rank: of the prediction (0: as recorded), and of the recording (0: inferred from shapes); see
  // changed_work.h.
  std::int64_t batch = 0, recorded_batch = 0;
  // Takes the shapes of another step of the same traces, for packed or bucketed sequences (other_shapes.h).
  std::optional<std::int64_t> shapes_of_step{};
  // A recording of the same ranks with another batch. The difference shows which work scales (batch_pair.h).
  // Needs recorded_batch and second_batch.
  std::vector<std::filesystem::path> second_places{};
  std::int64_t second_batch = 0;
  std::string dtype{};                   // type of GEMMs: "bf16", "fp16", "tf32", "fp32"; empty: as recorded
  std::int64_t data_parallel_ranks = 0;  // 0: as recorded
  // Overlap of transfers with computation ("none", "perfect"), or of the host with the GPU ("host"); see
  // overlap_change.h. Empty: as recorded.
  std::string overlap{};
  // Activations to recompute: "full" or "selective" (predict/added_recomputation.h); empty: as recorded.
  std::string recompute{};
  double bucket_mb = 0;    // size of gradient buckets in MiB (predict/gradient_buckets.h); 0: as recorded
  std::string links_of{};  // platform with the links for transfers; empty: those of `platform`
  std::vector<std::string> rank_platforms{};  // "2=fpga.json": rank 2 computes on that platform
  bool path_steps = false;                    // also list all steps of the critical path
  std::size_t collectives = 256;              // number of most expensive collectives to list; 0: all
  unsigned threads = 0;                       // for reading; 0: one per hardware thread
  TrainingBudget budget;                      // asks for duration and cost of the training
  std::optional<double> samples_per_step, tokens_per_step;  // of all ranks, if known
  SpreadRequest spread;
  ProgressReport progress{};
  std::filesystem::path timeline{}, chakra{};  // as in PredictRequest
  bool chakra_per_rank = false;
  KeepStep keeps{};
};

// The result of a replay.
struct Replayed {
  Forecast simulated, measured;
  // The detailed comparison (analyze/replay_analysis.h); not part of the stable interface. Null for traces
  // without a measured step, such as Chakra traces; `measured` is empty then.
  std::shared_ptr<const ReplayAnalysis> analysis;
  StepPictures pictures;  // of the simulated step, if requested
};

// A prediction of the step that a training log describes.
struct PredictLogRequest {
  std::filesystem::path log;
  // `job` adds what the log does not contain, and overrides what it does. An empty `platform` means the
  // built-in one with the GPU of the log, or dgx-h100 if the log names none.
  PredictRequest request;
  // If `job` describes another step than the log, the logged step anchors the forecast of that step.
  bool anchors = true;
  bool pictures = false;  // also fill the sensitivities and pictures
  ProgressReport progress{};
};
// The forecast and the log, with their comparison.
struct PredictedLog {
  Forecast forecast, measured;  // measured: from the log (kind "log")
  Comparison comparison;        // side a is the forecast, side b the log
  Sensitivity sensitivity;      // empty, like the pictures, unless requested
  StepPictures pictures;
  [[nodiscard]] ForecastIllustrations illustrations() const { return {&sensitivity, &pictures}; }
  // The contents of the log (logs/logged_run.h); not part of the stable interface.
  std::shared_ptr<const LoggedRun> run;
};

// A forecast with the additional content of a report: report_html(forecast_document(answer.forecast,
// answer.illustrations())).
struct Report {
  Forecast forecast;
  Sensitivity sensitivity;
  StepPictures pictures;
  [[nodiscard]] ForecastIllustrations illustrations() const { return {&sensitivity, &pictures}; }
};
using Sensitive = Report;  // its pictures are empty

// A forecast of a step of post-training, with sensitivities.
struct RlReport {
  RlForecast forecast;
  Sensitivity sensitivity;
};

// Runs a shard of a sweep (sweep/sweep_spec.h) and writes its rows to a folder.
//
//   STEPCAST_ASSIGN(const SweepSpec spec, read_sweep("sweep.toml"));
//   STEPCAST_ASSIGN(const SweepReport report, session.sweep(spec, {.folder = "out"}));
//
// All shards may write to one folder at the same time. A killed run loses only the most recent rows; the same
// call continues it.
struct SweepRun {
  std::filesystem::path folder;
  SweepShard shard{};
  unsigned threads = 0;  // 0: one per hardware thread; does not affect the rows
  bool extends = false;  // allows that the spec got more points since the folder was created
  // Called after each point with the number of finished points of the shard; never concurrently.
  std::function<void(std::size_t done, std::size_t all)> progress{};
};

struct SweepReport {
  std::size_t n_points = 0;  // points of the shard
  std::size_t n_before = 0;  // points with a row from earlier runs
  // Points of this run, and the file with the rows of the shard.
  std::size_t n_run = 0;
  std::filesystem::path file{};
};

// Decides during training whether embedding tables should move, from the lookups of a new batch.
//
//   STEPCAST_ASSIGN(Resharder resharder, Resharder::create({.model = "dlrm.toml", .n_gpus = 8}));
//   STEPCAST_ASSIGN(const Resharded next, resharder.decide(reuse));   // reuse_factors() for each table
//   next.moved_tables, next.kept_step_us, next.step_us
//
// A decision takes less than a millisecond for dozens of tables. Not thread-safe.
class Resharder {
 public:
  // Starts with the plan of the request, or with a searched one. Errors: as for a prediction; a model that
  // keeps its rows on all ranks.
  [[nodiscard]] static Result<Resharder> create(const PredictDlrmRequest& request);
  Resharder(Resharder&&) noexcept;
  Resharder& operator=(Resharder&&) noexcept;
  ~Resharder();

  // The plan after the last decision.
  [[nodiscard]] const ShardingPlan& plan() const;
  // Decides for a batch, given reuse factors of all tables. Errors: another number of tables.
  [[nodiscard]] Result<Resharded> decide(const std::vector<ReuseFactors>& batch);

 private:
  struct Impl;
  explicit Resharder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A platform for layout searches (plan/layout_plan.h).
struct SearchedPlatform {
  std::string name;  // the node's name, if only a GPU was named
  std::shared_ptr<const Platform> platform;
  std::shared_ptr<const StepModel> steps;  // shared by all searches, with their prices: PlanRequest::steps
};

// Answers all requests. Loads platforms once and caches prices and chosen layouts between calls.
class Session {
 public:
  Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // The forecast of a described step. Errors: a job that cannot be resolved, a platform that cannot be read,
  // a layout that cannot run on the platform, a timeline that cannot be written.
  [[nodiscard]] Result<Forecast> predict(const PredictRequest& request) const;

  // The step time of predict(), exactly, without the other parts of the forecast; about ten times as fast for
  // a new layout. Nothing for requests that need more than the time: several pools, expert load, a budget,
  // output files. Errors: as predict().
  [[nodiscard]] Result<std::optional<StepTime>> step_time(const PredictRequest& request) const;

  // The forecast of a recommendation model. Errors: a model or plan that cannot be read or does not fit the
  // GPUs. Tables that exceed memory are a result, not an error.
  [[nodiscard]] Result<Forecast> predict(const PredictDlrmRequest& request) const;

  // The settings with which predict() would complete the layout of the job. Empty if the layout is complete.
  // Errors: as predict().
  [[nodiscard]] Result<CompletingSettings> completing_settings(const PredictRequest& request) const;

  // The forecast of a step of post-training. Errors: contradictory settings, a model that cannot generate, a
  // key-value cache that fits no engine.
  [[nodiscard]] Result<RlForecast> predict(const PredictRlRequest& request) const;

  // The forecast and comparison for a log. Errors: a log that cannot be read, has no step time, or has no
  // settings while `job` is empty; errors of predict().
  [[nodiscard]] Result<PredictedLog> predict(const PredictLogRequest& request) const;

  // Forecasts on other numbers of GPUs and with other batches, in the given order. Errors: those of predict()
  // for the first failing point.
  [[nodiscard]] Result<std::vector<ScalingPoint>> predict_series(const PredictRequest& request,
                                                                 const StepSeries& series) const;

  // The same for recommendation models, with batches per rank. An empty axis keeps the value of the request.
  [[nodiscard]] Result<std::vector<ScalingPoint>> predict_series(
      const PredictDlrmRequest& request, std::span<const std::int64_t> gpus,
      std::span<const std::int64_t> batches_per_rank) const;

  // The forecast of a recorded step. Errors: no profiler trace, a platform that cannot be read, no platform
  // with the recording GPU where its prices are needed, missing host overheads of the platform.
  [[nodiscard]] Result<Forecast> predict(const PredictTraceRequest& request) const;

  // The step time of predict(), exactly, for a step that was kept. Files that the request names are not read.
  // Errors: as predict().
  [[nodiscard]] Result<StepTime> step_time(const PredictTraceRequest& request, const KeptStep& step) const;

  // Forecasts with sensitivities: how much the step shortens if a resource (a kernel class, links, host,
  // batch) becomes faster.
  [[nodiscard]] Result<Sensitive> sensitivity(const PredictRequest& request) const;
  [[nodiscard]] Result<Sensitive> sensitivity(const PredictDlrmRequest& request) const;
  [[nodiscard]] Result<Sensitive> sensitivity(const PredictTraceRequest& request) const;
  // The split of GPUs between training and generation is kept.
  [[nodiscard]] Result<RlReport> sensitivity(const PredictRlRequest& request) const;

  // Forecasts with everything that a report shows: operations of a layer, pictures, sensitivities. Errors: as predict().
  [[nodiscard]] Result<Report> report(const PredictRequest& request) const;
  [[nodiscard]] Result<Report> report(const PredictDlrmRequest& request) const;
  [[nodiscard]] Result<Report> report(const PredictTraceRequest& request) const;

  // The platform and its cached prices for layout searches. `n_gpus`: GPUs of the job, which decides whether
  // the name of a GPU means its usual node. Errors: a platform that cannot be read.
  [[nodiscard]] Result<SearchedPlatform> searched_platform(const std::string& name,
                                                           std::optional<std::int64_t> gpus_per_node,
                                                           std::int64_t n_gpus) const;

  // Simulates a recorded step and compares it with the recording. Errors: no usable traces, options that this
  // kind of traces does not support.
  [[nodiscard]] Result<Replayed> replay(const ReplayRequest& request) const;

  // All requested shardings, the best first; sharding_text() and sharding_json() print them. Errors: a model,
  // table or plan that cannot be read or does not fit the GPUs. If none fits into memory, that is a result.
  [[nodiscard]] Result<ShardingComparison> shard(const ShardRequest& request) const;

  // The row of one sweep point (report/sweep_document.h, docs/sweeps.md) without a line break, for external
  // executors. A point that cannot run gives a row with the reason; only failures of the machine are errors.
  [[nodiscard]] Result<std::string> run(const SweepPoint& point) const;
  // Runs all points of a shard that have no row yet. Errors: a folder of another sweep, or one that cannot be written.
  [[nodiscard]] Result<SweepReport> sweep(const SweepSpec& spec, const SweepRun& run) const;

 private:
  [[nodiscard]] Result<std::string> answer(const SweepPoint& point) const;
  struct Extras {  // additional outputs; null: not wanted
    Sensitivity* sensitivity = nullptr;
    StepPictures* pictures = nullptr;
    ResolvedJob* job = nullptr;           // with the chosen layout
    JobSettings* chosen = nullptr;        // settings that complete an open layout
    ScalingPoint* point = nullptr;        // all but its forecast
    std::optional<double> measured_ms{};  // measured step of a log, for Forecast::measured_check
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
