// Detects the format of a trace from its content. JSON documents are read up to the first events or nodes.
#include <optional>
#include <string>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/names.h"
#include "stepcast/base/text.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/leading_bytes.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

using detail::JsonSplitter;
using detail::LeadingBytes;

// Longest header in bytes in front of the list of events.
constexpr std::uint64_t kLongestHeader = std::uint64_t{1} << 26;
constexpr std::uint64_t kMostNames = 10000;  // row names at the start of a list of events

// Events in Chrome's format have a phase. A key of an inner object would match as well, so this is a guess.
bool looks_like_event(std::string_view element) {
  return element.front() == '{' && element.find("\"ph\"") != std::string_view::npos;
}

bool is_metadata_event(std::string_view element) {
  return element.find("\"ph\": \"M\"") != std::string_view::npos ||
         element.find("\"ph\":\"M\"") != std::string_view::npos;
}

// Operators of a pipeline timeline have a micro-batch, which profilers do not write. Simulators that write
// such timelines set it to null; those are not recorded jobs.
std::optional<TraceFormat> pipeline_format(std::string_view element) {
  constexpr std::string_view kKey = "\"mb_id\":";
  const std::size_t key = element.find(kKey);
  if (key == std::string_view::npos || !looks_like_event(element)) return std::nullopt;
  const std::size_t value = element.find_first_not_of(" \t\n\r", key + kKey.size());
  const bool recorded =
      value != std::string_view::npos && (element[value] == '-' || is_digit(element[value]));
  return recorded ? TraceFormat::pipeline_timeline : TraceFormat::other_json;
}

// Reads members until a list decides: "traceEvents" or "nodes" by their key, a bare list by its first
// elements.
Result<TraceFormat> detect_json(ByteSource& source) {
  JsonSplitter splitter(source, {"traceEvents", "nodes"});
  bool seen_event = false;
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
        if (splitter.offset() > kLongestHeader) return TraceFormat::other_json;
        break;
      case JsonSplitter::Step::list:
        if (splitter.key() == "traceEvents") return TraceFormat::kineto;
        if (splitter.key() == "nodes") return TraceFormat::execution_trace;
        break;
      case JsonSplitter::Step::element:
        if (const auto pipeline = pipeline_format(splitter.text())) return *pipeline;
        // Names of rows do not show which program wrote the file, so the next element is examined.
        seen_event = looks_like_event(splitter.text());
        if (seen_event && is_metadata_event(splitter.text()) && splitter.index() < kMostNames) break;
        return seen_event ? TraceFormat::kineto : TraceFormat::other_json;
      case JsonSplitter::Step::end: return seen_event ? TraceFormat::kineto : TraceFormat::other_json;
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

}  // namespace

std::string_view to_string(TraceFormat format) {
  return name_of<TraceFormat::unknown>(format,
                                       {"kineto", "execution_trace", "chakra_protobuf", "pipeline_timeline",
                                        "xplane", "other_json", "unknown"},
                                       "unknown");
}

Result<TraceFormat> detect_trace_format(const std::filesystem::path& file) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
  return detect_trace_format(source);
}

// Known files that cannot be traces (empty, archives, pointers) are errors with advice.
Result<TraceFormat> detect_trace_format(ByteSource& source) {
  STEPCAST_ASSIGN(const std::string_view start, source.peek(512));
  switch (const LeadingBytes what = detail::recognise_leading_bytes(start)) {
    case LeadingBytes::json: return detect_json(source);
    case LeadingBytes::chakra_protobuf: return TraceFormat::chakra_protobuf;
    case LeadingBytes::xplane: return TraceFormat::xplane;
    case LeadingBytes::unknown: return TraceFormat::unknown;
    case LeadingBytes::empty:
    case LeadingBytes::lfs_pointer:
    case LeadingBytes::apple_double:
    case LeadingBytes::tar:
    case LeadingBytes::zip:
    case LeadingBytes::zstd:
    case LeadingBytes::gzip: return detail::not_json_error(what, start, source.name());
  }
  return TraceFormat::unknown;
}

}  // namespace stepcast
