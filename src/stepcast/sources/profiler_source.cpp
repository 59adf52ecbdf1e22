// Source kind "profiler": profiler traces of PyTorch (Kineto JSON), one per rank, each with the execution
// trace of the same rank if one was recorded.
#include "stepcast/sources/profiler_source.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/sources/recorded_steps.h"

namespace stepcast {

SourceKind profiler_source();

namespace {

// Profiler traces in memory. Also used for rank files, which contain the same data (rank_file_source.cpp).
// With `only_step`, the events of all other steps were dropped while reading, so no other step can be
// replayed.
class ProfilerSource : public RecordedSource {
 public:
  ProfilerSource(TraceSet traces, std::optional<std::int64_t> only_step)
      : RecordedSource(std::move(traces)), inputs_(traces_.inputs()), only_step_(only_step) {}

  // Builds the index of each rank (trace_index.h) once, since every step needs it. Runs on `threads` threads;
  // 0: one per hardware thread.
  Status index(unsigned threads) {
    return parallel_for(inputs_.size(), threads, [&](std::size_t i) -> Status {
      inputs_[i].index = index_trace(inputs_[i]);
      return Ok{};
    });
  }
  // Steps that all ranks recorded, ascending; with `only_step` that step alone.
  [[nodiscard]] std::vector<std::int64_t> steps() const override {
    if (only_step_) return {*only_step_};
    const std::set<std::int64_t> common = common_steps(traces_);
    return {common.begin(), common.end()};
  }
  // Error: a step is requested that was dropped while reading.
  [[nodiscard]] Result<RecordedProgram> program(const RebuildOptions& how,
                                                const Platform* /*platform*/) const override {
    if (!only_step_) return rebuild_program(inputs_, how);
    if (how.step && *how.step != *only_step_) {
      return Error::at(traces_.name, fmt::format("step {} does not exist", *how.step))
          .found(fmt::format("step {} alone", *only_step_))
          .advice("import the traces with --all-steps");
    }
    RebuildOptions of_step = how;
    of_step.step = only_step_;
    return rebuild_program(inputs_, of_step);
  }
  // The same as program(), but frees the index and the events of each rank as soon as rebuild_program()
  // reports that it no longer needs them. With thousands of ranks this bounds the memory.
  [[nodiscard]] Result<RecordedProgram> last_program(const RebuildOptions& how,
                                                     const Platform* platform) override {
    RebuildOptions last = how;
    last.done_with = [this](const RecordedRank& rank) {
      // `rank` is an element of `traces_.ranks`, so its position follows from its address.
      const auto r = static_cast<std::size_t>(&rank - traces_.ranks.data());
      inputs_[r].index.reset();
      forget_events(r);
    };
    return RecordedSource::last_program(last, platform);
  }

 private:
  std::vector<RecordedInput> inputs_;
  std::optional<std::int64_t> only_step_;
};

// Rank files and profiler traces in one listing are read together, as one job.
Result<std::unique_ptr<RecordedSource>> open_profiler(const TraceListing& listing,
                                                      const TraceSetOptions& options) {
  if (!listing.of(SourceKindId::rank_file).empty()) return open_rank_files(listing, options);
  STEPCAST_ASSIGN(TraceSet traces, read_trace_set(listing, options));
  return make_profiler_source(std::move(traces), options.threads);
}

}  // namespace

Result<std::unique_ptr<RecordedSource>> make_profiler_source(TraceSet traces, unsigned threads,
                                                             std::optional<std::int64_t> only_step) {
  auto source = std::make_unique<ProfilerSource>(std::move(traces), only_step);
  STEPCAST_TRY(source->index(threads));
  return std::unique_ptr<RecordedSource>{std::move(source)};
}

SourceKind profiler_source() {
  return {.called = "profiler traces",
          .times = RecordedTimes::all,
          .names_gpu = true,
          .has_launches = true,
          .is_one_file = false,
          .refusals = {},
          .holds = [](TraceFormat format, std::string_view) { return format == TraceFormat::kineto; },
          .open = open_profiler};
}

}  // namespace stepcast
