// Profiler traces of PyTorch, with the execution traces of the same ranks where there are any.
#include <set>
#include <utility>

#include "stepcast/base/parallel.h"
#include "stepcast/sources/recorded_source.h"
#include "stepcast/sources/recorded_steps.h"

namespace stepcast {

SourceKind profiler_source();

namespace {

class ProfilerSource : public RecordedSource {
 public:
  explicit ProfilerSource(TraceSet traces) : RecordedSource(std::move(traces)), inputs_(traces_.inputs()) {}

  // What every step needs, once for all of them.
  Status index(unsigned threads) {
    return parallel_for(inputs_.size(), threads, [&](std::size_t i) -> Status {
      inputs_[i].index = index_trace(inputs_[i]);
      return Ok{};
    });
  }
  [[nodiscard]] std::vector<std::int64_t> steps() const override {
    const std::set<std::int64_t> common = common_steps(traces_);
    return {common.begin(), common.end()};
  }
  [[nodiscard]] Result<RecordedProgram> program(const RebuildOptions& how,
                                                const Platform* /*platform*/) const override {
    return rebuild_program(inputs_, how);
  }

 private:
  std::vector<RecordedInput> inputs_;
};

Result<std::unique_ptr<RecordedSource>> open_profiler(const TraceListing& listing,
                                                      const TraceSetOptions& options) {
  STEPCAST_ASSIGN(TraceSet traces, read_trace_set(listing, options));
  auto source = std::make_unique<ProfilerSource>(std::move(traces));
  STEPCAST_TRY(source->index(options.threads));
  return std::unique_ptr<RecordedSource>{std::move(source)};
}

}  // namespace

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
