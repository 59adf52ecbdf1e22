// Reads profiler traces (Chrome JSON of Kineto): a list of events, alone or in an object with other members
// that describe the recording, in front of or behind the list. The file is read as a stream; each event goes
// to a builder (rank_builder.h) or a sum (rank_fold.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/byte_source.h"
#include "stepcast/trace/detail/json_cursor.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/detail/rank_builder.h"
#include "stepcast/trace/detail/rank_fold.h"
#include "stepcast/trace/detail/step_signs.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/step_selection.h"
#include "stepcast/trace/trace_index.h"
#include "stepcast/trace/trace_summary.h"

namespace stepcast::detail {
namespace {

// Facts in the header that change the events.
struct KinetoHeader {
  std::int64_t base_time_ns = 0;  // added to every `ts`
};

constexpr std::size_t kMostDevices = 4096;

// An integer, also in quotes; empty for other values.
std::optional<std::int64_t> integer_value(JsonCursor& c) {
  std::string_view text;
  if (c.peek() == '"') {
    JsonText quoted;
    if (!c.string(quoted)) return std::nullopt;
    text = quoted.raw;
  } else if (!c.raw_value(text)) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  if (!parse_integer(text, value)) return std::nullopt;
  return value;
}

// A non-negative integer of 31 bits.
std::optional<std::int32_t> small_integer(JsonCursor& c) {
  const auto value = integer_value(c);
  if (!value || *value < 0 || *value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

// A text with escapes resolved, or the raw text of another value.
std::string text_value(JsonCursor& c) {
  std::string out;
  if (c.peek() == '"') {
    JsonText quoted;
    if (c.string(quoted) && !unescape(quoted.raw, out)) out = quoted.raw;
  } else if (std::string_view raw; c.raw_value(raw)) {
    out = raw;
  }
  return out;
}

// Reads rank and world size.
void read_distributed_info(std::string_view value, RecordedRank& rank) {
  JsonCursor c(value);
  if (c.peek() != '{') return;
  std::string_view key;
  for (c.enter('{'); c.next_member(key);)
    if (key == "rank")
      rank.rank = small_integer(c);
    else if (key == "world_size")
      rank.world_size = small_integer(c);
    else
      c.skip_value();
}

// Reads the properties of one GPU.
DeviceProperties read_device(JsonCursor& c) {
  DeviceProperties device;
  std::string_view key;
  for (c.enter('{'); c.next_member(key);)
    if (key == "id")
      device.id = small_integer(c).value_or(0);
    else if (key == "name")
      device.name = text_value(c);
    else if (key == "totalGlobalMem")
      device.memory_bytes = std::max<std::int64_t>(0, integer_value(c).value_or(0));
    else if (key == "numSms")
      device.sm_count = small_integer(c).value_or(0);
    else if (key == "maxThreadsPerMultiprocessor")
      device.max_threads_per_sm = small_integer(c).value_or(0);
    else
      c.skip_value();
  return device;
}

// Reads the list of GPUs; keeps none if the list is damaged.
void read_devices(std::string_view value, RecordedRank& rank) {
  JsonCursor c(value);
  if (c.peek() != '[') return;
  std::vector<DeviceProperties> devices;
  for (c.enter('['); c.next_element() && devices.size() < kMostDevices;)
    if (c.peek() == '{')
      devices.push_back(read_device(c));
    else
      c.skip_value();
  if (!c.failed()) rank.devices = std::move(devices);
}

// Takes what a member of the top-level object says about the rank. Unknown members and members of unexpected
// form are ignored, since no event depends on them. The exception is `baseTimeNanoseconds`, which must be an
// integer. Padding must follow `value`, see JsonCursor. Errors do not name the file.
Status read_kineto_header(std::string_view key, std::string_view value, RecordedRank& rank,
                          KinetoHeader& header) {
  if (key == "schemaVersion") {
    JsonCursor c(value);
    rank.schema = text_value(c).substr(0, 64);
  } else if (key == "distributedInfo") {
    read_distributed_info(value, rank);
  } else if (key == "deviceProperties") {
    read_devices(value, rank);
  } else if (key == "baseTimeNanoseconds") {
    JsonCursor c(value);
    const auto base = integer_value(c);
    if (!base) {
      return Error::at("", "baseTimeNanoseconds")
          .found(quote_for_message(value))
          .expected("whole nanoseconds");
    }
    header.base_time_ns = *base;
  }
  return Ok{};
}

}  // namespace
}  // namespace stepcast::detail

namespace stepcast {
namespace {

using detail::JsonSplitter;

constexpr std::string_view kOfOtherSteps = "of other steps";

// "traceEvents[12] at byte 3456", for errors.
std::string event_place(const JsonSplitter& splitter, std::size_t position) {
  std::string place(splitter.key());
  place += '[' + std::to_string(splitter.index()) + "] at byte ";
  place += std::to_string(splitter.offset() + position);
  return place;
}

// Combines events that are written as begin and end. On each row the innermost open event ends first. An end
// without a begin is passed on, so that it is counted as skipped.
class EventPairs {
 public:
  // True if `event`, read from `text`, is complete: a complete event, or a begin event that this end
  // completes. It is then replaced by the complete event.
  bool completes(std::string_view text, detail::KinetoEvent& event) {
    if (event.pair == '\0') return true;
    std::vector<std::string>& open = open_[row_of(event)];
    if (event.pair == 'B') {
      if (n_open_ == kMostOpen) return skips(event);
      ++n_open_;
      open.emplace_back(text);
      open.back().append(JsonSplitter::kPadding, ' ');
      return false;
    }
    if (open.empty() || event.reason != detail::kWithoutPair) return true;  // an end without a begin
    const std::int64_t end_ns = event.start_ns;
    text_ = std::move(open.back());
    open.pop_back();
    --n_open_;
    detail::EventProblem none;
    (void)detail::read_kineto_event(std::string_view{text_}.substr(0, text_.size() - JsonSplitter::kPadding),
                                    event, none);
    event.duration_ns = end_ns - event.start_ns;
    if (event.duration_ns < 0) {
      event.event_class = detail::EventClass::skip;
      event.reason = kBadTime;
    }
    return true;
  }
  // Passes on the events that were never ended, as skipped events.
  template <class OnEvent>
  void finish(const OnEvent& on_event) {
    for (; n_open_ > 0; --n_open_) {
      detail::KinetoEvent event;
      skips(event);
      on_event(event);
    }
  }

 private:
  // Limit of open events, for damaged files.
  static constexpr std::size_t kMostOpen = 1 << 16;
  using Row = std::pair<std::int64_t, std::int64_t>;
  static Row row_of(const detail::KinetoEvent& event) { return {event.pid.number, event.tid.number}; }
  // Marks an event as skipped because its counterpart is missing.
  static bool skips(detail::KinetoEvent& event) {
    event.event_class = detail::EventClass::skip;
    event.reason = detail::kWithoutPair;
    return true;
  }

  std::map<Row, std::vector<std::string>> open_;
  std::size_t n_open_ = 0;
  std::string text_;  // text of the event completed last
};

// Calls `on_event` with every event, and puts the other members into `rank` and `header`.
template <class OnEvent>
Status for_each_event(ByteSource& source, RecordedRank& rank, detail::KinetoHeader& header,
                      const OnEvent& on_event) {
  JsonSplitter splitter(source, {"traceEvents", "nodes"});
  detail::KinetoEvent event;
  detail::EventProblem problem;
  bool has_list = false, is_rocprof = false;
  EventPairs pairs;
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
        is_rocprof = is_rocprof || splitter.key() == "rocprofiler-sdk-tool";
        if (auto status = detail::read_kineto_header(splitter.key(), splitter.text(), rank, header); !status)
          return std::move(status).error().in_file(source.name());
        break;
      case JsonSplitter::Step::list:
        if (splitter.key() == "nodes") {
          return Error::at(source.name(), "")
              .found("a PyTorch execution trace (a list of \"nodes\")")
              .expected("a profiler trace (a list of \"traceEvents\")");
        }
        has_list = true;
        break;
      case JsonSplitter::Step::element:
        if (splitter.text().front() != '{') {
          return Error::at(source.name(), event_place(splitter, 0))
              .found(detail::quote_for_message(splitter.text()))
              .expected("an event (a JSON object)");
        }
        if (!detail::read_kineto_event(splitter.text(), event, problem)) {
          return Error::at(source.name(), event_place(splitter, problem.position), std::move(problem.problem))
              .found(std::move(problem.found))
              .expected(std::move(problem.expected))
              .advice(std::move(problem.advice));
        }
        if (pairs.completes(splitter.text(), event)) on_event(event);
        break;
      case JsonSplitter::Step::end:
        if (has_list) {
          pairs.finish(on_event);
          return Ok{};
        }
        if (is_rocprof) {
          return Error::at(source.name(), "")
              .found("output of rocprofv3")
              .expected("a profiler trace")
              .advice(
                  "record with torch.profiler (its traces of AMD GPUs are supported) or `stepcast capture`");
        }
        return Error::at(source.name(), "")
            .found("a JSON object without \"traceEvents\"")
            .expected("a profiler trace");
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

// Reads a file into a RecordedRank. `only`: keep the events of one step. `fold`: add events to it and keep
// none.
Result<RecordedRank> read_events(ByteSource& source, const StepSelection* only,
                                 detail::RankFold* fold = nullptr) {
  detail::RankBuilder builder(source.name(), fold);
  detail::KinetoHeader header;
  detail::StepSigns signs;
  STEPCAST_TRY(for_each_event(source, builder.rank(), header, [&](detail::KinetoEvent& event) {
    signs.add(event);
    if (only != nullptr && !only->keeps(event)) {
      event.event_class = detail::EventClass::skip;
      event.reason = kOfOtherSteps;
    }
    builder.add(event);
  }));
  STEPCAST_ASSIGN(RecordedRank rank, builder.finish(header.base_time_ns));
  std::vector<detail::StepStretch> steps;
  if (fold != nullptr) {
    steps = fold->steps();
  } else {
    for (const detail::RecordedStep& step : detail::find_steps(rank))
      steps.push_back(
          {step.number, step.start.count() - header.base_time_ns, step.end.count() - header.base_time_ns});
  }
  rank.special_steps = signs.special(steps);
  rank.step_sizes = signs.sizes(steps);
  return rank;
}

Result<ByteSource> open(const std::filesystem::path& file, const ReadOptions& options) {
  ByteSource::Options source_options;
  source_options.progress = options.progress;
  source_options.max_bytes = options.max_inflated_bytes;
  return ByteSource::open(file, std::move(source_options));
}

}  // namespace

Result<RecordedRank> read_kineto(const std::filesystem::path& file, const ReadOptions& options) {
  STEPCAST_ASSIGN(ByteSource source, open(file, options));
  return read_events(source, options.only);
}

namespace {

// Decides whether a replay of the file finds a step, by reading that step. Used if the sums of events leave
// it open.
Status read_step_to_replay(const std::filesystem::path& file, ReplayCheck check, const ReadOptions& options) {
  STEPCAST_ASSIGN(StepSelection selection, scan_steps(file, options));
  ReadOptions how = options;
  if (const auto step = step_to_replay({&selection, 1})) {
    selection.choose(*step);
    how.only = &selection;
  }
  STEPCAST_ASSIGN(const RecordedRank rank, read_kineto(file, how));
  return check(rank);
}

}  // namespace

// Tries with bounded memory first. If the events are in an unusual order, the file is read again without the
// bound.
Result<SummarizedRank> summarize_kineto(const std::filesystem::path& file, ReplayCheck check,
                                        const ReadOptions& options) {
  for (bool bounded = true;; bounded = false) {
    STEPCAST_ASSIGN(ByteSource source, open(file, options));
    detail::RankFold fold{bounded};
    STEPCAST_ASSIGN(RecordedRank rank, read_events(source, nullptr, &fold));
    if (fold.is_out_of_order()) continue;
    Status replayable = Ok{};
    if (fold.work_count() == 0) {
      if (fold.first_op()) rank.cpu_ops.push_back(*fold.first_op());
      replayable = check(rank);
      rank.cpu_ops.clear();
    } else if (!fold.launches_in_a_step() && !fold.is_only_work()) {
      replayable = read_step_to_replay(file, check, options);
    }
    return SummarizedRank{std::move(rank), fold.take(), std::move(replayable)};
  }
}

// The header is read into a rank that is dropped: only the events of steps matter here.
Result<StepSelection> scan_steps(const std::filesystem::path& file, const ReadOptions& options) {
  STEPCAST_ASSIGN(ByteSource source, open(file, options));
  RecordedRank beside;
  detail::KinetoHeader header;
  StepSelection selection;
  STEPCAST_TRY(for_each_event(source, beside, header,
                              [&](const detail::KinetoEvent& event) { selection.add(event); }));
  selection.finish();
  return selection;
}

// Reads only the members in front of the events.
Result<std::optional<std::int32_t>> read_kineto_rank(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
  JsonSplitter splitter(source, {"traceEvents", "nodes"});
  RecordedRank rank;
  detail::KinetoHeader header;
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
        if (Status status = detail::read_kineto_header(splitter.key(), splitter.text(), rank, header);
            !status)
          return std::move(status).error().in_file(source.name());
        break;
      case JsonSplitter::Step::list:
      case JsonSplitter::Step::element:
      case JsonSplitter::Step::end: return rank.rank;
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

Result<RecordedRank> parse_kineto(std::string_view content, std::string name) {
  ByteSource source = ByteSource::from_memory(content, std::move(name));
  return read_events(source, nullptr);
}

}  // namespace stepcast
