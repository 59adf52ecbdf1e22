// stepcast import: converts the traces of one rank into one small file.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/archive.h"
#include "stepcast/base/output_file.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/rank_file.h"

#include "outputs.h"
#include "progress.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::vector<std::string> places;
  std::string output, ranks;
  ListOptions list;
  std::optional<std::int64_t> step;
  bool all_steps = false;
};

std::uint64_t bytes_of(const std::vector<std::filesystem::path>& files) {
  std::uint64_t sum = 0;
  for (const std::filesystem::path& file : files_on_disk(files)) {
    std::error_code unknown;
    const std::uint64_t bytes = std::filesystem::file_size(file, unknown);
    if (!unknown) sum += bytes;
  }
  return sum;
}

// What the file contains: "step 12, ".
std::string step_text(const RankFile& file, bool all_steps) {
  if (file.step) return fmt::format("step {}", *file.step);
  return all_steps ? "all steps" : "the whole file, which has no steps";
}

Result<int> run_import(Options options) {
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(options.list.ranks, parse_ranks(options.ranks));
  }
  const std::vector<std::filesystem::path> places(options.places.begin(), options.places.end());
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(places, options.list));
  STEPCAST_ASSIGN(const OutputFile output, OutputFile::at(options.output, files_on_disk(listing.files())));
  std::optional<ProgressLine> progress{"import"};
  STEPCAST_ASSIGN(const RankFile file, import_rank(listing, {.step = options.step,
                                                             .all_steps = options.all_steps,
                                                             .progress = progress->reading("import"),
                                                             .ranks = options.list.ranks}));
  STEPCAST_ASSIGN(const std::string bytes, rank_file_bytes(file));
  STEPCAST_TRY(output.write(bytes));
  progress.reset();
  const RecordedRank& rank = file.rank;
  print("{}{}: {} of {} events{}, {} bytes out of {}; written to {}\n",
        rank.rank ? fmt::format("rank {}, ", *rank.rank) : "", step_text(file, options.all_steps),
        rank.cpu_ops.size() + rank.runtime_calls.size() + rank.gpu_ops.size() + rank.stream_syncs.size(),
        rank.event_count,
        file.execution_trace
            ? fmt::format(" and an execution trace of {} nodes", file.execution_trace->nodes.size())
            : "",
        bytes.size(), bytes_of(listing.files()), options.output);
  return kSuccess;
}

}  // namespace

Verb import_verb() {
  return {
      "import", "write the traces of one rank as one small file that replay and predict can read",
      [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        app.add_option("FILE|DIR", options->places,
                       "profiler trace of a rank and its execution trace, if any; or a folder, with --ranks")
            ->required();
        add_output_option(app, "-o,--output", options->output, "file to write, e.g. rank3.step")->required();
        app.add_option("--ranks", options->ranks, "rank to take from a folder");
        app.add_option("--ranks-from", options->list.ranks_from,
                       "position of the rank in the file names: {} in a part of them, such as 'host{}_gpu'");
        auto* step = app.add_option("--step", options->step,
                                    "number N of ProfilerStep#N to keep (default: the last with GPU work)");
        app.add_flag("--all-steps", options->all_steps, "keep all steps")->excludes(step);
        return [options] { return run_import(*options); };
      }};
}

}  // namespace stepcast::cli
