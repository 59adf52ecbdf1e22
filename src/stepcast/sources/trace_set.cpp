// Reads the files of a listing and assembles the ranks of one job. Three questions are answered here: which
// rank a file belongs to, which execution trace belongs to which profiler trace, and whether the ranks form
// one job. All reading runs in parallel, one file per task; decisions are made afterwards in a fixed order,
// so results do not depend on the number of threads.
#include "stepcast/sources/trace_set.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/archive.h"
#include "stepcast/base/parallel.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/step_selection.h"
#include "stepcast/trace/xla_profile.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr SourceKindId kProfiler = SourceKindId::profiler, kExecution = SourceKindId::execution;

// The words of a file name without those that name the kind of file. Two traces of one run have the same key:
// "et_rank3.json.gz" and "kineto_rank3.json.gz" both give "rank3 ".
std::string pairing_key(const fs::path& file) {
  static const std::set<std::string, std::less<>> kKindWords{
      "et", "eg", "kineto", "trace", "execution", "graph", "pt", "json", "gz", "host", "device", "profiler"};
  std::string key;
  for (const std::string& word : words_of_name(file.filename().string())) {
    if (kKindWords.contains(word)) continue;
    key += word;
    key += ' ';
  }
  return key;
}

std::string quoted(const fs::path& file) { return fmt::format("'{}'", file.string()); }

// Whether `rank` is requested. An empty list requests all ranks.
bool is_asked_for(std::span<const std::int32_t> ranks, std::int32_t rank) {
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Error: a requested rank has no file. `present` are the ranks that were found.
Error rank_is_missing(const TraceListing& listing, std::int32_t rank, std::span<const std::int32_t> present) {
  return Error::at(listing.name, fmt::format("rank {} does not exist", rank))
      .found(present.empty() ? "no rank" : fmt::format("ranks {}", list_ranks(present)));
}

// Error: two files claim the same rank.
Error two_files(std::int32_t rank, const fs::path& one, const fs::path& other) {
  return Error{fmt::format("two files with the same rank {}: {} and {}", rank, quoted(one), quoted(other))}
      .advice(
          "give the files of one run, or the position of the rank in file names with --ranks-from "
          "'host{}_gpu'");
}

// Error: neither the content nor the name of a file shows its rank. The advice depends on whether the user
// gave a pattern.
Error rank_unknown(const TraceListing& listing, const fs::path& file) {
  if (!listing.ranks_from.empty()) {
    return Error::at(file.string(), "unknown rank")
        .found(fmt::format("no number at {{}} of '{}' in its name", listing.ranks_from))
        .expected("a pattern that all names follow");
  }
  return Error::at(file.string(), "unknown rank")
      .found("no distributedInfo in the file and no number in its name")
      .expected("a name such as kineto_rank3.json.gz, or only one file")
      .advice("give the position of the rank in file names with --ranks-from 'host{}_gpu'");
}

// Error: an execution trace cannot be assigned to any profiler trace.
Error belongs_nowhere(const fs::path& execution_trace) {
  return Error::at(execution_trace.string(), "this execution trace belongs to no profiler trace")
      .expected("a Kineto trace of the same rank, or with the same name apart from \"et\" and \"kineto\"");
}

// All profiler and execution traces of a listing in memory, not yet paired or checked for ranks.
struct ReadFiles {
  std::vector<RecordedRank> profiler;     // in the order of the listing
  std::vector<ExecutionTrace> execution;  // in the order of the listing
  // Position: profiler traces first, then execution traces. Empty where the file was read without an error.
  std::vector<std::optional<Error>> problems;
};

// Total size on disk in bytes, for the progress report. Files of unknown size count as 0.
std::uint64_t bytes_of(const std::vector<fs::path>& files) {
  std::uint64_t sum = 0;
  for (const fs::path& file : files_on_disk(files)) {
    std::error_code unknown;
    const std::uint64_t bytes = fs::file_size(file, unknown);
    if (!unknown) sum += bytes;
  }
  return sum;
}

// Reads every file of the listing in parallel. A file that cannot be read leaves its error in
// `files.problems` and does not stop the others. If one step is enough and the JSON is large
// (`large_from_bytes`), the profiler traces are scanned once to choose the step, and then read again keeping
// only the events of that step. Error: the step cannot be chosen.
Status try_all(const TraceListing& listing, const TraceSetOptions& options, ReadFiles& files) {
  std::uint64_t json_bytes = 0;
  for (const fs::path& file : files_on_disk(listing.of(kProfiler))) json_bytes += bytes_of_json(file);
  const bool twice = options.one_step && json_bytes >= options.large_from_bytes;
  ReadProgress progress(options.progress,
                        bytes_of(listing.of(kProfiler)) * (twice ? 2 : 1) + bytes_of(listing.of(kExecution)));
  std::vector<StepSelection> selections;
  if (twice) {
    STEPCAST_ASSIGN(selections, select_step(listing.of(kProfiler), options.step,
                                            !listing.of(kExecution).empty(), options.threads, progress));
  }
  const std::size_t n_profiler = listing.of(kProfiler).size();
  const std::size_t n = n_profiler + listing.of(kExecution).size();
  files.profiler.resize(n_profiler);
  files.execution.resize(listing.of(kExecution).size());
  files.problems.resize(n);
  return parallel_for(n, options.threads, [&](std::size_t i) -> Status {
    ReadOptions how;
    how.progress = progress.of_file();
    if (i < n_profiler) {
      if (!selections.empty()) how.only = &selections[i];
      Result<RecordedRank> rank = read_kineto(listing.of(kProfiler)[i], how);
      if (rank.ok())
        files.profiler[i] = std::move(rank).value();
      else
        files.problems[i] = std::move(rank).error();
    } else {
      Result<ExecutionTrace> trace = read_execution_trace(listing.of(kExecution)[i - n_profiler], how);
      if (trace.ok())
        files.execution[i - n_profiler] = std::move(trace).value();
      else
        files.problems[i] = std::move(trace).error();
    }
    return Ok{};
  });
}

// The same as try_all(), but the first file that cannot be read is an error.
Result<ReadFiles> read_all(const TraceListing& listing, const TraceSetOptions& options) {
  ReadFiles files;
  STEPCAST_TRY(try_all(listing, options, files));
  for (std::optional<Error>& problem : files.problems)
    if (problem) return *std::move(problem);
  return files;
}

// Assigns execution traces to profiler traces: position of a profiler trace -> position of its execution
// trace. Equal names (pairing_key()) are paired first, then equal ranks, if only one profiler trace has that
// rank. Exactly two files without a known rank belong together. Positions of execution traces that cannot be
// assigned are added to `without_profiler`.
std::map<std::size_t, std::size_t> pair_up(const TraceListing& listing, const ReadFiles& files,
                                           std::vector<std::size_t>& without_profiler) {
  std::map<std::size_t, std::size_t> pairs;
  std::vector<std::size_t> left;
  std::map<std::string, std::size_t> by_key;
  for (std::size_t p = 0; p < listing.of(kProfiler).size(); ++p)
    by_key.emplace(pairing_key(listing.of(kProfiler)[p]), p);
  for (std::size_t e = 0; e < listing.of(kExecution).size(); ++e) {
    const auto same = by_key.find(pairing_key(listing.of(kExecution)[e]));
    if (same == by_key.end() || !pairs.emplace(same->second, e).second) left.push_back(e);
  }
  for (const std::size_t e : left) {
    std::optional<std::int32_t> rank = listing.rank_of(listing.of(kExecution)[e], files.execution[e].rank);
    if (!rank) rank = files.execution[e].rank;  // a pattern may match only the profiler traces
    // A rank pairs two files only if one profiler trace has it. With two captures of the same rank, the
    // choice would be a guess.
    std::vector<std::size_t> of_rank;
    bool ranks_known = rank.has_value();
    for (std::size_t p = 0; p < listing.of(kProfiler).size(); ++p) {
      const auto profiler_rank = listing.rank_of(listing.of(kProfiler)[p], files.profiler[p].rank);
      ranks_known = ranks_known && profiler_rank.has_value();
      if (rank && profiler_rank == rank) of_rank.push_back(p);
    }
    bool found = of_rank.size() == 1 && pairs.emplace(of_rank.front(), e).second;
    const bool only_two = listing.of(kProfiler).size() == 1 && listing.of(kExecution).size() == 1;
    if (!found && only_two && !ranks_known) found = pairs.emplace(0, e).second;
    if (!found) without_profiler.push_back(e);
  }
  return pairs;
}

// The listing reduced to the files of these ranks, without reading events: ranks come from the head of each
// profiler trace, else from its name. Empty if a rank is unknown or the number of matching profiler traces
// differs from the number of requested ranks. Execution traces that match no profiler trace by name are kept,
// since their rank is not yet known.
std::optional<TraceListing> only_ranks(const TraceListing& listing, std::span<const std::int32_t> ranks) {
  TraceListing narrowed;
  narrowed.name = listing.name;
  narrowed.ranks_from = listing.ranks_from;
  narrowed.others = listing.others;
  std::map<std::string, bool> wanted_by_key;  // whether the profiler trace with this key is requested
  for (const fs::path& file : listing.of(kProfiler)) {
    const Result<std::optional<std::int32_t>> said = read_kineto_rank(file);
    if (!said.ok()) return std::nullopt;
    const std::optional<std::int32_t> rank = listing.rank_of(file, *said);
    if (!rank) return std::nullopt;
    const bool wanted = is_asked_for(ranks, *rank);
    wanted_by_key[pairing_key(file)] = wanted;
    if (wanted) narrowed.of(kProfiler).push_back(file);
  }
  if (narrowed.of(kProfiler).size() != ranks.size()) return std::nullopt;
  for (const fs::path& file : listing.of(kExecution)) {
    const auto same = wanted_by_key.find(pairing_key(file));
    if (same == wanted_by_key.end() || same->second) narrowed.of(kExecution).push_back(file);
  }
  return narrowed;
}

// Reads every file of one kind, where one file contains all data of its rank. Returns the requested ranks in
// ascending order. A file without a known rank gets its position in the listing as rank. `read` maps a path
// to Result<Trace>, and Trace has a member `rank`. Errors: a file that cannot be read, two files of one rank,
// a missing rank.
template <class Trace, class Read>
Result<std::vector<Trace>> read_by_rank(const TraceListing& listing, SourceKindId kind,
                                        const TraceSetOptions& options, const Read& read) {
  const std::vector<fs::path>& files = listing.of(kind);
  std::vector<std::optional<Result<Trace>>> traces(files.size());
  STEPCAST_TRY(parallel_for(files.size(), options.threads, [&](std::size_t i) -> Status {
    traces[i].emplace(read(files[i]));
    return Ok{};
  }));
  std::map<std::int32_t, std::size_t> by_rank;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!traces[i]->ok()) return std::move(*traces[i]).error();
    Trace& trace = traces[i]->value();
    trace.rank = listing.rank_of(files[i], trace.rank);
    if (!trace.rank && !listing.ranks_from.empty()) return rank_unknown(listing, files[i]);
    if (!trace.rank) trace.rank = static_cast<std::int32_t>(i);
    const auto [other, is_new] = by_rank.emplace(*trace.rank, i);
    if (!is_new) return two_files(*trace.rank, files[other->second], files[i]);
  }
  std::vector<std::int32_t> present;
  for (const auto& [rank, i] : by_rank) present.push_back(rank);
  for (const std::int32_t rank : options.ranks) {
    if (by_rank.contains(rank)) continue;
    // Names may mislead: a file that was not opened may contain the requested rank.
    if (!listing.unopened.empty()) return read_by_rank<Trace>(with_unopened(listing), kind, options, read);
    return rank_is_missing(listing, rank, present);
  }
  std::vector<Trace> asked_for;
  // Reserve, because growth would copy the elements: the move constructors of their name tables may throw.
  asked_for.reserve(by_rank.size());
  for (const auto& [rank, i] : by_rank)
    if (is_asked_for(options.ranks, rank)) asked_for.push_back(std::move(*traces[i]).value());
  return asked_for;
}

// Adds a note if the ranks report different world sizes, which suggests that they are of different runs.
void note_world(TraceSet& set) {
  std::set<std::int32_t> worlds;
  for (const RecordedRank& rank : set.ranks)
    if (rank.world_size) worlds.insert(*rank.world_size);
  if (worlds.size() > 1)
    set.notes.push_back(fmt::format("the files name different world sizes: {}", fmt::join(worlds, ", ")));
}

// Adds a note for each file of the listing that was not read.
void note_others(const TraceListing& listing, TraceSet& set) {
  for (const TraceListing::Other& other : listing.others)
    set.notes.push_back(fmt::format("{} was not read: {}", other.file.filename().string(), other.why));
}

// Combines the files of a listing into one set, in ascending order of rank. A single file without a known
// rank becomes rank 0. Errors: two files of one rank, a rank that is not known, an execution trace without
// its profiler trace (only if all ranks are requested), a requested rank that is missing.
Result<TraceSet> set_of(const TraceListing& listing, const TraceSetOptions& options, ReadFiles files) {
  std::map<std::int32_t, std::size_t> by_rank;
  for (std::size_t p = 0; p < listing.of(kProfiler).size(); ++p) {
    std::optional<std::int32_t> rank = listing.rank_of(listing.of(kProfiler)[p], files.profiler[p].rank);
    if (!rank && (listing.of(kProfiler).size() > 1 || !listing.ranks_from.empty()))
      return rank_unknown(listing, listing.of(kProfiler)[p]);
    if (!rank) rank = 0;
    const auto [other, is_new] = by_rank.emplace(*rank, p);
    if (!is_new) return two_files(*rank, listing.of(kProfiler)[other->second], listing.of(kProfiler)[p]);
    files.profiler[p].rank = rank;
  }
  std::vector<std::size_t> without_profiler;
  const std::map<std::size_t, std::size_t> pairs = pair_up(listing, files, without_profiler);
  if (!without_profiler.empty() && options.ranks.empty())
    return belongs_nowhere(listing.of(kExecution)[without_profiler.front()]);
  std::vector<std::int32_t> present;
  for (const auto& [rank, p] : by_rank) present.push_back(rank);
  for (const std::int32_t rank : options.ranks)
    if (!by_rank.contains(rank)) return rank_is_missing(listing, rank, present);

  TraceSet set;
  set.name = listing.name;
  set.ranks.reserve(by_rank.size());  // growth would copy them
  for (const auto& [rank, p] : by_rank) {
    if (!is_asked_for(options.ranks, rank)) continue;
    set.ranks.push_back(std::move(files.profiler[p]));
    const auto pair = pairs.find(p);
    if (pair == pairs.end())
      set.execution_traces.emplace_back();
    else
      set.execution_traces.emplace_back(std::move(files.execution[pair->second]));
  }
  note_world(set);
  note_others(listing, set);
  return set;
}

}  // namespace

Result<std::vector<OperationGraph>> read_operation_graphs(const TraceListing& listing,
                                                          const TraceSetOptions& options) {
  return read_by_rank<OperationGraph>(listing, SourceKindId::chakra, options,
                                      [](const fs::path& file) { return read_chakra(file); });
}

Result<std::vector<ExecutionTrace>> read_execution_traces(const TraceListing& listing,
                                                          const TraceSetOptions& options) {
  return read_by_rank<ExecutionTrace>(listing, kExecution, options,
                                      [](const fs::path& file) { return read_execution_trace(file); });
}

// read_by_rank() needs a member `rank`, so each file is wrapped together with its rank.
Result<std::vector<RankFile>> read_rank_files(const TraceListing& listing, const TraceSetOptions& options) {
  struct Ranked {
    std::optional<std::int32_t> rank;
    RankFile file;
  };
  const auto read = [](const fs::path& path) -> Result<Ranked> {
    STEPCAST_ASSIGN(RankFile file, read_rank_file(path));
    const std::optional<std::int32_t> rank = file.rank.rank;
    return Ranked{rank, std::move(file)};
  };
  STEPCAST_ASSIGN(std::vector<Ranked> ranked,
                  read_by_rank<Ranked>(listing, SourceKindId::rank_file, options, read));
  std::vector<RankFile> files;
  files.reserve(ranked.size());
  for (Ranked& one : ranked) {
    one.file.rank.rank = one.rank;
    files.push_back(std::move(one.file));
  }
  return files;
}

TraceSet trace_set_of(const TraceListing& listing, std::vector<RankFile> files) {
  TraceSet set;
  set.name = listing.name;
  set.ranks.reserve(files.size());
  set.execution_traces.reserve(files.size());
  for (RankFile& file : files) {
    set.ranks.push_back(std::move(file.rank));
    set.execution_traces.push_back(std::move(file.execution_trace));
  }
  note_world(set);
  note_others(listing, set);
  return set;
}

// The ranks of both sets are merged in ascending order by moving each rank out of its set.
Result<TraceSet> with_rank_files(const TraceListing& listing, TraceSet traces, std::vector<RankFile> files) {
  TraceSet of_files = trace_set_of(listing, std::move(files));
  struct Place {
    TraceSet* set;
    std::size_t i;
  };
  std::map<std::int32_t, Place> by_rank;
  for (TraceSet* set : {&traces, &of_files}) {
    for (std::size_t i = 0; i < set->ranks.size(); ++i) {
      const std::int32_t rank = set->ranks[i].rank.value_or(0);
      const auto [other, is_new] = by_rank.emplace(rank, Place{set, i});
      if (!is_new) return two_files(rank, other->second.set->ranks[other->second.i].file, set->ranks[i].file);
    }
  }
  TraceSet all;
  all.name = listing.name;
  all.ranks.reserve(by_rank.size());
  all.execution_traces.reserve(by_rank.size());
  for (const auto& [rank, place] : by_rank) {
    all.ranks.push_back(std::move(place.set->ranks[place.i]));
    all.execution_traces.push_back(std::move(place.set->execution_traces[place.i]));
  }
  note_world(all);
  note_others(listing, all);
  return all;
}

// All files are read, since the ranks of a file depend on the devices of those before it.
Result<TraceSet> read_xla_profiles(const TraceListing& listing, const TraceSetOptions& options) {
  if (!listing.unopened.empty()) return read_xla_profiles(with_unopened(listing), options);
  const std::vector<fs::path>& files = listing.of(SourceKindId::xla);
  if (!listing.ranks_from.empty()) {
    return Error::at(listing.name, "--ranks-from")
        .found("XLA profiles, which have the devices of one host each")
        .expected("no pattern: ranks are numbered by the name of the file and the number of the device");
  }
  std::vector<std::vector<RecordedRank>> of_file(files.size());
  STEPCAST_TRY(parallel_for(files.size(), options.threads, [&](std::size_t i) -> Status {
    STEPCAST_ASSIGN(of_file[i], read_xla_profile(files[i]));
    return Ok{};
  }));
  TraceSet set;
  set.name = listing.name;
  std::vector<std::int32_t> present;
  for (std::vector<RecordedRank>& devices : of_file) {
    for (RecordedRank& device : devices) {
      device.rank = static_cast<std::int32_t>(present.size());
      present.push_back(*device.rank);
      if (is_asked_for(options.ranks, *device.rank)) set.ranks.push_back(std::move(device));
    }
  }
  for (const std::int32_t rank : options.ranks)
    if (!std::ranges::binary_search(present, rank)) return rank_is_missing(listing, rank, present);
  set.execution_traces.resize(set.ranks.size());
  note_others(listing, set);
  return set;
}

namespace {

// The listing reduced to the profiler trace of one rank. If the heads of the files do not decide, the listing
// is returned unchanged and the caller reports the ambiguity. Error: no file shows that rank.
Result<TraceListing> of_one_rank(const TraceListing& listing, std::int32_t rank) {
  if (std::optional<TraceListing> found = only_ranks(listing, {&rank, 1})) return *std::move(found);
  std::vector<std::int32_t> present;
  for (const fs::path& file : listing.of(kProfiler)) {
    const Result<std::optional<std::int32_t>> said = read_kineto_rank(file);
    if (const auto shown = listing.rank_of(file, said.ok() ? *said : std::nullopt)) present.push_back(*shown);
  }
  std::ranges::sort(present);
  if (!std::ranges::binary_search(present, rank)) return rank_is_missing(listing, rank, present);
  return listing;
}

}  // namespace

Result<RankFile> import_rank(const TraceListing& listing, const ImportOptions& options) {
  const std::vector<fs::path>&profiler = listing.of(kProfiler), &execution = listing.of(kExecution);
  if (profiler.empty()) return no_profiler_trace(listing);
  // With several profiler traces, one requested rank selects its file. The recursion then sees a listing of
  // one rank.
  if (profiler.size() > 1 && options.ranks.size() == 1) {
    ImportOptions of_one = options;
    of_one.ranks.clear();
    STEPCAST_ASSIGN(const TraceListing one, of_one_rank(listing, options.ranks.front()));
    return import_rank(one, of_one);
  }
  if (profiler.size() > 1 || execution.size() > 1) {
    return Error::at(listing.name, "traces")
        .found(fmt::format("{} profiler traces, {} execution traces", profiler.size(), execution.size()))
        .expected("those of one rank")
        .advice("give its files, or choose ranks with --ranks");
  }
  // Without `all_steps` the profiler trace is read twice: once to find the steps, once for the events of one
  // step.
  ReadProgress progress{options.progress,
                        bytes_of(profiler) * (options.all_steps ? 1 : 2) + bytes_of(execution)};
  RankFile file;
  StepSelection selection;
  if (!options.all_steps) {
    STEPCAST_ASSIGN(selection, scan_steps(profiler.front(), {.progress = progress.of_file()}));
    const std::vector<std::int64_t>& steps = selection.steps();
    if (options.step && std::ranges::find(steps, *options.step) == steps.end()) {
      return Error::at(profiler.front().string(), fmt::format("ProfilerStep#{}", *options.step),
                       "there is no such step")
          .found(fmt::format("{} steps", steps.size()));
    }
    file.step = options.step;
    if (!file.step) file.step = step_to_replay({&selection, 1});
    if (file.step) selection.choose(*file.step, !execution.empty());
  }
  STEPCAST_ASSIGN(file.rank, read_kineto(profiler.front(), {.progress = progress.of_file(),
                                                            .only = file.step ? &selection : nullptr}));
  file.rank.rank = listing.rank_of(profiler.front(), file.rank.rank);
  if (file.rank.rank && !is_asked_for(options.ranks, *file.rank.rank))
    return rank_is_missing(listing, options.ranks.front(), {&*file.rank.rank, 1});
  if (execution.empty()) return file;
  STEPCAST_ASSIGN(ExecutionTrace trace,
                  read_execution_trace(execution.front(), {.progress = progress.of_file()}));
  // pair_up() decides whether the execution trace belongs to the profiler trace, as it does for whole
  // folders.
  ReadFiles files;
  files.profiler.push_back(std::move(file.rank));
  files.execution.push_back(std::move(trace));
  std::vector<std::size_t> without_profiler;
  static_cast<void>(pair_up(listing, files, without_profiler));
  if (!without_profiler.empty()) return belongs_nowhere(execution.front());
  file.rank = std::move(files.profiler.front());
  file.execution_trace = std::move(files.execution.front());
  return file;
}

std::vector<RecordedInput> TraceSet::inputs() const {
  std::vector<RecordedInput> inputs;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    inputs.push_back({&ranks[i], execution_traces[i] ? &*execution_traces[i] : nullptr});
  return inputs;
}

// The error for a listing without profiler traces. It names the most likely reason: rank files, execution
// traces alone, Chakra traces, or files of unknown format.
Error no_profiler_trace(const TraceListing& listing) {
  if (!listing.of(kExecution).empty() && !listing.of(SourceKindId::rank_file).empty()) {
    return Error::at(listing.of(kExecution).front().string(),
                     "an execution trace with rank files, which contain the traces of their ranks")
        .advice("give only the rank files, or import it with the profiler trace of its rank");
  }
  Error error = Error::at(listing.name, "no profiler trace here");
  if (!listing.of(kExecution).empty()) {
    return std::move(error)
        .found(fmt::format("{} execution traces, which have no times", listing.of(kExecution).size()))
        .expected("one Kineto trace per rank");
  }
  if (!listing.of(SourceKindId::chakra).empty())
    return std::move(error).found(fmt::format("{} Chakra traces", listing.of(SourceKindId::chakra).size()));
  if (!listing.others.empty()) {
    return std::move(error).found(
        fmt::format("{} ({})", listing.others.front().file.filename().string(), listing.others.front().why));
  }
  return std::move(error).expected(
      "one Kineto trace (*.json or *.json.gz) or rank file (*.step) per rank; sub-folders are not searched");
}

// With requested ranks, first tries to read only their files. If that turns out to be wrong, every file is
// read.
Result<TraceSet> read_trace_set(const TraceListing& listing, const TraceSetOptions& options) {
  if (listing.of(kProfiler).empty()) return no_profiler_trace(listing);
  if (!options.ranks.empty()) {
    const std::optional<TraceListing> narrowed = only_ranks(listing, options.ranks);
    const bool is_less = narrowed && (narrowed->of(kProfiler).size() < listing.of(kProfiler).size() ||
                                      !listing.unopened.empty());
    if (is_less) {
      STEPCAST_ASSIGN(ReadFiles files, read_all(*narrowed, options));
      // The rank can also be recorded after the events, where the scan of the head does not see it. If it
      // differs from the expected rank, all files have to be read.
      bool as_told = true;
      for (std::size_t p = 0; p < narrowed->of(kProfiler).size(); ++p) {
        const auto rank = narrowed->rank_of(narrowed->of(kProfiler)[p], files.profiler[p].rank);
        as_told = as_told && rank && is_asked_for(options.ranks, *rank);
      }
      if (as_told) return set_of(*narrowed, options, std::move(files));
    }
    if (!listing.unopened.empty()) return read_trace_set(with_unopened(listing), options);
  }
  STEPCAST_ASSIGN(ReadFiles files, read_all(listing, options));
  return set_of(listing, options, std::move(files));
}

// Used for collections of unrelated files: nothing is an error, and problems are reported in `skipped`.
std::vector<TraceSet> read_trace_sets(const TraceListing& listing, const TraceSetOptions& options,
                                      std::vector<TraceListing::Other>& skipped) {
  skipped.insert(skipped.end(), listing.others.begin(), listing.others.end());
  TraceListing readable;
  readable.name = listing.name;
  ReadFiles files;
  {
    ReadFiles all;
    if (const Status done = try_all(listing, options, all); !done.ok()) {
      skipped.push_back({listing.name, done.error().message()});
      return {};
    }
    for (std::size_t i = 0; i < all.problems.size(); ++i) {
      const bool is_profiler = i < listing.of(kProfiler).size();
      const std::size_t e = i - listing.of(kProfiler).size();
      const fs::path& file = is_profiler ? listing.of(kProfiler)[i] : listing.of(kExecution)[e];
      if (all.problems[i]) {
        skipped.push_back({file, message_without_file(*all.problems[i])});
      } else if (is_profiler) {
        readable.of(kProfiler).push_back(file);
        files.profiler.push_back(std::move(all.profiler[i]));
      } else {
        readable.of(kExecution).push_back(file);
        files.execution.push_back(std::move(all.execution[e]));
      }
    }
  }
  std::vector<std::size_t> without_profiler;
  const std::map<std::size_t, std::size_t> pairs = pair_up(readable, files, without_profiler);
  for (const std::size_t e : without_profiler) {
    skipped.push_back({readable.of(kExecution)[e], "an execution trace without profiler trace has no times"});
  }

  std::map<std::int32_t, std::size_t> by_rank;
  bool distinct = true;
  for (std::size_t p = 0; p < readable.of(kProfiler).size(); ++p) {
    const std::optional<std::int32_t> rank =
        listing.rank_of(readable.of(kProfiler)[p], files.profiler[p].rank);
    distinct = distinct && rank && by_rank.emplace(*rank, p).second;
    files.profiler[p].rank = rank.value_or(0);
  }
  // Names can show distinct ranks by chance. Files of one job also agree in their world size.
  for (const auto& [rank, p] : by_rank)
    distinct = distinct && files.profiler[p].world_size == files.profiler[by_rank.begin()->second].world_size;
  // Moves profiler trace `p` and its execution trace, if it has one, to the end of `set`.
  const auto add = [&](TraceSet& set, std::size_t p) {
    set.ranks.push_back(std::move(files.profiler[p]));
    const auto pair = pairs.find(p);
    if (pair == pairs.end())
      set.execution_traces.emplace_back();
    else
      set.execution_traces.emplace_back(std::move(files.execution[pair->second]));
  };
  std::vector<TraceSet> sets;
  if (distinct && readable.of(kProfiler).size() > 1) {
    TraceSet& set = sets.emplace_back();
    set.name = listing.name;
    for (const auto& [rank, p] : by_rank) add(set, p);
  } else {
    for (std::size_t p = 0; p < readable.of(kProfiler).size(); ++p) {
      TraceSet& set = sets.emplace_back();
      set.name = readable.of(kProfiler)[p].string();
      add(set, p);
    }
  }
  for (TraceSet& set : sets) note_world(set);
  return sets;
}

}  // namespace stepcast
