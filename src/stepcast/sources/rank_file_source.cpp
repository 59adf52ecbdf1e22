// Ranks that `stepcast import` wrote, each as a file of its own (trace/rank_file.h).
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/sources/profiler_source.h"
#include "stepcast/trace/rank_file.h"

namespace stepcast {

SourceKind rank_file_source();

namespace {

// Which step all of them hold alone. Error: they hold different ones.
Result<std::optional<std::int64_t>> only_step_of(const std::vector<RankFile>& files) {
  std::optional<std::int64_t> step;
  const RankFile* first = nullptr;
  for (const RankFile& file : files) {
    if (!file.step) continue;
    if (first == nullptr) first = &file;
    if (*file.step != *first->step) {
      return Error::at(file.rank.file, "step")
          .found(fmt::format("step {}", *file.step))
          .expected(fmt::format("step {}, which {} holds", *first->step, first->rank.file))
          .advice("import all ranks with the same --step");
    }
    step = file.step;
  }
  return step;
}

Result<std::unique_ptr<RecordedSource>> open_rank_files(const TraceListing& listing,
                                                        const TraceSetOptions& options) {
  STEPCAST_ASSIGN(std::vector<RankFile> files, read_rank_files(listing, options));
  STEPCAST_ASSIGN(const std::optional<std::int64_t> only_step, only_step_of(files));
  return make_profiler_source(trace_set_of(listing, std::move(files)), options.threads, only_step);
}

}  // namespace

SourceKind rank_file_source() {
  return {.called = "rank files",
          .times = RecordedTimes::all,
          .names_gpu = true,
          .has_launches = true,
          .is_one_file = false,
          .refusals = {},
          .holds = [](TraceFormat, std::string_view beginning) { return is_rank_file(beginning); },
          .open = open_rank_files};
}

}  // namespace stepcast
