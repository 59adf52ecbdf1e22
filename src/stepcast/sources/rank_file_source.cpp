// Source kind "rank_file": ranks written by `stepcast import`, one file each (trace/rank_file.h). A rank file
// contains the events of a profiler trace and, if there was one, the execution trace of that rank. It
// contains either one step or all of them.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/sources/profiler_source.h"
#include "stepcast/trace/rank_file.h"

namespace stepcast {

SourceKind rank_file_source();

namespace {

// The single step that the files contain. Empty if every file has all of its steps. Error: two files contain
// different single steps, which cannot be replayed together.
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

}  // namespace

Result<std::unique_ptr<RecordedSource>> open_rank_files(const TraceListing& listing,
                                                        const TraceSetOptions& options) {
  const bool has_traces = !listing.of(SourceKindId::profiler).empty();
  TraceSetOptions of_files = options, of_traces = options;
  // With profiler traces in the listing, a requested rank may come from a trace, so it is not an error that
  // no rank file has it. All rank files are read and filtered below.
  if (has_traces) of_files.ranks.clear();
  STEPCAST_ASSIGN(std::vector<RankFile> files, read_rank_files(listing, of_files));
  if (has_traces && !options.ranks.empty()) {
    std::erase_if(files, [&](const RankFile& file) {
      return std::ranges::find(options.ranks, file.rank.rank.value_or(0)) == options.ranks.end();
    });
    // Ranks found in rank files are not looked for in the traces. If no requested rank is left, no trace is
    // read.
    for (const RankFile& file : files) std::erase(of_traces.ranks, file.rank.rank.value_or(0));
  }
  STEPCAST_ASSIGN(const std::optional<std::int64_t> only_step, only_step_of(files));
  if (!has_traces || (of_traces.ranks.empty() && !options.ranks.empty()))
    return make_profiler_source(trace_set_of(listing, std::move(files)), options.threads, only_step);
  // A rank file with one step restricts the traces to the same step, so that only its events are kept.
  if (!of_traces.step) of_traces.step = only_step;
  STEPCAST_ASSIGN(TraceSet traces, read_trace_set(listing, of_traces));
  STEPCAST_ASSIGN(TraceSet all, with_rank_files(listing, std::move(traces), std::move(files)));
  return make_profiler_source(std::move(all), options.threads, only_step);
}

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
