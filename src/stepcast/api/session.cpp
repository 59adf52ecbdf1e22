#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/analyze/step_sensitivity.h"
#include "stepcast/analyze/step_spread.h"
#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/parallel.h"
#include "stepcast/calibrate/overhead_fit.h"
#include "stepcast/calibrate/published_overheads.h"
#include "stepcast/describe/layout_choice.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/trace_changes.h"
#include "stepcast/predict/trace_memory.h"
#include "stepcast/predict/trace_prediction.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/chakra_export.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/trace/graph_program.h"
#include "stepcast/trace/pipeline_program.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/recorded_steps.h"
#include "stepcast/trace/trace_set.h"
#include "stepcast/workload/memory.h"

namespace stepcast {

namespace {

// A platform with the prices of its operations.
struct PricedPlatform {
  std::shared_ptr<const Platform> platform;
  StepModel steps;  // refers to *platform
};

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr std::int64_t kUsualTensorParallel = 8;  // even where a rack of 72 GPUs is one node

std::string filling(const MemoryForecast& memory) {
  return fmt::format("{:.1f} of {:.1f} GiB", memory.peak().value() / kGiB, memory.available.value() / kGiB);
}

LayoutSearch layouts_of(const Job& asked, const ResolvedJob& job, const Platform& platform) {
  Job with_gpus = asked;
  with_gpus.n_gpus = job.n_gpus.value_or(job.layout.world_size());
  const std::int64_t in_node = platform.node.gpus_per_node;
  return {std::move(with_gpus),
          {.memory = platform.device.memory_size, .gpus_per_node = std::min(in_node, kUsualTensorParallel)}};
}

// What somebody asked for who did not say how it is spread: in the usual way that fits.
void fill_in_layout(const Job& asked, const Platform& platform, ResolvedJob& job) {
  const LayoutSearch layouts = layouts_of(asked, job, platform);
  std::optional<LayoutChoice> chosen = layouts.usual();
  const bool fits = chosen.has_value();
  if (!fits) chosen = layouts.smallest();
  if (!chosen || chosen->flags.empty()) return;
  job = std::move(chosen->job);
  job.notes.push_back(fmt::format("layout not given: {} ({}, {} of memory)", chosen->flags,
                                  fits ? "the least that fits" : "nothing usual fits, this needs least",
                                  filling(chosen->memory)));
}

// Nobody accumulates over so many; each of them is a row of tasks in the Program of the step.
Status check_micro_batches(const Layout& layout) {
  constexpr std::int64_t kMost = 8192;
  if (layout.micro_batches() <= kMost) return Ok{};
  return Error{fmt::format("{} micro-batches per step", layout.micro_batches())}
      .expected(fmt::format("at most {}", kMost))
      .advice(
          "global_batch_sequences (--gbs) counts sequences, not tokens; or raise the micro-batch size or the "
          "GPUs");
}

// What the memory forecast takes away from the GPU and the time does not charge the host for.
void note_offload(const Layout& layout, std::vector<std::string>& notes) {
  if (layout.optimizer.cpu_offload) {
    notes.emplace_back(
        "optimizer on the host: its update there and the copies to and from the GPUs are priced one behind "
        "the other, "
        "at an assumed rate of the host's memory");
  }
  if (layout.sharding.parameter_offload) {
    notes.emplace_back(
        "weights on the host: fetching them in every pass is taken to hide behind computation; the step is a "
        "lower "
        "bound");
  }
}

// bf16 is the default, and older GPUs have no units for it.
void note_types(DType compute, const Device& device, std::vector<std::string>& notes) {
  if (compute == DType::fp32 || compute == DType::tf32 || device.peak(compute) || !device.peak(DType::fp16))
    return;
  notes.push_back(
      fmt::format("{} has no matrix units for {}: products run several times slower than in fp16; say "
                  "--dtype fp16",
                  device.name, to_string(compute)));
}

// The nearest layout that fits, predicted to be sure.
std::optional<std::string> nearest_that_fits(const Job& asked, const ResolvedJob& job,
                                             const Platform& platform, StepModel& steps) {
  constexpr std::size_t kMost = 4;  // to predict until one can run on the platform
  const LayoutSearch layouts = layouts_of(asked, job, platform);
  const auto described = [&](const LayoutChoice& choice) -> std::optional<std::string> {
    const Result<StepPrediction> step = steps.predict(choice.job.model, choice.job.layout);
    if (!step) return std::nullopt;
    return fmt::format("{} ({}, {:.1f} ms)", choice.flags, filling(choice.memory),
                       step->step.time.value() / 1e3);
  };
  for (const LayoutChoice& choice : layouts.nearest(kMost)) {
    if (std::optional<std::string> text = described(choice)) return text;
  }
  const std::optional<LayoutChoice> larger = layouts.on_more_gpus();
  return larger ? described(*larger) : std::nullopt;
}

// A GPU by its own name stands for the node that it is usually sold in where there are several of it.
Result<std::string> node_of(const std::string& name, const Platform& platform, const ResolvedJob& job,
                            std::vector<std::string>& notes) {
  const std::int64_t n_gpus = job.n_gpus.value_or(job.layout.world_size());
  if (n_gpus < 2 || platform.node.gpus_per_node > 1 || platform.node.network) return name;
  Result<std::string> node = usual_node_of(platform.device.name);
  if (!node) return name;
  notes.push_back(fmt::format("{} is a GPU: taken in a {}, its usual node", name, *node));
  return node;
}

// One rank of every class: the others do the same.
Status write_step_timeline(const OutputFile& file, const PredictedStep& step) {
  Program program = step.program;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) program.set_multiplicity(RankClassId{c}, 1);
  const FlatProgram flat{program};
  return write_perfetto(file, flat, step.prices.costs, TaskTimes::simulated(flat, step.timeline));
}

// Looked at before the work begins, so that nobody waits in vain.
Result<std::optional<OutputFile>> output_at(const std::filesystem::path& file,
                                            const std::vector<std::filesystem::path>& inputs) {
  if (file.empty()) return std::optional<OutputFile>{};
  STEPCAST_ASSIGN(OutputFile output, OutputFile::at(file, inputs));
  return std::optional<OutputFile>{std::move(output)};
}

std::vector<std::filesystem::path> files_of(const Job& job, const Platform& platform) {
  std::vector<std::filesystem::path> files = platform.files;
  files.emplace_back(job.model);
  if (job.torchtitan) files.emplace_back(job.torchtitan->name);
  if (job.deepspeed) files.emplace_back(job.deepspeed->name);
  return files;
}

Result<KernelGround> kernel_ground(const PredictTraceRequest& request) {
  if (request.kernels.empty()) {
    return request.platform.empty() ? KernelGround::recorded : KernelGround::ratio;
  }
  for (const KernelGround ground : {KernelGround::recorded, KernelGround::models, KernelGround::ratio}) {
    if (request.kernels == to_string(ground)) return ground;
  }
  return Error::at("", "kernels")
      .found(fmt::format("`{}`", request.kernels))
      .expected("recorded, models or ratio");
}

Result<HostGround> host_ground(const PredictTraceRequest& request) {
  for (const HostGround ground : {HostGround::recorded, HostGround::overheads}) {
    if (request.host == to_string(ground)) return ground;
  }
  return Error::at("", "host").found(fmt::format("`{}`", request.host)).expected("recorded or overheads");
}

// What one step needs, unless something is learned from the others.
template <class Request>
TraceSetOptions trace_set_options(const Request& request, bool whole = false) {
  TraceSetOptions options{.ranks = request.ranks, .threads = request.threads};
  options.one_step = !whole && !request.spread.all_steps && request.spread.scenarios == 0;
  options.step = request.step;
  options.progress = request.progress;
  return options;
}

std::vector<UntimedRank> untimed_ranks(const std::vector<ExecutionTrace>& traces) {
  std::vector<UntimedRank> ranks;
  for (const ExecutionTrace& trace : traces) ranks.push_back({&trace, *trace.rank, 0});
  return ranks;
}

struct PipelineStep {
  RecordedProgram program;
  std::int64_t number = 0;
};

// The step asked for, else the last, with the launch delays of all others.
Result<PipelineStep> pipeline_step(const TraceListing& listing, std::optional<std::int64_t> asked,
                                   const std::vector<std::int32_t>& ranks) {
  if (listing.timelines.size() > 1) {
    return Error::at(listing.name,
                     fmt::format("{} timelines of pipelines are here", listing.timelines.size()))
        .advice("name one of them: each holds all ranks of a job");
  }
  if (!ranks.empty()) {
    return Error::at(listing.timelines.front().string(), "a timeline of a pipeline is replayed as a whole")
        .advice("leave --ranks out");
  }
  STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline(listing.timelines.front()));
  PipelineStep step;
  step.number = asked.value_or(timeline.steps.back());
  std::vector<std::int64_t> others = timeline.steps;
  std::erase(others, step.number);
  STEPCAST_ASSIGN(step.program,
                  pipeline_program(timeline, step.number, learn_launch_delays(timeline, others)));
  step.program.notes.push_back(
      others.empty()
          ? std::string{"one step alone: launch delays are not known and count as 0"}
          : fmt::format("launch delays are medians of the other {} steps of the file", others.size()));
  return step;
}

// The GPU that recorded, as the first trace that names one has it.
std::string recorded_device(const TraceSet& traces) {
  for (const RecordedRank& rank : traces.ranks) {
    if (!rank.devices.empty() && !rank.devices.front().name.empty()) return rank.devices.front().name;
  }
  return {};
}

Result<std::shared_ptr<const Platform>> platform_that_recorded(const TraceSet& traces) {
  const std::string gpu = recorded_device(traces);
  Result<PlatformChoice> choice = platform_for(
      {.name = {}, .gpu = gpu, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
  if (!choice.ok()) {
    return Error{"no platform has the GPU that recorded the traces"}
        .found(gpu.empty() ? "no name of a GPU" : fmt::format("\"{}\"", gpu))
        .advice(
            "name one that stands for it with --recorded-on, or take the times of models with --kernels "
            "models");
  }
  return std::make_shared<const Platform>(std::move(choice->platform));
}

// What the published algorithm has no place for.
Status check_published(const PredictTraceRequest& request) {
  const auto refuse = [](std::string_view flag) {
    return Error{
        fmt::format("--published-algorithm goes by its own rules; {} changes something it does not have",
                    flag)}
        .advice("leave one of the two out");
  };
  if (!request.kernels.empty() && request.kernels != "models") return refuse("--kernels");
  if (!request.what_if.empty()) return refuse("--what-if");
  if (request.median_ranks) return refuse("--like-median-rank");
  if (request.batch > 0) return refuse("--batch");
  if (!request.dtype.empty()) return refuse("--dtype");
  if (request.data_parallel_ranks > 0) return refuse("--data-parallel-ranks");
  if (!request.overlap.empty()) return refuse("--overlap");
  if (request.bucket_mb > 0) return refuse("--bucket-size-mb");
  if (!request.recompute.empty()) return refuse("--recompute");
  if (!request.links_of.empty()) return refuse("--links-of");
  if (!request.rank_platforms.empty()) return refuse("--rank-platform");
  return Ok{};
}

// What traces of that kind do not hold, flag by flag: the first that was asked for.
struct Refusal {
  std::string_view flag;
  bool asked = false;
};
Status refuse_first(std::string_view kind, std::string_view lacks, std::string_view advice,
                    std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    if (!refusal.asked) continue;
    return Error{fmt::format("{} {}, which {} would need", kind, lacks, refusal.flag)}.advice(
        std::string{advice});
  }
  return Ok{};
}

Status check_pipeline(const PredictTraceRequest& request, const std::filesystem::path& file) {
  Status operators = refuse_first(
      "a timeline of a pipeline", "names no operators and no kernels",
      "leave it out; --what-if, --overlap, --like-median-rank, --step and --scenarios change what is there",
      {{"--second-trace", !request.second_places.empty()},
       {"--published-algorithm", request.published_algorithm},
       {"--kernels", !request.kernels.empty() && request.kernels != "recorded"},
       {"--host overheads", request.host != "recorded"},
       {"--recorded-on", !request.recorded_on.empty()},
       {"--batch", request.batch > 0},
       {"--dtype", !request.dtype.empty()},
       {"--data-parallel-ranks", request.data_parallel_ranks > 0},
       {"--bucket-size-mb", request.bucket_mb > 0},
       {"--recompute", !request.recompute.empty()},
       {"--links-of", !request.links_of.empty()},
       {"--rank-platform", !request.rank_platforms.empty()}});
  if (!operators.ok()) return std::move(operators).error().in_file(file.string());
  if (request.spread.all_steps) {
    return Error{"--all-steps is for traces of PyTorch"}
        .in_file(file.string())
        .advice("`stepcast replay --step N` takes the steps of a pipeline one by one");
  }
  return Ok{};
}

Status check_chakra(const PredictTraceRequest& request) {
  return refuse_first("Chakra traces hold", "one step without marks and no operators of PyTorch",
                      "leave it out, or give profiler traces of the same ranks",
                      {{"--published-algorithm", request.published_algorithm},
                       {"--second-trace", !request.second_places.empty()},
                       {"--step", request.step.has_value()},
                       {"--all-steps", request.spread.all_steps}});
}

Status check_untimed(const PredictTraceRequest& request) {
  return refuse_first("execution traces alone", "hold no times and one step",
                      "give the profiler traces of the same ranks, too, or leave it out",
                      {{"--kernels", !request.kernels.empty() && request.kernels != "models"},
                       {"--recorded-on", !request.recorded_on.empty()},
                       {"--second-trace", !request.second_places.empty()},
                       {"--step", request.step.has_value()},
                       {"--all-steps", request.spread.all_steps}});
}

// Samples of all ranks per step: what was said, else the batch of every rank that was asked for.
std::optional<double> samples_of(const PredictTraceRequest& request, const TracePrediction& prediction) {
  if (request.samples_per_step || request.batch == 0) return request.samples_per_step;
  const auto recorded = static_cast<std::int64_t>(prediction.recorded.facts.size());
  return static_cast<double>(request.batch) *
         static_cast<double>(request.data_parallel_ranks > 0 ? request.data_parallel_ranks : recorded);
}

// How the step grows with one micro-batch more on every rank.
void add_batch_sensitivity(const ResolvedJob& job, StepModel& steps, Sensitivity& sensitive) {
  Layout more = job.layout;
  const std::int64_t now = more.micro_batches();
  more.batch.global_batch_sequences += more.batch.global_batch_sequences / std::max<std::int64_t>(1, now);
  const Result<StepPrediction> before = steps.predict(job.model, job.layout);
  const Result<StepPrediction> after = steps.predict(job.model, more);
  if (!before || !after || more.micro_batches() <= now) return;
  add_batch(sensitive, static_cast<double>(now), static_cast<double>(more.micro_batches()),
            before->step.time.value() * 1e-3, after->step.time.value() * 1e-3);
}

// What of the request stands in options alone; platforms and traces are loaded apart.
Status read_changes(const PredictTraceRequest& request, TracePredictionOptions& how) {
  const auto refuse = [](std::string_view flag, std::string found, std::string expected) {
    return Error::at("", std::string{flag}).found(std::move(found)).expected(std::move(expected));
  };
  constexpr std::int64_t kMostSamples = 100'000'000, kMostRanks = 1'000'000;
  for (const auto& [flag, batch] :
       {std::pair{"--batch", request.batch}, std::pair{"--recorded-batch", request.recorded_batch},
        std::pair{"--recorded-batch", request.second_batch}}) {
    if (batch < 0 || batch > kMostSamples)
      return refuse(flag, fmt::format("{}", batch), "samples per rank, from 1 on");
  }
  if (request.data_parallel_ranks < 0 || request.data_parallel_ranks > kMostRanks) {
    return refuse("--data-parallel-ranks", fmt::format("{}", request.data_parallel_ranks), "from 1 on");
  }
  constexpr double kLargestBucketMb = 1e6;
  if (!(request.bucket_mb >= 0 && request.bucket_mb <= kLargestBucketMb)) {
    return refuse("--bucket-size-mb", fmt::format("{:g}", request.bucket_mb), "MiB above 0");
  }
  how.bucket_mb = request.bucket_mb;
  if (!request.recompute.empty() && request.recompute != "full")
    return refuse("--recompute", fmt::format("`{}`", request.recompute), "full");
  how.recompute = !request.recompute.empty();
  if (request.batch > 0) how.change.batch = BatchChange{request.recorded_batch, request.batch};
  if (request.batch == 0 && (request.recorded_batch > 0 || !request.second_places.empty())) {
    return Error{"--recorded-batch and --second-trace say what a batch is predicted from"}.advice(
        "name the batch to predict with --batch");
  }
  if (request.second_places.empty() != (request.second_batch == 0) ||
      (!request.second_places.empty() && request.recorded_batch == 0)) {
    return Error{"two recordings need two recorded batches"}.advice(
        "as in --trace A --second-trace B --recorded-batch 32,64 --batch 128");
  }
  how.second_batch = request.second_batch;
  how.change.data_parallel_ranks = request.data_parallel_ranks;
  if (!request.dtype.empty()) {
    how.change.dtype = parse_dtype(request.dtype);
    const DType type = how.change.dtype;
    if (type != DType::bf16 && type != DType::fp16 && type != DType::fp32 && type != DType::tf32)
      return refuse("--dtype", fmt::format("`{}`", request.dtype),
                    "bf16, fp16, tf32 or fp32 for recorded work");
  }
  for (const OverlapChange overlap : {OverlapChange::none, OverlapChange::perfect}) {
    if (request.overlap == to_string(overlap)) how.overlap = overlap;
  }
  if (!request.overlap.empty() && how.overlap == OverlapChange::as_recorded)
    return refuse("--overlap", fmt::format("`{}`", request.overlap), "none or perfect");
  return Ok{};
}

// "2=fpga.json"
Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::int32_t rank = -1;
  const auto read = std::from_chars(text.data(), text.data() + std::min(equals, text.size()), rank);
  if (equals == std::string::npos || equals + 1 == text.size() || read.ec != std::errc{} ||
      read.ptr != text.data() + equals || rank < 0) {
    return Error::at("", "--rank-platform")
        .found(fmt::format("`{}`", text))
        .expected("RANK=PLATFORM, such as 2=fpga.json");
  }
  return std::pair{rank, text.substr(equals + 1)};
}

// What the step takes of a GPU's memory at the predicted batch, from the tensors of the execution traces: the rank that
// takes most. Nothing where there are none.
std::optional<ForecastMemory> memory_of(const TraceSet& traces, const Platform* platform, double batch_ratio,
                                        const std::vector<std::vector<SequenceRange>>& recomputed) {
  // What a CUDA context and the libraries take beside the tensors: assumed.
  constexpr double kContextGiB = 1;
  std::optional<ForecastMemory> memory;
  for (std::size_t r = 0; r < traces.execution_traces.size(); ++r) {
    const std::optional<ExecutionTrace>& trace = traces.execution_traces[r];
    if (!trace) continue;
    const TraceMemory of_rank =
        trace_memory(*trace, r < recomputed.size() ? recomputed[r] : std::vector<SequenceRange>{});
    if (of_rank.at(1).value() <= 0) continue;
    ForecastStageMemory parts;
    parts.weights_GiB = of_rank.persistent.value() / kGiB;
    parts.gradients_GiB = of_rank.gradients.value() / kGiB;
    parts.activations_GiB = of_rank.activations.value() * batch_ratio / kGiB;
    parts.reserve_GiB = kContextGiB;
    parts.total_GiB = of_rank.at(batch_ratio).value() / kGiB + kContextGiB;
    if (memory && memory->peak_memory_GiB >= parts.total_GiB) continue;
    memory.emplace();
    memory->stages = {parts};
    memory->peak_memory_GiB = parts.total_GiB;
  }
  if (!memory || platform == nullptr || platform->device.memory_size.value() <= 0) return std::nullopt;
  memory->available_GiB = platform->device.memory_size.value() / kGiB;
  memory->margin_GiB = memory->available_GiB - memory->peak_memory_GiB;
  memory->verdict = to_string(memory->margin_GiB < 0 ? MemoryVerdict::does_not_fit
                              : memory->margin_GiB < 0.05 * memory->available_GiB ? MemoryVerdict::tight
                                                                                  : MemoryVerdict::fits);
  return memory;
}

// By the published algorithm, from execution traces alone: with the platform's overheads.
Result<TracePrediction> published_of(const std::vector<ExecutionTrace>& traces,
                                     const TracePredictionOptions& how) {
  HostOverheads overheads;
  if (how.platform != nullptr) {
    STEPCAST_ASSIGN(overheads, HostOverheads::of(*how.platform));
  }
  return predict_published(untimed_ranks(traces), overheads, how);
}

// The same with the overheads of the profiler traces beside them, extracted by the published rules.
Result<TracePrediction> published_of(const TraceSet& traces, const TracePredictionOptions& how) {
  STEPCAST_ASSIGN(const RecordedProgram recorded, rebuild_program(traces.inputs(), how.rebuild));
  OverheadSamples samples;
  std::vector<UntimedRank> ranks;
  for (std::size_t r = 0; r < traces.ranks.size(); ++r) {
    const RecordedStepFacts& facts = recorded.facts[r];
    if (!traces.execution_traces[r]) {
      return Error::at(recorded.files[r].profiler, "", "no execution trace belongs to this profiler trace")
          .advice(
              "the published algorithm reads the operators from execution traces; record them with "
              "ExecutionTraceObserver");
    }
    samples.add(published_overheads(traces.ranks[r]));
    ranks.push_back(
        {&*traces.execution_traces[r], facts.rank, facts.step_us.start_us, facts.step_us.length_us()});
  }
  STEPCAST_ASSIGN(const HostOverheads overheads, published_host_overheads(samples));
  return predict_published(ranks, overheads, how);
}

Result<SpreadOptions> spread_options(const SpreadRequest& request, unsigned threads) {
  SpreadOptions options;
  options.all_steps = request.all_steps;
  options.scenarios = static_cast<std::size_t>(request.scenarios);
  options.seed = request.seed;
  options.threads = threads;
  STEPCAST_ASSIGN(options.jitter, parse_jitter(request.jitter));
  if (options.jitter.any() && options.scenarios == 0) {
    return Error{"jitter is what straggler scenarios are drawn from"}.advice("say how many with --scenarios");
  }
  return options;
}

// Inputs that are rebuilt step by step.
Result<std::vector<RecordedInput>> indexed_inputs(const TraceSet& traces, unsigned threads) {
  std::vector<RecordedInput> inputs = traces.inputs();
  STEPCAST_TRY(parallel_for(inputs.size(), threads, [&](std::size_t i) -> Status {
    inputs[i].index = index_trace(inputs[i]);
    return Ok{};
  }));
  return inputs;
}

// How many GPUs a node has where somebody says so: who asks, or the launcher of the job. A launcher counts those of a
// host, of which a node that is used in segments (a rack behind one switch) has several.
std::optional<std::int64_t> node_size(const Job& asked, const ResolvedJob& job, const Platform& platform) {
  if (asked.gpus_per_node) return asked.gpus_per_node;
  return platform.node.segment ? std::nullopt : job.gpus_per_node;
}

}  // namespace

// A StepModel serves one thread at a time: every call takes one that is free, or makes one, and leaves it for
// the next.
struct Session::Impl {
  Result<std::shared_ptr<const Platform>> platform(const std::string& name) {
    const std::scoped_lock lock{mutex};
    if (const auto found = platforms.find(name); found != platforms.end()) return found->second;
    STEPCAST_ASSIGN(Platform loaded, load_platform(name));
    auto shared = std::make_shared<const Platform>(std::move(loaded));
    platforms.emplace(name, shared);
    return shared;
  }

  // With nodes of so many GPUs; nothing: as the platform has.
  Result<std::unique_ptr<PricedPlatform>> take(const std::string& name,
                                               std::optional<std::int64_t> gpus_per_node) {
    {
      const std::scoped_lock lock{mutex};
      std::vector<std::unique_ptr<PricedPlatform>>& of_name = free[{name, gpus_per_node}];
      if (!of_name.empty()) {
        std::unique_ptr<PricedPlatform> taken = std::move(of_name.back());
        of_name.pop_back();
        return taken;
      }
    }
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> of_name, platform(name));
    if (gpus_per_node && of_name->node.gpus_per_node != *gpus_per_node) {
      Platform adapted = *of_name;
      std::string note;
      adapt_to({.gpus_per_node = *gpus_per_node}, adapted, note);
      STEPCAST_TRY(adapted.check());
      of_name = std::make_shared<const Platform>(std::move(adapted));
    }
    StepModel steps{*of_name};
    return std::make_unique<PricedPlatform>(PricedPlatform{std::move(of_name), std::move(steps)});
  }

  void give_back(const std::string& name, std::optional<std::int64_t> gpus_per_node,
                 std::unique_ptr<PricedPlatform> priced) {
    const std::scoped_lock lock{mutex};
    free[{name, gpus_per_node}].push_back(std::move(priced));
  }

  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Platform>> platforms;
  std::map<std::pair<std::string, std::optional<std::int64_t>>, std::vector<std::unique_ptr<PricedPlatform>>>
      free;
};

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Forecast> Session::predict(const PredictRequest& request) const { return predict(request, nullptr); }

Result<Forecast> Session::predict(const PredictTraceRequest& request) const {
  return predict(request, nullptr);
}

Result<Sensitive> Session::sensitivity(const PredictRequest& request) const {
  Sensitive result;
  STEPCAST_ASSIGN(result.forecast, predict(request, &result.sensitivity));
  return result;
}

Result<Sensitive> Session::sensitivity(const PredictTraceRequest& request) const {
  Sensitive result;
  STEPCAST_ASSIGN(result.forecast, predict(request, &result.sensitivity));
  return result;
}

Result<Forecast> Session::predict(const PredictRequest& request, Sensitivity* sensitive) const {
  STEPCAST_ASSIGN(ResolvedJob job, resolve(request.job));
  StepAssumptions assumptions;
  STEPCAST_TRY(apply_what_if(request.what_if, assumptions));
  std::vector<std::string> notes;
  STEPCAST_ASSIGN(std::shared_ptr<const Platform> as_shipped, impl_->platform(request.platform));
  STEPCAST_ASSIGN(const std::string name, node_of(request.platform, *as_shipped, job, notes));
  STEPCAST_ASSIGN(as_shipped, impl_->platform(name));
  const std::optional<std::int64_t> gpus_per_node = node_size(request.job, job, *as_shipped);
  STEPCAST_ASSIGN(std::unique_ptr<PricedPlatform> priced, impl_->take(name, gpus_per_node));
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline,
                  output_at(request.timeline, files_of(request.job, *priced->platform)));
  const bool is_open = leaves_layout_open(request.job);
  if (is_open) fill_in_layout(request.job, *priced->platform, job);
  STEPCAST_TRY(check_micro_batches(job.layout));
  StepModel& steps = priced->steps;
  steps.set_assumptions(assumptions);
  STEPCAST_ASSIGN(const PredictedStep step, predict_step(job.model, job.layout, steps));
  STEPCAST_ASSIGN(
      Forecast forecast,
      step_forecast({job.model, job.layout, *priced->platform, step, steps.pricer()},
                    {.explained = request.explained,
                     .published = request.published,
                     .forecast = {.collectives = request.collectives, .path_steps = request.path_steps}}));
  if (request.job.settings.expert_load) {
    Layout balanced = job.layout;
    balanced.layer.expert_imbalance = 1;
    STEPCAST_ASSIGN(const StepPrediction without, steps.predict(job.model, balanced));
    const double balanced_ms = without.step.time.value() / 1e3;
    forecast.expert_load = {.load = *request.job.settings.expert_load,
                            .busiest_over_mean = kept_imbalance(job.layout.layer),
                            .balanced_step_ms = balanced_ms,
                            .cost_ms = forecast.step_time_ms - balanced_ms};
  }
  notes.insert(notes.end(), job.notes.begin(), job.notes.end());
  if (as_shipped->node.gpus_per_node != priced->platform->node.gpus_per_node) {
    notes.push_back(fmt::format("nodes of {} GPUs as described; {} has {}",
                                priced->platform->node.gpus_per_node, name, as_shipped->node.gpus_per_node));
  }
  for (const std::string& problem : steps.pricer().kernels().model().skipped()) {
    notes.push_back(fmt::format("left out of the platform: {}", problem));
  }
  note_types(job.layout.layer.precision.compute, priced->platform->device, notes);
  note_offload(job.layout, notes);
  for (const std::string& setting : job.not_modelled) {
    notes.push_back(fmt::format("not modelled: {}", setting));
  }
  notes.insert(notes.end(), forecast.notes.begin(), forecast.notes.end());
  if (forecast.memory && forecast.memory->verdict == to_string(MemoryVerdict::does_not_fit)) {
    const std::optional<std::string> nearest = nearest_that_fits(request.job, job, *priced->platform, steps);
    notes.push_back(fmt::format("does not fit into the memory of {}; {}", priced->platform->device.name,
                                nearest ? "nearest that fits: " + *nearest : "nothing that was tried fits"));
  }
  forecast.notes = std::move(notes);
  STEPCAST_TRY(add_training(forecast, request.budget));
  if (sensitive != nullptr) {
    STEPCAST_ASSIGN(*sensitive, step_sensitivity(step));
    add_batch_sensitivity(job, steps, *sensitive);
  }
  if (timeline) STEPCAST_TRY(write_step_timeline(*timeline, step));
  if (!request.chakra.empty()) {
    const FlatProgram flat{step.program};
    STEPCAST_TRY(write_chakra(request.chakra, operation_graphs(flat, step.prices.costs),
                              files_of(request.job, *priced->platform)));
  }
  impl_->give_back(name, gpus_per_node, std::move(priced));
  return forecast;
}

Result<Forecast> Session::predict(const PredictTraceRequest& request, Sensitivity* sensitive) const {
  TracePredictionOptions how;
  STEPCAST_ASSIGN(how.kernels, kernel_ground(request));
  STEPCAST_ASSIGN(how.host, host_ground(request));
  STEPCAST_TRY(apply_what_if(request.what_if, how.assumptions));
  how.rebuild.step = request.step;
  how.median_ranks = request.median_ranks;
  how.published = request.published_algorithm;
  STEPCAST_TRY(read_changes(request, how));
  if (how.published) {
    STEPCAST_TRY(check_published(request));
    how.kernels = KernelGround::models;
    how.host = HostGround::overheads;
  }
  STEPCAST_ASSIGN(const TraceListing listing,
                  list_traces(request.places, {.ranks = request.ranks, .ranks_from = request.ranks_from}));
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, output_at(request.timeline, listing.files()));
  std::shared_ptr<const Platform> platform, recorded_on;
  if (!request.platform.empty()) {
    STEPCAST_ASSIGN(platform, impl_->platform(request.platform));
  }
  how.platform = platform.get();
  std::shared_ptr<const Platform> links;
  if (!request.links_of.empty()) {
    STEPCAST_ASSIGN(links, impl_->platform(request.links_of));
  }
  how.links = links.get();
  std::vector<std::shared_ptr<const Platform>> of_ranks;
  for (const std::string& text : request.rank_platforms) {
    STEPCAST_ASSIGN(const auto named, parse_rank_platform(text));
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> of_rank, impl_->platform(named.second));
    how.rank_platforms.push_back({named.first, of_rank.get()});
    of_ranks.push_back(std::move(of_rank));
  }
  const bool changed = changes_prices(how);
  STEPCAST_ASSIGN(const SpreadOptions spread, spread_options(request.spread, request.threads));
  std::vector<std::int64_t> steps;  // to predict each by itself, with `predict_step`
  SimulateStep predict_step;
  const auto forecast_of = [&](const TracePrediction& prediction, const std::string& name,
                               const std::vector<std::string>& notes) -> Result<Forecast> {
    const FlatProgram flat{prediction.recorded.program};
    const TaskTimes times = TaskTimes::simulated(flat, prediction.timeline);
    Forecast forecast =
        trace_forecast({.prediction = prediction,
                        .options = how,
                        .traces = name,
                        .samples_per_step = samples_of(request, prediction),
                        .tokens_per_step = request.tokens_per_step},
                       flat, times, {.collectives = request.collectives, .path_steps = request.path_steps});
    forecast.notes.insert(forecast.notes.end(), notes.begin(), notes.end());
    STEPCAST_TRY(add_training(forecast, request.budget));
    STEPCAST_TRY(add_spread(spread, steps, predict_step, prediction.recorded, prediction.costs, forecast));
    if (sensitive != nullptr) {
      STEPCAST_ASSIGN(*sensitive, trace_sensitivity(prediction, how, flat, times));
    }
    if (timeline) STEPCAST_TRY(write_perfetto(*timeline, flat, prediction.costs, times));
    if (!request.chakra.empty()) {
      STEPCAST_TRY(write_chakra(request.chakra,
                                operation_graphs(flat, prediction.costs, prediction.recorded.start_offset_us),
                                listing.files()));
    }
    return forecast;
  };
  if (listing.is_pipeline()) {
    STEPCAST_TRY(check_pipeline(request, listing.timelines.front()));
    if (platform != nullptr) {
      return Error{"a timeline of a pipeline names no work that another GPU could be asked for"}
          .in_file(listing.timelines.front().string())
          .advice("leave --platform out; --what-if nvlink=2x speeds its transfers up");
    }
    STEPCAST_ASSIGN(PipelineStep recorded, pipeline_step(listing, request.step, request.ranks));
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_recorded(std::move(recorded.program), how));
    return forecast_of(prediction, listing.name, {});
  }
  if (listing.is_chakra()) {
    STEPCAST_TRY(check_chakra(request));
    // The GPU that a Chakra trace comes from is not in the file.
    if (request.kernels.empty() && request.recorded_on.empty()) how.kernels = KernelGround::recorded;
    if (!request.recorded_on.empty()) {
      STEPCAST_ASSIGN(recorded_on, impl_->platform(request.recorded_on));
      how.recorded_on = recorded_on.get();
    }
    how.price_unrecorded = true;
    STEPCAST_ASSIGN(const std::vector<OperationGraph> graphs,
                    read_operation_graphs(listing, {.ranks = request.ranks, .threads = request.threads}));
    STEPCAST_ASSIGN(RecordedProgram recorded, graph_program(graphs));
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_recorded(std::move(recorded), how));
    return forecast_of(prediction, listing.name, {});
  }
  if (listing.profiler.empty() && !listing.execution.empty()) {
    STEPCAST_TRY(check_untimed(request));
    if (changed || how.recompute || how.overlap != OverlapChange::as_recorded) {
      return Error{"execution traces alone hold no times that other work could be relative to"}.advice(
          "give the profiler traces of the same ranks, too");
    }
    STEPCAST_ASSIGN(const std::vector<ExecutionTrace> traces,
                    read_execution_traces(listing, {.ranks = request.ranks, .threads = request.threads}));
    if (request.published_algorithm) {
      STEPCAST_ASSIGN(const TracePrediction prediction, published_of(traces, how));
      return forecast_of(prediction, listing.name, {});
    }
    how.kernels = KernelGround::models;
    how.host = HostGround::overheads;
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_untimed(untimed_ranks(traces), how));
    return forecast_of(prediction, listing.name, {});
  }
  STEPCAST_ASSIGN(const TraceSet traces,
                  read_trace_set(listing, trace_set_options(request, request.published_algorithm)));
  if (!request.recorded_on.empty()) {
    STEPCAST_ASSIGN(recorded_on, impl_->platform(request.recorded_on));
  } else if (how.kernels == KernelGround::ratio || changed ||
             (request.published_algorithm && how.platform == nullptr)) {
    STEPCAST_ASSIGN(recorded_on, platform_that_recorded(traces));
  } else if (how.recompute) {  // for its memory alone
    Result<std::shared_ptr<const Platform>> machine = platform_that_recorded(traces);
    if (machine) recorded_on = *machine;
  }
  if (request.published_algorithm) {
    if (how.platform == nullptr) how.platform = recorded_on.get();
    STEPCAST_ASSIGN(const TracePrediction prediction, published_of(traces, how));
    return forecast_of(prediction, traces.name, traces.notes);
  }
  how.recorded_on = recorded_on.get();
  std::optional<TraceSet> second;
  if (!request.second_places.empty()) {
    STEPCAST_ASSIGN(
        const TraceListing other,
        list_traces(request.second_places, {.ranks = request.ranks, .ranks_from = request.ranks_from}));
    STEPCAST_ASSIGN(second, read_trace_set(other, trace_set_options(request)));
    how.second_inputs = second->inputs();
  }
  STEPCAST_ASSIGN(const std::vector<RecordedInput> inputs, indexed_inputs(traces, request.threads));
  for (const std::int64_t step : common_steps(traces)) steps.push_back(step);
  predict_step = [&](std::int64_t step, const ShowStep& show) -> Status {
    TracePredictionOptions of_step = how;
    of_step.rebuild.step = step;
    STEPCAST_ASSIGN(const TracePrediction prediction, predict_trace(inputs, of_step));
    show(prediction.recorded, prediction.costs, prediction);
    return Ok{};
  };
  STEPCAST_ASSIGN(const TracePrediction prediction, predict_trace(inputs, how));
  STEPCAST_ASSIGN(Forecast forecast, forecast_of(prediction, traces.name, traces.notes));
  if (how.change.batch || how.recompute) {
    double batch_ratio = 1;
    if (how.change.batch) {
      const std::int64_t recorded_batch = request.recorded_batch > 0
                                              ? request.recorded_batch
                                              : batch_of(prediction.recorded).value_or(request.batch);
      batch_ratio = static_cast<double>(request.batch) / static_cast<double>(recorded_batch);
    }
    const Platform* machine = how.platform != nullptr ? how.platform : how.recorded_on;
    forecast.memory = memory_of(traces, machine, batch_ratio, prediction.recomputed);
    forecast.notes.emplace_back(
        forecast.memory
            ? "memory is that of the tensors that the execution trace names, and 1 GiB besides: what kernels "
              "and the allocator take on top is not in it"
        : machine == nullptr ? "memory is not known: no platform has the GPU that recorded"
                             : "memory is not known: no execution trace names the tensors of the step");
    if (const auto before = memory_of(traces, machine, batch_ratio, {}); how.recompute && before) {
      forecast.notes.push_back(fmt::format(
          "activations take {:.2f} GiB with recomputation and {:.2f} without",
          forecast.memory->stages.front().activations_GiB, before->stages.front().activations_GiB));
    }
  }
  return forecast;
}

namespace {

// With the comparison, what `add_to` adds to the simulated step, the training that was asked for, and the time line.
Result<Replayed> analysed(const ReplayRequest& request, const std::optional<OutputFile>& timeline,
                          const TraceSet& traces, const Replay& result,
                          const std::function<Status(Forecast&)>& add_to) {
  STEPCAST_ASSIGN(const ReplayTimes times, replay_times(result));
  // Peaks and links stand beside what was achieved where a platform has that GPU.
  const Result<PlatformChoice> platform = platform_for({.name = {},
                                                        .gpu = recorded_device(traces),
                                                        .gpus_per_node = 0,
                                                        .network_kind = {},
                                                        .node_bandwidth_Gbps = {}});
  STEPCAST_ASSIGN(
      ReplayAnalysis analysis,
      analyze_replay(traces, result, times,
                     {.samples_per_step = request.samples_per_step,
                      .tokens_per_step = request.tokens_per_step,
                      .platform = platform.ok() ? &platform->platform : nullptr,
                      .forecast = {.collectives = 0, .path_names = 0, .path_steps = request.path_steps}}));
  for (Forecast* forecast : {&analysis.simulated, &analysis.measured}) {
    STEPCAST_TRY(add_training(*forecast, request.budget));
  }
  STEPCAST_TRY(add_to(analysis.simulated));
  if (timeline) {
    STEPCAST_TRY(write_perfetto(*timeline, times.flat, times.costs, times.simulated,
                                request.timeline_with_measured ? &times.measured : nullptr));
  }
  Replayed replayed;
  replayed.simulated = analysis.simulated;
  replayed.measured = analysis.measured;
  replayed.analysis = std::make_shared<const ReplayAnalysis>(std::move(analysis));
  return replayed;
}

// Graphs of operations hold no measured step to compare with.
Result<Replayed> replay_graphs(const Session& session, const ReplayRequest& request) {
  PredictTraceRequest as_recorded;
  as_recorded.places = request.places;
  as_recorded.ranks = request.ranks;
  as_recorded.ranks_from = request.ranks_from;
  as_recorded.path_steps = request.path_steps;
  as_recorded.threads = request.threads;
  as_recorded.budget = request.budget;
  as_recorded.samples_per_step = request.samples_per_step;
  as_recorded.tokens_per_step = request.tokens_per_step;
  as_recorded.timeline = request.timeline;
  Replayed replayed;
  STEPCAST_ASSIGN(replayed.simulated, session.predict(as_recorded));
  replayed.simulated.kind = "replay";
  if (replayed.simulated.coverage.measured <= 0) {
    replayed.simulated.notes.emplace_back(
        "nothing here was timed: `stepcast predict --trace ... --platform NAME` takes times from models");
  }
  return replayed;
}

Result<Replayed> replay_pipeline(const ReplayRequest& request, const TraceListing& listing) {
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, output_at(request.timeline, listing.files()));
  STEPCAST_ASSIGN(PipelineStep step, pipeline_step(listing, request.step, request.ranks));
  ReplayOptions how;
  how.compare_variants = false;  // there are no launches to leave out
  STEPCAST_ASSIGN(const Replay result, stepcast::replay_recorded(std::move(step.program), how));
  TraceSet named;
  named.name = listing.name;
  return analysed(request, timeline, named, result, [](Forecast&) -> Status { return Ok{}; });
}

}  // namespace

Result<Replayed> Session::replay(const ReplayRequest& request) const {
  STEPCAST_ASSIGN(const TraceListing listing,
                  list_traces(request.places, {.ranks = request.ranks, .ranks_from = request.ranks_from}));
  if (listing.is_chakra()) return replay_graphs(*this, request);
  if (listing.is_pipeline()) return replay_pipeline(request, listing);
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline, output_at(request.timeline, listing.files()));
  STEPCAST_ASSIGN(const TraceSet traces, read_trace_set(listing, trace_set_options(request)));
  ReplayOptions how;
  how.rebuild.step = request.step;
  how.rebuild.own_delays = request.own_delays;
  how.smallest_handoff = request.smallest_handoff;
  STEPCAST_ASSIGN(const SpreadOptions spread, spread_options(request.spread, request.threads));
  STEPCAST_ASSIGN(const std::vector<RecordedInput> inputs, indexed_inputs(traces, request.threads));
  STEPCAST_ASSIGN(const Replay result, stepcast::replay(inputs, how));
  const std::set<std::int64_t> common = common_steps(traces);
  const auto replay_step = [&](std::int64_t step, const ShowStep& show) -> Status {
    ReplayOptions of_step = how;
    of_step.rebuild.step = step;
    of_step.compare_variants = false;
    STEPCAST_ASSIGN(const Replay replay, stepcast::replay(inputs, of_step));
    show(replay.recorded, replay.costs, replay);
    return Ok{};
  };
  return analysed(request, timeline, traces, result, [&](Forecast& simulated) {
    return add_spread(spread, std::vector<std::int64_t>{common.begin(), common.end()}, replay_step,
                      result.recorded, result.costs, simulated);
  });
}

}  // namespace stepcast
