#include <string>
#include <utility>

#include "stepcast/base/byte_source.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/leading_bytes.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

using detail::JsonSplitter;
using detail::LeadingBytes;

// No trace describes itself for longer than this before its list of events begins.
constexpr std::uint64_t kLongestHeader = std::uint64_t{1} << 26;

// Events of Chrome's format have a phase. (A key of an inner object would do as well: this is a guess by
// content.)
bool looks_like_event(std::string_view element) {
  return element.front() == '{' && element.find("\"ph\"") != std::string_view::npos;
}

// Operators of a pipeline name their micro-batch; profilers know of none. (null: the output of a simulator.)
bool looks_like_pipeline_operator(std::string_view element) {
  constexpr std::string_view kKey = "\"mb_id\":";
  const std::size_t key = element.find(kKey);
  if (key == std::string_view::npos || !looks_like_event(element)) return false;
  const std::size_t value = element.find_first_not_of(" \t\n\r", key + kKey.size());
  return value != std::string_view::npos &&
         (element[value] == '-' || (element[value] >= '0' && element[value] <= '9'));
}

Result<TraceFormat> detect_json(ByteSource& source) {
  JsonSplitter splitter(source, {"traceEvents", "nodes"});
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
        if (looks_like_pipeline_operator(splitter.text())) return TraceFormat::pipeline_timeline;
        return looks_like_event(splitter.text()) ? TraceFormat::kineto : TraceFormat::other_json;
      case JsonSplitter::Step::end: return TraceFormat::other_json;
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

}  // namespace

std::string_view to_string(TraceFormat format) {
  switch (format) {
    case TraceFormat::kineto: return "kineto";
    case TraceFormat::execution_trace: return "execution_trace";
    case TraceFormat::chakra_protobuf: return "chakra_protobuf";
    case TraceFormat::pipeline_timeline: return "pipeline_timeline";
    case TraceFormat::other_json: return "other_json";
    case TraceFormat::unknown: return "unknown";
  }
  return "unknown";
}

Result<TraceFormat> detect_trace_format(const std::filesystem::path& file) {
  std::string start(512, '\0');
  std::size_t size = 0;
  {
    STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
    while (size < start.size()) {
      STEPCAST_ASSIGN(const std::size_t n, source.read(start.data() + size, start.size() - size));
      if (n == 0) break;
      size += n;
    }
    start.resize(size);
  }
  switch (const LeadingBytes what = detail::recognise_leading_bytes(start)) {
    case LeadingBytes::json: {
      STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
      return detect_json(source);
    }
    case LeadingBytes::chakra_protobuf: return TraceFormat::chakra_protobuf;
    case LeadingBytes::unknown: return TraceFormat::unknown;
    case LeadingBytes::empty:
    case LeadingBytes::lfs_pointer:
    case LeadingBytes::apple_double:
    case LeadingBytes::tar:
    case LeadingBytes::zip:
    case LeadingBytes::zstd:
    case LeadingBytes::gzip: return detail::not_json_error(what, start, file.string());
  }
  return TraceFormat::unknown;
}

}  // namespace stepcast
