#include "stepcast/trace/trace_set.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/parallel.h"
#include "stepcast/base/text.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kHighestRank = 1 << 20;

std::optional<std::int32_t> parse_rank(std::string_view digits) {
  std::int32_t rank = -1;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (problem != std::errc{} || end != digits.data() + digits.size() || rank < 0 || rank > kHighestRank) {
    return std::nullopt;
  }
  return rank;
}

std::string_view leading_digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return text.substr(0, n);
}

// The words of a file name: runs of letters and digits.
std::vector<std::string> words_of(std::string_view file_name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower(file_name)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// What is left of a name when the words for the kind of file are taken away: equal for the two traces of one
// run.
std::string pairing_key(const fs::path& file) {
  static const std::set<std::string, std::less<>> kKindWords{
      "et", "eg", "kineto", "trace", "execution", "graph", "pt", "json", "gz", "host", "device", "profiler"};
  std::string key;
  for (const std::string& word : words_of(file.filename().string())) {
    if (kKindWords.contains(word)) continue;
    key += word;
    key += ' ';
  }
  return key;
}

bool looks_like_trace_file(const fs::path& file) {
  const std::string name = lower(file.filename().string());
  return name.ends_with(".json") || name.ends_with(".gz") || name.ends_with(".et");
}

std::string quoted(const fs::path& file) { return fmt::format("'{}'", file.string()); }

Status sort_in(const fs::path& file, bool asked_for, TraceListing& listing) {
  Result<TraceFormat> format = detect_trace_format(file);
  if (!format.ok()) {
    if (asked_for) return std::move(format).error();
    listing.others.push_back({file, message_without_file(format.error())});
    return Ok{};
  }
  switch (*format) {
    case TraceFormat::kineto: listing.profiler.push_back(file); return Ok{};
    case TraceFormat::execution_trace: listing.execution.push_back(file); return Ok{};
    case TraceFormat::chakra_protobuf: listing.chakra.push_back(file); return Ok{};
    case TraceFormat::pipeline_timeline: listing.timelines.push_back(file); return Ok{};
    case TraceFormat::other_json:
    case TraceFormat::unknown: break;
  }
  if (asked_for) {
    return Error::at(file.string(), "content")
        .found(std::string{to_string(*format)})
        .expected("a PyTorch profiler trace (traceEvents), execution trace (nodes) or a Chakra trace");
  }
  listing.others.push_back({file, fmt::format("is no profiler or execution trace: {}", to_string(*format))});
  return Ok{};
}

// Everything of a listing in memory, before anybody decided what belongs together.
struct ReadFiles {
  std::vector<RecordedRank> profiler;          // as listed
  std::vector<ExecutionTrace> execution;       // as listed
  std::vector<std::optional<Error>> problems;  // [profiler..., execution...]
};

Status read_all(const TraceListing& listing, unsigned threads, ReadFiles& files) {
  const std::size_t n_profiler = listing.profiler.size();
  const std::size_t n = n_profiler + listing.execution.size();
  files.profiler.resize(n_profiler);
  files.execution.resize(listing.execution.size());
  files.problems.resize(n);
  return parallel_for(n, threads, [&](std::size_t i) -> Status {
    if (i < n_profiler) {
      Result<RecordedRank> rank = read_kineto(listing.profiler[i]);
      if (rank.ok()) {
        files.profiler[i] = std::move(rank).value();
      } else {
        files.problems[i] = std::move(rank).error();
      }
    } else {
      Result<ExecutionTrace> trace = read_execution_trace(listing.execution[i - n_profiler]);
      if (trace.ok()) {
        files.execution[i - n_profiler] = std::move(trace).value();
      } else {
        files.problems[i] = std::move(trace).error();
      }
    }
    return Ok{};
  });
}

std::optional<std::int32_t> rank_of(const RecordedRank& trace, const fs::path& file) {
  return trace.rank ? trace.rank : rank_in_name(file.filename().string());
}

// [position of a profiler trace] -> position of its execution trace. The error names the first one that
// belongs nowhere; its position is in `without_profiler` too.
std::map<std::size_t, std::size_t> pair_up(const TraceListing& listing, const ReadFiles& files,
                                           std::vector<std::size_t>& without_profiler) {
  std::map<std::size_t, std::size_t> pairs;
  std::vector<std::size_t> left;
  std::map<std::string, std::size_t> by_key;
  for (std::size_t p = 0; p < listing.profiler.size(); ++p)
    by_key.emplace(pairing_key(listing.profiler[p]), p);
  for (std::size_t e = 0; e < listing.execution.size(); ++e) {
    const auto same = by_key.find(pairing_key(listing.execution[e]));
    if (same == by_key.end() || !pairs.emplace(same->second, e).second) left.push_back(e);
  }
  for (const std::size_t e : left) {
    std::optional<std::int32_t> rank = files.execution[e].rank;
    if (!rank) rank = rank_in_name(listing.execution[e].filename().string());
    // By rank only where one profiler trace has it: two captures of one rank would be a guess.
    std::vector<std::size_t> of_rank;
    bool ranks_known = rank.has_value();
    for (std::size_t p = 0; p < listing.profiler.size(); ++p) {
      const auto profiler_rank = rank_of(files.profiler[p], listing.profiler[p]);
      ranks_known = ranks_known && profiler_rank.has_value();
      if (rank && profiler_rank == rank) of_rank.push_back(p);
    }
    bool found = of_rank.size() == 1 && pairs.emplace(of_rank.front(), e).second;
    const bool only_two = listing.profiler.size() == 1 && listing.execution.size() == 1;
    if (!found && only_two && !ranks_known) found = pairs.emplace(0, e).second;
    if (!found) without_profiler.push_back(e);
  }
  return pairs;
}

// Only the files of these ranks, told by what profiler traces say before their events, else by their names.
// Nothing where that does not tell every rank, or not these.
std::optional<TraceListing> only_ranks(const TraceListing& listing, std::span<const std::int32_t> ranks) {
  const auto wanted = [&](std::int32_t rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  TraceListing narrowed{.name = listing.name, .others = listing.others};
  std::map<std::string, bool> wanted_by_key;  // whether the profiler trace of this name is
  for (const fs::path& file : listing.profiler) {
    const Result<std::optional<std::int32_t>> said = read_kineto_rank(file);
    if (!said.ok()) return std::nullopt;
    const std::optional<std::int32_t> rank = *said ? *said : rank_in_name(file.filename().string());
    if (!rank) return std::nullopt;
    wanted_by_key[pairing_key(file)] = wanted(*rank);
    if (wanted(*rank)) narrowed.profiler.push_back(file);
  }
  if (narrowed.profiler.size() != ranks.size()) return std::nullopt;
  for (const fs::path& file : listing.execution) {
    const auto same = wanted_by_key.find(pairing_key(file));
    if (same == wanted_by_key.end() || same->second) narrowed.execution.push_back(file);
  }
  return narrowed;
}

void note_world(TraceSet& set) {
  std::set<std::int32_t> worlds;
  for (const RecordedRank& rank : set.ranks) {
    if (rank.world_size) worlds.insert(*rank.world_size);
  }
  if (worlds.size() > 1) {
    set.notes.push_back(fmt::format("the files name different world sizes: {}", fmt::join(worlds, ", ")));
  }
}

}  // namespace

std::optional<std::int32_t> rank_in_name(std::string_view file_name) {
  const std::string name = lower(file_name);
  for (const std::string_view word : {"rank", "worker"}) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      std::string_view rest = std::string_view{name}.substr(at + word.size());
      if (!rest.empty() && (rest.front() == '-' || rest.front() == '_' || rest.front() == '='))
        rest.remove_prefix(1);
      if (const auto rank = parse_rank(leading_digits(rest))) return rank;
    }
  }
  const std::vector<std::string> words = words_of(name);
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const bool is_number = std::all_of(word->begin(), word->end(), is_digit);
    if (is_number && word->size() <= 5) return parse_rank(*word);
  }
  return std::nullopt;
}

std::string message_without_file(const Error& error) {
  std::string message = error.message();
  const std::string prefix = error.file() + ": ";
  if (!error.file().empty() && message.starts_with(prefix)) message.erase(0, prefix.size());
  return message;
}

Result<std::vector<std::int32_t>> parse_ranks(std::string_view text) {
  const auto wrong = [&] {
    return Error{fmt::format("cannot read the ranks '{}'", text)}.expected("a list like 0,2-5");
  };
  std::set<std::int32_t> ranks;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const std::size_t dash = item.find('-');
    const auto first = parse_rank(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_rank(item.substr(dash + 1));
    if (!first || !last || *last < *first || (comma != std::string_view::npos && rest.empty()))
      return wrong();
    for (std::int32_t rank = *first; rank <= *last; ++rank) ranks.insert(rank);
  }
  if (ranks.empty()) return wrong();
  return std::vector<std::int32_t>{ranks.begin(), ranks.end()};
}

Result<TraceListing> list_traces(std::span<const fs::path> places) {
  TraceListing listing;
  if (places.empty())
    return Error{"no file or folder was given"}.expected("a folder with one trace per rank");
  listing.name = places.front().string();
  for (const fs::path& place : places) {
    std::error_code problem;
    const fs::file_status status = fs::status(place, problem);
    if (!fs::exists(status)) return Error::at(place.string(), "there is no such file or folder");
    if (!fs::is_directory(status)) {
      STEPCAST_TRY(sort_in(place, true, listing));
      continue;
    }
    std::vector<fs::path> files;
    for (auto entry = fs::directory_iterator{place, problem}; !problem && entry != fs::directory_iterator{};
         entry.increment(problem)) {
      std::error_code ignored;
      if (entry->is_regular_file(ignored) && looks_like_trace_file(entry->path()))
        files.push_back(entry->path());
    }
    if (problem)
      return Error::at(place.string(), fmt::format("cannot list the folder: {}", problem.message()));
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) STEPCAST_TRY(sort_in(file, false, listing));
  }
  return listing;
}

std::vector<fs::path> TraceListing::files() const {
  std::vector<fs::path> all = profiler;
  all.insert(all.end(), execution.begin(), execution.end());
  all.insert(all.end(), chakra.begin(), chakra.end());
  all.insert(all.end(), timelines.begin(), timelines.end());
  return all;
}

Result<std::vector<OperationGraph>> read_operation_graphs(const TraceListing& listing,
                                                          const TraceSetOptions& options) {
  const auto asked_for = [&](std::int32_t rank) {
    return options.ranks.empty() ||
           std::find(options.ranks.begin(), options.ranks.end(), rank) != options.ranks.end();
  };
  struct File {
    fs::path path;
    std::optional<std::int32_t> rank;  // by its name
  };
  std::vector<File> files;
  for (std::size_t i = 0; i < listing.chakra.size(); ++i) {
    const fs::path& path = listing.chakra[i];
    const std::optional<std::int32_t> rank = rank_in_name(path.filename().string());
    if (!rank || asked_for(*rank)) files.push_back({path, rank});
  }
  std::vector<std::optional<OperationGraph>> read(files.size());
  std::vector<std::optional<Error>> problems(files.size());
  STEPCAST_TRY(parallel_for(files.size(), options.threads, [&](std::size_t i) -> Status {
    Result<OperationGraph> graph = read_chakra(files[i].path);
    if (graph.ok()) {
      read[i] = std::move(graph).value();
    } else {
      problems[i] = std::move(graph).error();
    }
    return Ok{};
  }));
  for (std::optional<Error>& problem : problems) {
    if (problem) return *std::move(problem);
  }
  std::vector<OperationGraph> graphs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    OperationGraph& graph = *read[i];
    if (!graph.rank) graph.rank = files[i].rank;
    if (!graph.rank) graph.rank = static_cast<std::int32_t>(i);
    if (asked_for(*graph.rank)) graphs.push_back(std::move(graph));
  }
  std::stable_sort(graphs.begin(), graphs.end(),
                   [](const OperationGraph& a, const OperationGraph& b) { return *a.rank < *b.rank; });
  for (const std::int32_t rank : options.ranks) {
    const bool here =
        std::any_of(graphs.begin(), graphs.end(), [&](const OperationGraph& g) { return *g.rank == rank; });
    if (!here) return Error::at(listing.name, fmt::format("rank {} is not here", rank));
  }
  return graphs;
}

std::vector<RecordedInput> TraceSet::inputs() const {
  std::vector<RecordedInput> inputs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    inputs.push_back({&ranks[i], execution_traces[i] ? &*execution_traces[i] : nullptr});
  }
  return inputs;
}

Result<TraceSet> read_trace_set(const TraceListing& listing, const TraceSetOptions& options) {
  if (listing.profiler.empty()) {
    Error error = Error::at(listing.name, "no profiler trace here");
    if (!listing.execution.empty()) {
      return std::move(error)
          .found(fmt::format("{} execution traces, which hold no times", listing.execution.size()))
          .expected("one Kineto trace per rank");
    }
    if (!listing.chakra.empty()) {
      return std::move(error).found(fmt::format("{} Chakra traces", listing.chakra.size()));
    }
    if (!listing.others.empty()) {
      return std::move(error).found(fmt::format("{} ({})", listing.others.front().file.filename().string(),
                                                listing.others.front().why));
    }
    return std::move(error).expected(
        "one Kineto trace (*.json or *.json.gz) per rank; sub-folders are not searched");
  }
  if (!options.ranks.empty()) {
    const std::optional<TraceListing> narrowed = only_ranks(listing, options.ranks);
    if (narrowed && narrowed->profiler.size() < listing.profiler.size()) {
      // A file may say behind its events that it is of another rank: then all have to be read.
      if (Result<TraceSet> set = read_trace_set(*narrowed, options); set.ok()) return set;
    }
  }
  ReadFiles files;
  STEPCAST_TRY(read_all(listing, options.threads, files));
  for (std::optional<Error>& problem : files.problems) {
    if (problem) return *std::move(problem);
  }

  std::map<std::int32_t, std::size_t> by_rank;
  for (std::size_t p = 0; p < listing.profiler.size(); ++p) {
    std::optional<std::int32_t> rank = rank_of(files.profiler[p], listing.profiler[p]);
    if (!rank && listing.profiler.size() > 1) {
      return Error::at(listing.profiler[p].string(), "cannot tell which rank this is")
          .found("no distributedInfo in the file and no number in its name")
          .expected("a name like kineto_rank3.json.gz, or one file alone");
    }
    if (!rank) rank = 0;
    const auto [other, is_new] = by_rank.emplace(*rank, p);
    if (!is_new) {
      return Error{fmt::format("two files with the same rank {}: {} and {}", *rank,
                               quoted(listing.profiler[other->second]), quoted(listing.profiler[p]))}
          .advice("name the files of one run instead of the folder");
    }
    files.profiler[p].rank = rank;
  }
  std::vector<std::size_t> without_profiler;
  const std::map<std::size_t, std::size_t> pairs = pair_up(listing, files, without_profiler);
  if (!without_profiler.empty() && options.ranks.empty()) {
    return Error::at(listing.execution[without_profiler.front()].string(),
                     "this execution trace belongs to no profiler trace")
        .expected("a Kineto trace of the same rank, or with the same name apart from \"et\" and \"kineto\"");
  }
  for (const std::int32_t rank : options.ranks) {
    if (by_rank.contains(rank)) continue;
    std::vector<std::int32_t> present;
    for (const auto& [r, unused] : by_rank) present.push_back(r);
    return Error::at(listing.name, fmt::format("rank {} is not here", rank))
        .found(fmt::format("ranks {}", fmt::join(present, ", ")));
  }

  TraceSet set;
  set.name = listing.name;
  for (const auto& [rank, p] : by_rank) {
    if (!options.ranks.empty() &&
        std::find(options.ranks.begin(), options.ranks.end(), rank) == options.ranks.end()) {
      continue;
    }
    set.ranks.push_back(std::move(files.profiler[p]));
    const auto pair = pairs.find(p);
    if (pair == pairs.end()) {
      set.execution_traces.emplace_back();
    } else {
      set.execution_traces.emplace_back(std::move(files.execution[pair->second]));
    }
  }
  note_world(set);
  for (const TraceListing::Other& other : listing.others) {
    set.notes.push_back(fmt::format("{} was not read: {}", other.file.filename().string(), other.why));
  }
  return set;
}

std::vector<TraceSet> read_trace_sets(const TraceListing& listing, const TraceSetOptions& options,
                                      std::vector<TraceListing::Other>& skipped) {
  skipped.insert(skipped.end(), listing.others.begin(), listing.others.end());
  TraceListing readable;
  readable.name = listing.name;
  ReadFiles files;
  {
    ReadFiles all;
    if (const Status done = read_all(listing, options.threads, all); !done.ok()) {
      skipped.push_back({listing.name, done.error().message()});
      return {};
    }
    for (std::size_t i = 0; i < all.problems.size(); ++i) {
      const bool is_profiler = i < listing.profiler.size();
      const std::size_t e = i - listing.profiler.size();
      const fs::path& file = is_profiler ? listing.profiler[i] : listing.execution[e];
      if (all.problems[i]) {
        skipped.push_back({file, message_without_file(*all.problems[i])});
      } else if (is_profiler) {
        readable.profiler.push_back(file);
        files.profiler.push_back(std::move(all.profiler[i]));
      } else {
        readable.execution.push_back(file);
        files.execution.push_back(std::move(all.execution[e]));
      }
    }
  }
  std::vector<std::size_t> without_profiler;
  const std::map<std::size_t, std::size_t> pairs = pair_up(readable, files, without_profiler);
  for (const std::size_t e : without_profiler) {
    skipped.push_back({readable.execution[e], "an execution trace without profiler trace holds no times"});
  }

  std::map<std::int32_t, std::size_t> by_rank;
  bool distinct = true;
  for (std::size_t p = 0; p < readable.profiler.size(); ++p) {
    const std::optional<std::int32_t> rank = rank_of(files.profiler[p], readable.profiler[p]);
    distinct = distinct && rank && by_rank.emplace(*rank, p).second;
    files.profiler[p].rank = rank.value_or(0);
  }
  // Files of one folder whose ranks are distinct by chance of their names still differ in their world.
  for (const auto& [rank, p] : by_rank) {
    distinct = distinct && files.profiler[p].world_size == files.profiler[by_rank.begin()->second].world_size;
  }
  const auto add = [&](TraceSet& set, std::size_t p) {
    set.ranks.push_back(std::move(files.profiler[p]));
    const auto pair = pairs.find(p);
    if (pair == pairs.end()) {
      set.execution_traces.emplace_back();
    } else {
      set.execution_traces.emplace_back(std::move(files.execution[pair->second]));
    }
  };
  std::vector<TraceSet> sets;
  if (distinct && readable.profiler.size() > 1) {
    TraceSet& set = sets.emplace_back();
    set.name = listing.name;
    for (const auto& [rank, p] : by_rank) add(set, p);
  } else {
    for (std::size_t p = 0; p < readable.profiler.size(); ++p) {
      TraceSet& set = sets.emplace_back();
      set.name = readable.profiler[p].string();
      add(set, p);
    }
  }
  for (TraceSet& set : sets) note_world(set);
  return sets;
}

}  // namespace stepcast
