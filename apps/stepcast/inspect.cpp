// stepcast inspect: what is in a trace file, and is it usable.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/inspect_report.h"
#include "stepcast/trace/readers.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool json = false;
};

// Appends to the text or to the JSON document.
Status inspect(const std::string& file, bool as_json, std::string& text, JsonWriter& json) {
  STEPCAST_ASSIGN(const TraceFormat format, detect_trace_format(file));
  const auto show = [&](const auto& trace) {
    if (as_json) {
      inspect_json(trace, json);
    } else {
      text = inspect_text(trace);
    }
  };
  switch (format) {
    case TraceFormat::execution_trace: {
      STEPCAST_ASSIGN(const ExecutionTrace trace, read_execution_trace(file));
      show(trace);
      return Ok{};
    }
    case TraceFormat::other_json:
      return Error::at(file, "")
          .found("JSON that is no trace")
          .expected("a profiler trace (\"traceEvents\") or an execution trace (\"nodes\")");
    case TraceFormat::kineto:
    case TraceFormat::chakra_protobuf:  // the reader says what to do
    case TraceFormat::unknown: break;
  }
  STEPCAST_ASSIGN(const RecordedRank rank, read_kineto(file));
  show(rank);
  return Ok{};
}

// Every file that can be read is shown; then the first error ends the program.
Result<int> run(const Options& options) {
  JsonWriter json(JsonWriter::Layout::indented);
  if (options.json) json.begin_object().key("files").begin_array();
  std::optional<Error> first_error;
  bool printed = false;
  for (const std::string& file : options.files) {
    std::string text;
    Status status = inspect(file, options.json, text, json);
    if (!status.ok()) {
      if (options.json) {
        json.begin_object().field("file", file).field("error", status.error().message()).end_object();
      } else if (options.files.size() > 1) {
        text = status.error().message() + "\n";
      }
      if (!first_error) first_error = std::move(status).error();
    }
    if (text.empty()) continue;
    fmt::print("{}{}", printed ? "\n" : "", text);
    printed = true;
  }
  if (options.json && (!first_error || options.files.size() > 1)) {
    json.end_array().end_object();
    fmt::print("{}", std::move(json).text());
  }
  if (first_error) return *std::move(first_error);
  return kSuccess;
}

}  // namespace

Verb inspect_verb() {
  return {"inspect", "say what is in a trace file and whether it is usable", [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("FILE", options->files,
                           "profiler traces or PyTorch execution traces, plain or gzip")
                ->required();
            app.add_flag("--json", options->json, "print one JSON object");
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
