// stepcast inspect: shows what a trace file contains and whether it is usable.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/subject.h"
#include "stepcast/base/archive.h"
#include "stepcast/base/byte_source.h"
#include "stepcast/base/zip_file.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/rebuild/profiled_operators.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/first_screen.h"
#include "stepcast/report/inspect_answer.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/rank_file.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/xla_profile.h"

#include "outputs.h"
#include "progress.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct InspectOptions {
  std::vector<std::string> places;
  bool json = false;
  ReportOptions report;
  bool operations = false;
  bool tf32 = false;
  std::string profiler_trace;
  std::string tables;  // for files of indices
  std::int64_t batch_samples = 0;
  std::string ranks;
  ListOptions list;  // for `ranks`
};

// A file with its description; nothing if its rank was not requested.
using Inspected = Result<std::optional<InspectedFile>>;

bool is_npz(const std::string& file) { return file.ends_with(".npz") && ZipFile::is_zip(file); }

// The first bytes of a file after decompression; empty if it cannot be read.
std::string beginning_of(const std::string& file) {
  Result<ByteSource> source = ByteSource::open(file);
  if (!source) return {};
  const Result<std::string_view> start = source->peek(4096);
  return start ? std::string{*start} : std::string{};
}

// Runs `read` and shows its progress on a terminal.
template <class Read>
auto shown_reading(const std::string& file, const Read& read) {
  const std::string what = fmt::format("inspect {}", std::filesystem::path{file}.filename().string());
  ProgressLine progress{what};
  ReadOptions how;
  how.progress = progress.reading(what);
  return read(file, how);
}

// The profiler trace of the same rank in the same folder; nothing if there is none or it does not match the file.
std::optional<RecordedRank> find_profiler_trace(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  ListOptions how;
  // A folder may have thousands of ranks. If file names show the rank, only the traces of this rank are read.
  if (const auto rank = rank_in_name(file.filename().string())) how.ranks = {*rank};
  const auto listing = list_traces(std::vector{folder}, how);
  if (!listing.ok()) return std::nullopt;
  std::error_code ignored;
  std::vector<TraceListing::Other> skipped;
  for (TraceSet& set : read_trace_sets(*listing, {}, skipped)) {
    for (std::size_t i = 0; i < set.ranks.size(); ++i) {
      const auto& et = set.execution_traces[i];
      if (et && (et->file == file || std::filesystem::equivalent(et->file, file, ignored)))
        return std::move(set.ranks[i]);
    }
  }
  return std::nullopt;
}

Inspected inspect_operations(const std::string& file, const ExecutionTrace& trace,
                             const InspectOptions& options) {
  const TracedOperations traced = traced_operations(trace, {.tf32_allowed = options.tf32});
  std::optional<RecordedRank> recorded;
  if (!options.profiler_trace.empty()) {
    STEPCAST_ASSIGN(recorded, read_kineto(options.profiler_trace));
  } else {
    recorded = find_profiler_trace(file);
  }
  std::optional<KernelTimeCoverage> times;
  if (recorded) {
    auto found = kernel_time_coverage(trace, traced, *recorded);
    if (found.ok())
      times = *std::move(found);
    else if (!options.profiler_trace.empty())
      return std::move(found).error();
  }
  return {inspected(trace, traced, std::move(times))};
}

// Whether a file with the rank `rank` was requested. With a pattern, the rank in the file name counts.
Result<bool> is_asked_for(const std::string& file, const InspectOptions& options,
                          std::optional<std::int32_t>& rank, std::set<std::int32_t>& shown_ranks) {
  TraceListing names;
  names.ranks_from = options.list.ranks_from;
  const std::optional<std::int32_t> told = names.rank_of(file, rank);
  if (!names.ranks_from.empty()) {
    if (!told) return Error::at(file, fmt::format("no number at {{}} of '{}' in its name", names.ranks_from));
    rank = told;
  }
  if (options.list.ranks.empty()) return true;
  const std::span<const std::int32_t> ranks{options.list.ranks};
  if (!told || std::ranges::find(ranks, *told) == ranks.end()) return false;
  shown_ranks.insert(*told);
  return true;
}

// A requested option that does not exist for training logs; nothing if there is none.
std::optional<std::string> refuses_logs(const InspectOptions& options) {
  if (options.operations) return "--operations is for execution traces and profiler traces";
  if (!options.list.ranks.empty()) return "--ranks is for traces";
  return std::nullopt;
}

Status refuse_operations(const std::string& file, const InspectOptions& options, const char* found) {
  if (!options.operations) return Ok{};
  return Error{"--operations is for execution traces and profiler traces"}.in_file(file).found(found);
}

constexpr const char* kReadable =
    "a trace, a training log, an event file of TensorBoard or a table of embedding tables";

// Errors: a file that is missing or cannot be read.
Status check_readable(const std::string& file, const std::string& beginning) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  if (std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status)) {
    return Error::at(file, "")
        .found("a pipe or a device, which can be read once")
        .expected("a file")
        .advice("write its output to a file first");
  }
  if (beginning.empty() && std::filesystem::is_regular_file(status) &&
      std::filesystem::file_size(file, ignored) == 0) {
    return Error::at(file, "").found("an empty file").expected(kReadable);
  }
  return Ok{};
}

Inspected inspect_log(const std::string& file, const InspectOptions& options) {
  if (const std::optional<std::string> refused = refuses_logs(options))
    return Error{*refused}.in_file(file).found("a text file, maybe a training log");
  LogReadOptions how;
  ProgressLine progress{"inspect"};
  how.progress = progress.reading("inspect");
  STEPCAST_ASSIGN(LoggedRun run, read_logged_run(file, {}, how));
  return {std::move(run)};
}

Inspected inspect_execution_trace(const std::string& file, const InspectOptions& options,
                                  std::set<std::int32_t>& shown_ranks) {
  STEPCAST_ASSIGN(ExecutionTrace trace, shown_reading(file, read_execution_trace));
  STEPCAST_ASSIGN(const bool asked_for, is_asked_for(file, options, trace.rank, shown_ranks));
  if (!asked_for) return {std::nullopt};
  if (options.operations) return inspect_operations(file, trace, options);
  if (!trace.rank) trace.rank = rank_in_name(std::filesystem::path{file}.filename().string());
  return {inspected(trace)};
}

Inspected inspect_chakra(const std::string& file, const InspectOptions& options,
                         std::set<std::int32_t>& shown_ranks) {
  STEPCAST_ASSIGN(OperationGraph graph, shown_reading(file, read_chakra));
  STEPCAST_TRY(refuse_operations(file, options, "a Chakra trace"));
  STEPCAST_ASSIGN(const bool asked_for, is_asked_for(file, options, graph.rank, shown_ranks));
  if (!asked_for) return {std::nullopt};
  if (!graph.rank) graph.rank = rank_in_name(std::filesystem::path{file}.filename().string());
  return {inspected(graph)};
}

Inspected inspect_timeline(const std::string& file, const InspectOptions& options) {
  STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline(file));
  STEPCAST_TRY(refuse_operations(file, options, "a timeline of a pipeline"));
  if (!options.list.ranks.empty())
    return Error{"a timeline of a pipeline is shown as a whole"}.in_file(file).advice("leave --ranks out");
  return {inspected(timeline)};
}

Inspected inspect_profile(const std::string& file, RecordedRank rank, const InspectOptions& options,
                          std::set<std::int32_t>& shown_ranks, bool execution_trace = false) {
  STEPCAST_ASSIGN(const bool asked_for, is_asked_for(file, options, rank.rank, shown_ranks));
  if (!asked_for) return {std::nullopt};
  if (!options.operations) return {inspected(rank, summarize(rank, can_be_replayed, execution_trace))};
  STEPCAST_ASSIGN(const ProfiledOperators operators, profiled_operators(rank));
  const TracedOperations traced = traced_operations(operators.trace, {.tf32_allowed = options.tf32});
  return {inspected(operators.trace, traced,
                    kernel_time_coverage(operators.trace, traced, rank, operators.node_of_op))};
}

// The devices of an XLA profile, one rank each, numbered from `next_rank` as in a replay of all files.
Result<std::vector<InspectedFile>> inspect_xla_profile(const std::string& file, const InspectOptions& options,
                                                       std::int32_t& next_rank,
                                                       std::set<std::int32_t>& shown_ranks) {
  STEPCAST_TRY(refuse_operations(file, options, "an XLA profile"));
  STEPCAST_ASSIGN(std::vector<RecordedRank> devices, read_xla_profile(file));
  std::vector<InspectedFile> shown;
  for (RecordedRank& device : devices) {
    device.rank = next_rank++;
    STEPCAST_ASSIGN(std::optional<InspectedFile> one,
                    inspect_profile(file, std::move(device), options, shown_ranks));
    if (one) shown.push_back(*std::move(one));
  }
  return shown;
}

// `shown_ranks` receives the rank of the file if ranks were requested.
Inspected inspect(const std::string& file, const std::string& beginning, const InspectOptions& options,
                  std::set<std::int32_t>& shown_ranks) {
  STEPCAST_TRY(check_readable(file, beginning));
  if (is_rank_file(beginning)) {
    STEPCAST_ASSIGN(RankFile rank, read_rank_file(file));
    const std::optional<ExecutionTrace>& nodes = rank.execution_trace;
    STEPCAST_ASSIGN(std::optional<InspectedFile> found,
                    inspect_profile(file, std::move(rank.rank), options, shown_ranks, nodes.has_value()));
    if (auto* profile = found ? std::get_if<InspectedProfile>(&*found) : nullptr) {
      profile->is_rank_file = true;
      if (nodes) profile->execution_trace_nodes = nodes->nodes.size();
    }
    return found;
  }
  if (may_be_training_log(beginning)) return inspect_log(file, options);
  STEPCAST_ASSIGN(const TraceFormat format, detect_trace_format(file));
  switch (format) {
    case TraceFormat::execution_trace: return inspect_execution_trace(file, options, shown_ranks);
    case TraceFormat::other_json:
      return Error::at(file, "")
          .found("JSON that is not a trace")
          .expected("a profiler trace (\"traceEvents\") or an execution trace (\"nodes\")");
    case TraceFormat::chakra_protobuf: return inspect_chakra(file, options, shown_ranks);
    case TraceFormat::pipeline_timeline: return inspect_timeline(file, options);
    case TraceFormat::kineto:
    case TraceFormat::xplane:  // inspect_xla_profile()
    case TraceFormat::unknown: break;
  }
  if (options.operations) {
    STEPCAST_ASSIGN(RecordedRank rank, shown_reading(file, read_kineto));
    return inspect_profile(file, std::move(rank), options, shown_ranks);
  }
  Result<SummarizedRank> found =
      shown_reading(file, [](const std::filesystem::path& path, const ReadOptions& how) {
        return summarize_kineto(path, can_be_replayed, how);
      });
  if (!found && format == TraceFormat::unknown) return std::move(found).error().expected(kReadable);
  if (!found) return std::move(found).error();
  STEPCAST_ASSIGN(const bool asked_for, is_asked_for(file, options, found->rank.rank, shown_ranks));
  if (!asked_for) return {std::nullopt};
  return {inspected(found->rank, judged(std::move(found->summary), found->rank, found->replayable))};
}

struct Files {
  std::vector<std::string> to_read;
  std::vector<TraceListing::Other> others;  // files in folders other than traces
};

Result<std::vector<InspectedFile>> listed(Inspected found) {
  if (!found) return std::move(found).error();
  std::vector<InspectedFile> files;
  if (*found) files.push_back(**std::move(found));
  return files;
}

// Everything in a file: the devices of an XLA profile, or one description.
Result<std::vector<InspectedFile>> inspect_all(const std::string& file, const std::string& beginning,
                                               const InspectOptions& options, std::int32_t& next_device,
                                               std::set<std::int32_t>& shown_ranks) {
  if (is_xla_profile(beginning)) return inspect_xla_profile(file, options, next_device, shown_ranks);
  return listed(inspect(file, beginning, options, shown_ranks));
}

// The files to inspect: named files, and traces in named folders. If file names show ranks, only requested
// ranks are included.
Result<Files> find_files(const InspectOptions& options) {
  Files found;
  std::vector<std::string> of_other_ranks;
  TraceListing names;
  names.ranks_from = options.list.ranks_from;
  if (!names.ranks_from.empty()) STEPCAST_TRY(check_rank_pattern(names.ranks_from));
  for (const std::string& place : options.places) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(place, ignored) && (is_npz(place) || !is_archive(place))) {
      const auto rank = names.rank_of(place, std::nullopt);
      const std::span<const std::int32_t> ranks{options.list.ranks};
      const bool other = !ranks.empty() && rank && std::ranges::find(ranks, *rank) == ranks.end();
      (other ? of_other_ranks : found.to_read).push_back(place);
      continue;
    }
    STEPCAST_ASSIGN(const TraceListing listing,
                    list_traces(std::vector<std::filesystem::path>{place}, options.list));
    if (listing.files().empty()) {
      return Error::at(place, "no trace here")
          .expected("traces as *.json, *.gz, *.et, *.step or *.xplane.pb; sub-folders are not searched");
    }
    for (const std::filesystem::path& file : listing.files()) found.to_read.push_back(file.string());
    found.others.insert(found.others.end(), listing.others.begin(), listing.others.end());
  }
  // File names may be misleading. If none shows a requested rank, the ranks inside the files decide.
  if (found.to_read.empty()) found.to_read = std::move(of_other_ranks);
  return found;
}

// Prints files as text one by one, or collects them for a JSON document or a page.
class Output {
 public:
  Output(const InspectOptions& options, const ReportOutput& report, std::size_t n_files)
      : is_json_(options.json), details_(options.report.details), report_(report), n_files_(n_files) {}

  void show(InspectedFile file) {
    const bool is_shown = n_files_ > 1 || !std::holds_alternative<UnreadableFile>(file);
    if (is_shown && !is_json_ && !report_.replaces_text()) {
      if (details_ || n_files_ == 1)
        print("{}{}", has_printed_ ? "\n" : "", terminal_text(inspect_document(file), details_));
      else if (++n_listed_ <= kMostListed)
        print("{}\n", listed(inspect_document(file)));
      has_printed_ = true;
    }
    if (is_json_ || report_.is_wanted()) answer_.files.push_back(std::move(file));
  }
  Status end() const {
    if (report_.is_wanted()) STEPCAST_TRY(report_.give(inspect_page(answer_)));
    if (is_json_) print("{}", inspect_json(answer_));
    if (n_listed_ > kMostListed) print("and {} more\n", n_listed_ - kMostListed);
    if (n_listed_ > 0) print("\nMore with --details\n");
    if (!is_json_) report_.note();
    return Ok{};
  }

 private:
  // A heading with the format, for several files: "rank0.json: profiler trace (kineto)".
  static std::string listed(const ReportDocument& document) {
    const auto* facts = document.first_screen
                            ? std::get_if<ReportTable>(&document.first_screen->blocks.front().content)
                            : nullptr;
    return shorten(facts == nullptr
                       ? report_text(document, kNoLimit)
                       : fmt::format("{}: {}", document.title, facts->rows.front().cells.back().text),
                   kScreenColumns);
  }

  static constexpr std::size_t kMostListed = 20;
  bool is_json_, details_;
  const ReportOutput& report_;
  std::size_t n_files_;
  std::size_t n_listed_ = 0;
  bool has_printed_ = false;
  InspectAnswer answer_;
};

// Inspects files of subjects other than traces. Each subject inspects all of its files together.
std::map<std::string, Inspected> inspect_own(const InspectOptions& options,
                                             const std::vector<std::string>& files,
                                             const std::vector<std::string>& beginnings) {
  std::map<std::string, Inspected> found;
  for (const Subject& subject : subjects()) {
    if (subject.inspect == nullptr) continue;
    FileQuestion question{{}, options.tables, options.batch_samples};
    for (std::size_t i = 0; i < files.size(); ++i)
      if (check_readable(files[i], beginnings[i]).ok() && subject.holds(files[i], beginnings[i]))
        question.files.push_back(files[i]);
    std::vector<Result<std::optional<InspectedFile>>> answers = subject.inspect(question);
    for (std::size_t i = 0; i < answers.size(); ++i)
      found.emplace(std::move(question.files[i]), std::move(answers[i]));
  }
  return found;
}

// Shows every readable file. The first error then determines the exit code.
Result<int> run_inspect(InspectOptions options) {
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(options.list.ranks, parse_ranks(options.ranks));
  }
  STEPCAST_ASSIGN(const ReportOutput report,
                  ReportOutput::at(options.report, std::vector<std::filesystem::path>(options.places.begin(),
                                                                                      options.places.end())));
  STEPCAST_ASSIGN(const Files files, find_files(options));
  const std::size_t n = files.to_read.size();
  if ((!options.tables.empty() || options.batch_samples > 0) && std::ranges::none_of(files.to_read, is_npz)) {
    return Error{fmt::format("{} is for .npz files of indices, and none is named",
                             options.tables.empty() ? "--batch" : "--tables")};
  }
  std::vector<std::string> beginnings;
  for (const std::string& file : files.to_read) beginnings.push_back(beginning_of(file));
  const std::map<std::string, Inspected> own = inspect_own(options, files.to_read, beginnings);
  Output output{options, report, n + files.others.size()};
  std::optional<Error> first_error;
  std::set<std::int32_t> shown_ranks;
  std::int32_t next_device = 0;  // of XLA profiles
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& file = files.to_read[i];
    std::optional<ProgressLine> progress{std::in_place,
                                         fmt::format("inspect {}, {} of {}", file.substr(0, 60), i + 1, n)};
    const auto of_subject = own.find(file);
    Result<std::vector<InspectedFile>> found =
        of_subject == own.end() ? inspect_all(file, beginnings[i], options, next_device, shown_ranks)
                                : listed(of_subject->second);
    progress.reset();
    if (!found) {
      output.show(UnreadableFile{file, found.error().message()});
      if (!first_error) first_error = std::move(found).error();
      continue;
    }
    for (InspectedFile& one : *found) output.show(std::move(one));
  }
  for (const auto& [file, why] : files.others)
    output.show(UnreadableFile{file.string(), fmt::format("{}: {}", file.string(), why)});
  for (const std::int32_t rank : options.list.ranks)
    if (!first_error && !shown_ranks.contains(rank))
      first_error = Error{fmt::format("rank {} does not exist", rank)};
  if (!first_error || n > 1) STEPCAST_TRY(output.end());
  if (first_error) return *std::move(first_error);
  return kSuccess;
}

}  // namespace

Verb inspect_verb() {
  return {"inspect", "describe a trace file or a training log, and check whether it is usable",
          [](CLI::App& app) {
            auto options = std::make_shared<InspectOptions>();
            app.add_option("FILE|DIR", options->places,
                           "profiler traces, PyTorch execution traces, Chakra traces or XLA profiles, plain "
                           "or gzip, or folders of them; logs of training runs (docs/logs.md); CSV files of "
                           "embedding tables, .npz files of their indices (docs/dlrm.md)")
                ->required();
            app.add_option("--ranks", options->ranks, "only these ranks, e.g. 0-7,64");
            app.add_option(
                "--ranks-from", options->list.ranks_from,
                "position of the rank in the file names: {} in a part of them, such as 'host{}_gpu'");
            app.add_flag("--json", options->json, "print one JSON object");
            add_report_options(app, options->report, options->json);
            auto* operations =
                app.add_flag("--operations", options->operations,
                             "list the operators of an execution trace, their work, and those without a "
                             "model. Times need the profiler trace of the rank in the same folder");
            app.add_option("--profiler-trace", options->profiler_trace, "profiler trace with the times")
                ->needs(operations);
            app.add_option("--batch", options->batch_samples,
                           "indices: also report reuse factors of batches of this number of samples")
                ->check(CLI::Range(1, 1 << 30));
            app.add_option("--tables", options->tables,
                           "indices: CSV file of the tables, for their names and rows");
            app.add_flag("--tf32", options->tf32, "fp32 GEMMs ran on TF32 units")->needs(operations);
            return [options] { return run_inspect(*options); };
          }};
}

}  // namespace stepcast::cli
