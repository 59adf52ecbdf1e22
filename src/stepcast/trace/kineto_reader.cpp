// Reads profiler traces (Kineto's Chrome JSON): a list of events, bare or in an object beside fields that
// describe the recording, which may stand before or behind it.
#include <string>
#include <string_view>
#include <utility>

#include "stepcast/base/byte_source.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/detail/kineto_header.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/detail/rank_builder.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/step_selection.h"

namespace stepcast {
namespace {

using detail::JsonSplitter;

constexpr std::string_view kOfOtherSteps = "of other steps";

std::string event_place(const JsonSplitter& splitter, std::size_t position) {
  std::string place(splitter.key());
  place += '[' + std::to_string(splitter.index()) + "] at byte ";
  place += std::to_string(splitter.offset() + position);
  return place;
}

// Calls `on_event` with every event and puts what stands beside the events into `rank` and `header`.
template <class OnEvent>
Status for_each_event(ByteSource& source, RecordedRank& rank, detail::KinetoHeader& header,
                      const OnEvent& on_event) {
  JsonSplitter splitter(source, {"traceEvents", "nodes"});
  detail::KinetoEvent event;
  detail::EventProblem problem;
  bool has_list = false;
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
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
        on_event(event);
        break;
      case JsonSplitter::Step::end:
        if (has_list) return Ok{};
        return Error::at(source.name(), "")
            .found("a JSON object without \"traceEvents\"")
            .expected("a profiler trace");
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

Result<RecordedRank> read_events(ByteSource& source, const StepSelection* only) {
  detail::RankBuilder builder(source.name());
  detail::KinetoHeader header;
  STEPCAST_TRY(for_each_event(source, builder.rank(), header, [&](detail::KinetoEvent& event) {
    if (only != nullptr && !only->keeps(event)) {
      event.event_class = detail::EventClass::skip;
      event.reason = kOfOtherSteps;
    }
    builder.add(event);
  }));
  return builder.finish(header.base_time_ns);
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
