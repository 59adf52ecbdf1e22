// Reads profiler traces (Kineto's Chrome JSON): a list of events, bare or in an object beside fields that
// describe the recording, which may stand before or behind it.
#include <string>
#include <utility>

#include "stepcast/base/byte_source.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/kineto_event.h"
#include "stepcast/trace/detail/kineto_header.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/detail/rank_builder.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

using detail::JsonSplitter;

std::string event_place(const JsonSplitter& splitter, std::size_t position) {
  std::string place(splitter.key());
  place += '[' + std::to_string(splitter.index()) + "] at byte ";
  place += std::to_string(splitter.offset() + position);
  return place;
}

Result<RecordedRank> read_events(ByteSource& source) {
  JsonSplitter splitter(source, {"traceEvents", "nodes"});
  detail::RankBuilder builder(source.name());
  detail::KinetoHeader header;
  detail::KinetoEvent event;
  detail::EventProblem problem;
  bool has_list = false;
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
        if (auto status = detail::read_kineto_header(splitter.key(), splitter.text(), builder.rank(), header);
            !status) {
          return std::move(status).error().in_file(source.name());
        }
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
        builder.add(event);
        break;
      case JsonSplitter::Step::end:
        if (!has_list) {
          return Error::at(source.name(), "")
              .found("a JSON object without \"traceEvents\"")
              .expected("a profiler trace");
        }
        return builder.finish(header.base_time_ns);
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

}  // namespace

Result<RecordedRank> read_kineto(const std::filesystem::path& file, const ReadOptions& options) {
  ByteSource::Options source_options;
  source_options.progress = options.progress;
  source_options.max_bytes = options.max_inflated_bytes;
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, std::move(source_options)));
  return read_events(source);
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
  return read_events(source);
}

}  // namespace stepcast
