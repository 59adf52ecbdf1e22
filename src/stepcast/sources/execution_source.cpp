// Source kind "execution": execution traces of PyTorch without profiler traces. They contain the operators of
// each rank in order and their shapes, but no times. A platform has to supply all times.
#include <algorithm>
#include <array>
#include <utility>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast {

SourceKind execution_source();

namespace {

// One program from the execution traces alone. Host times come from the overheads of the platform, kernel
// times from its kernel models. Notes of a dry run (`stepcast` recorded the trace without GPUs) are passed on
// once each.
class ExecutionSource : public RecordedSource {
 public:
  explicit ExecutionSource(TraceSet traces) : RecordedSource(std::move(traces)) {}

  // Errors: `platform` is null; the platform has no usable host overheads; the traces cannot be combined.
  [[nodiscard]] Result<RecordedProgram> program(const RebuildOptions& /*how*/,
                                                const Platform* platform) const override {
    if (platform == nullptr) {
      return Error{"execution traces have no times"}.advice(
          "name a platform for the times, or give the profiler traces of the same ranks, too");
    }
    STEPCAST_ASSIGN(const HostOverheads overheads, HostOverheads::of(*platform));
    std::vector<UntimedRank> ranks;
    for (const std::optional<ExecutionTrace>& trace : traces_.execution_traces)
      ranks.push_back({&*trace, *trace->rank, 0});
    STEPCAST_ASSIGN(RecordedProgram program, untimed_program(ranks, overheads.launch_table()));
    std::string priced_by =
        "no profiler trace: host times are means of the platform's overheads, kernel times come from its "
        "models";
    if (!platform->overheads->empty() && !platform->overheads->front().provenance.document.empty())
      priced_by += "; the host: " + platform->overheads->front().provenance.document;
    program.notes.insert(program.notes.begin(), std::move(priced_by));
    for (const UntimedRank& rank : ranks) {
      if (!rank.trace->dry_run) continue;
      for (const std::string& note : rank.trace->dry_run->notes)
        if (std::ranges::find(program.notes, note) == program.notes.end()) program.notes.push_back(note);
    }
    return program;
  }
};

// Reads the execution traces of the listing. Error: rank files are in the same listing. A rank file already
// contains the execution trace of its rank, so it is unclear which of the two is wanted.
Result<std::unique_ptr<RecordedSource>> open_execution(const TraceListing& listing,
                                                       const TraceSetOptions& options) {
  if (!listing.of(SourceKindId::rank_file).empty()) return no_profiler_trace(listing);
  STEPCAST_ASSIGN(std::vector<ExecutionTrace> traces, read_execution_traces(listing, options));
  TraceSet set;
  set.name = listing.name;
  for (ExecutionTrace& trace : traces) set.execution_traces.emplace_back(std::move(trace));
  return std::unique_ptr<RecordedSource>{std::make_unique<ExecutionSource>(std::move(set))};
}

// Requests that need recorded times or more than one step.
constexpr std::array kNeedTimes{TraceAsk::recorded_kernels, TraceAsk::scaled_kernels, TraceAsk::recorded_on,
                                TraceAsk::second_trace,     TraceAsk::step,           TraceAsk::all_steps,
                                TraceAsk::shapes_of_step};
// Requests that scale or replace recorded work. They use the recorded time as the reference, which is missing
// here.
constexpr std::array kNeedRecordedWork{
    TraceAsk::batch,    TraceAsk::dtype,         TraceAsk::data_parallel_ranks, TraceAsk::bucket_size,
    TraceAsk::links_of, TraceAsk::rank_platform, TraceAsk::recompute,           TraceAsk::overlap};
constexpr std::array kExecutionRefusals{
    Refusal{"execution traces alone have one step and no times, but {} needs more",
            "give the profiler traces of the same ranks, too, or leave it out", kNeedTimes},
    Refusal{"execution traces alone have no times to scale",
            "give the profiler traces of the same ranks, too", kNeedRecordedWork}};

}  // namespace

SourceKind execution_source() {
  return {
      .called = "execution traces alone",
      .times = RecordedTimes::none,
      .names_gpu = false,
      .has_launches = true,
      .is_one_file = false,
      .refusals = kExecutionRefusals,
      .holds = [](TraceFormat format, std::string_view) { return format == TraceFormat::execution_trace; },
      .open = open_execution};
}

}  // namespace stepcast
