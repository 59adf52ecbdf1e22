// Reads pipeline timelines. Each event is parsed as a whole, since it is small; the list is read as a stream.
#include "stepcast/trace/pipeline_timeline.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/json_value.h"
#include "stepcast/trace/detail/json_splitter.h"

namespace stepcast {
namespace {

using detail::JsonSplitter;

// Limits, and the layout of thread numbers (pipeline_timeline.h).
constexpr std::int64_t kLanesPerRank = 5;
constexpr std::int64_t kHighestThread = kLanesPerRank << 20;
constexpr std::int64_t kLongestTimelineUs = 1'000'000'000'000'000;

// The number `key`; empty if it is missing.
std::optional<double> number(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->number();
}

// The integer `key` from 0 to `largest`; empty for other values.
std::optional<std::int64_t> whole_number(const JsonValue& object, std::string_view key,
                                         std::int64_t largest) {
  const std::optional<double> value = number(object, key);
  if (!value || *value < 0 || *value > static_cast<double>(largest) || std::floor(*value) != *value)
    return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

// Collects the operators of a file.
class TimelineBuilder {
 public:
  explicit TimelineBuilder(std::string file) { timeline_.file = std::move(file); }

  // Adds one event. Metadata events are ignored. Errors: an operator without name, thread or step.
  Status add(std::string_view text, std::uint64_t index) {
    const auto wrong = [&](std::string found, std::string expected) {
      return Error::at(timeline_.file, fmt::format("[{}]", index))
          .found(std::move(found))
          .expected(std::move(expected));
    };
    auto event = parse_json(text, timeline_.file);
    if (!event.ok()) return wrong("an event that is not JSON", "an operator of a rank");
    const JsonValue* phase = event->find("ph");
    if (phase == nullptr || !phase->is_text() || phase->text() != "X") return Ok{};  // metadata
    const JsonValue* args = event->find("args");
    const JsonValue* name = event->find("name");
    const auto thread = whole_number(*event, "tid", kHighestThread);
    const auto start = number(*event, "ts"), duration = number(*event, "dur");
    const auto step = args != nullptr ? whole_number(*args, "step", kHighestStep) : std::nullopt;
    if (name == nullptr || !name->is_text()) return wrong("an operator without \"name\"", "a text");
    if (!thread) return wrong("an operator without thread number", "\"tid\": 5 x rank + lane");
    if (!step) return wrong("an operator without step", "\"args\": {\"step\": N, ...}");
    constexpr auto kLongest = static_cast<double>(kLongestTimelineUs);
    // An invalid time drops this operator, but the file is still read.
    if (!start || std::abs(*start) > kLongest || !duration || *duration < 0 || *duration > kLongest) {
      ++timeline_.bad_times;
      return Ok{};
    }
    timeline_.ops.push_back({.step = *step,
                             .rank = static_cast<std::int32_t>(*thread / kLanesPerRank),
                             .lane = static_cast<std::uint8_t>(*thread % kLanesPerRank),
                             .name = timeline_.names.intern(name->text()),
                             .start_us = *start,
                             .duration_us = *duration});
    return Ok{};
  }

  Result<PipelineTimeline> finish() {
    if (timeline_.ops.empty())
      return Error::at(timeline_.file, "the events").found("no operator").expected("a pipeline timeline");
    std::ranges::stable_sort(timeline_.ops, [](const PipelineOp& a, const PipelineOp& b) {
      return std::tuple{a.step, a.rank, a.start_us, a.end_us()} <
             std::tuple{b.step, b.rank, b.start_us, b.end_us()};
    });
    std::set<std::int64_t> steps;
    std::set<std::int32_t> ranks;
    for (const PipelineOp& op : timeline_.ops) {
      steps.insert(op.step);
      ranks.insert(op.rank);
    }
    timeline_.steps.assign(steps.begin(), steps.end());
    timeline_.ranks.assign(ranks.begin(), ranks.end());
    return std::move(timeline_);
  }

 private:
  static constexpr std::int64_t kHighestStep = std::int64_t{1} << 50;
  PipelineTimeline timeline_;
};

Result<PipelineTimeline> read_timeline(ByteSource source) {
  TimelineBuilder builder{source.name()};
  JsonSplitter splitter(source, {"traceEvents"});
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
      case JsonSplitter::Step::list: break;
      case JsonSplitter::Step::element: STEPCAST_TRY(builder.add(splitter.text(), splitter.index())); break;
      case JsonSplitter::Step::end: return builder.finish();
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

}  // namespace

Result<PipelineTimeline> read_pipeline_timeline(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
  return read_timeline(std::move(source));
}

Result<PipelineTimeline> parse_pipeline_timeline(std::string_view content, std::string name) {
  return read_timeline(ByteSource::from_memory(content, std::move(name)));
}

}  // namespace stepcast
