// Profiler traces of PyTorch, with the execution traces of the same ranks where there are any.
#include "stepcast/sources/profiler_source.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/sources/recorded_steps.h"

namespace stepcast {

SourceKind profiler_source();

namespace {

class ProfilerSource : public RecordedSource {
 public:
  ProfilerSource(TraceSet traces, std::optional<std::int64_t> only_step)
      : RecordedSource(std::move(traces)), inputs_(traces_.inputs()), only_step_(only_step) {}

  // What every step needs, once for all of them.
  Status index(unsigned threads) {
    return parallel_for(inputs_.size(), threads, [&](std::size_t i) -> Status {
      inputs_[i].index = index_trace(inputs_[i]);
      return Ok{};
    });
  }
  [[nodiscard]] std::vector<std::int64_t> steps() const override {
    if (only_step_) return {*only_step_};
    const std::set<std::int64_t> common = common_steps(traces_);
    return {common.begin(), common.end()};
  }
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
  [[nodiscard]] Result<RecordedProgram> last_program(const RebuildOptions& how,
                                                     const Platform* platform) override {
    RebuildOptions last = how;
    last.done_with = [this](const RecordedRank& rank) {
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
