// stepcast inspect: what is in a trace file, and is it usable.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/version.h"
#include "stepcast/report/inspect_report.h"
#include "stepcast/report/operations_report.h"
#include "stepcast/trace/profiled_operators.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/trace_set.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool json = false;
  bool operations = false;
  bool tf32 = false;
  std::string profiler_trace;
};

// The profiler trace of the same rank in the same folder, if there is one that goes with the file.
std::optional<RecordedRank> find_profiler_trace(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  auto listing = list_traces(std::vector{folder});
  if (!listing.ok()) return std::nullopt;
  std::error_code ignored;
  TraceSetOptions options;
  // A folder may hold thousands of ranks: where names tell them, only this one's traces are read.
  if (const auto rank = rank_in_name(file.filename().string()); rank) {
    options.ranks = {*rank};
    std::erase_if(listing->profiler, [&](const std::filesystem::path& other) {
      return rank_in_name(other.filename().string()).value_or(*rank) != *rank;
    });
  }
  std::vector<TraceListing::Other> skipped;
  for (TraceSet& set : read_trace_sets(*listing, options, skipped)) {
    for (std::size_t i = 0; i < set.ranks.size(); ++i) {
      const auto& et = set.execution_traces[i];
      if (et && std::filesystem::equivalent(et->file, file, ignored)) return std::move(set.ranks[i]);
    }
  }
  return std::nullopt;
}

Status inspect_operations(const std::string& file, const ExecutionTrace& trace, const Options& options,
                          std::string& text, JsonWriter& json) {
  const TracedOperations traced = traced_operations(trace, {.tf32_allowed = options.tf32});
  std::optional<RecordedRank> recorded;
  if (!options.profiler_trace.empty()) {
    STEPCAST_ASSIGN(recorded, read_kineto(options.profiler_trace));
  } else {
    recorded = find_profiler_trace(file);
  }
  std::optional<KernelTimeCoverage> coverage;
  if (recorded) {
    auto found = kernel_time_coverage(trace, traced, *recorded);
    if (found.ok()) {
      coverage = *std::move(found);
    } else if (!options.profiler_trace.empty()) {
      return std::move(found).error();
    }
  }
  const KernelTimeCoverage* const times = coverage ? &*coverage : nullptr;
  if (options.json) {
    operations_json(trace, traced, times, json);
  } else {
    text = operations_text(trace, traced, times);
  }
  return Ok{};
}

// Appends to the text or to the JSON document.
Status inspect(const std::string& file, const Options& options, std::string& text, JsonWriter& json) {
  STEPCAST_ASSIGN(const TraceFormat format, detect_trace_format(file));
  const auto show = [&](const auto& trace) {
    if (options.json) {
      inspect_json(trace, json);
    } else {
      text = inspect_text(trace);
    }
  };
  switch (format) {
    case TraceFormat::execution_trace: {
      STEPCAST_ASSIGN(const ExecutionTrace trace, read_execution_trace(file));
      if (options.operations) return inspect_operations(file, trace, options, text, json);
      show(trace);
      return Ok{};
    }
    case TraceFormat::other_json:
      return Error::at(file, "")
          .found("JSON that is no trace")
          .expected("a profiler trace (\"traceEvents\") or an execution trace (\"nodes\")");
    case TraceFormat::chakra_protobuf: {
      STEPCAST_ASSIGN(OperationGraph graph, read_chakra(file));
      if (options.operations) {
        return Error{"--operations is for execution traces and profiler traces"}.in_file(file).found(
            "a Chakra trace");
      }
      if (!graph.rank) graph.rank = rank_in_name(std::filesystem::path{file}.filename().string());
      show(graph);
      return Ok{};
    }
    case TraceFormat::pipeline_timeline: {
      STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline(file));
      if (options.operations) {
        return Error{"--operations is for execution traces and profiler traces"}.in_file(file).found(
            "a timeline of a pipeline");
      }
      show(timeline);
      return Ok{};
    }
    case TraceFormat::kineto:
    case TraceFormat::unknown: break;
  }
  STEPCAST_ASSIGN(const RecordedRank rank, read_kineto(file));
  if (options.operations) {
    STEPCAST_ASSIGN(const ProfiledOperators operators, profiled_operators(rank));
    const TracedOperations traced = traced_operations(operators.trace, {.tf32_allowed = options.tf32});
    const KernelTimeCoverage coverage =
        kernel_time_coverage(operators.trace, traced, rank, operators.node_of_op);
    if (options.json) {
      operations_json(operators.trace, traced, &coverage, json);
    } else {
      text = operations_text(operators.trace, traced, &coverage);
    }
    return Ok{};
  }
  show(rank);
  return Ok{};
}

// Every file that can be read is shown; then the first error ends the program.
Result<int> run(const Options& options) {
  JsonWriter json(JsonWriter::Layout::indented);
  if (options.json) {
    json.begin_object().field("schema", "stepcast.inspect/1").field("version", version());
    json.key("files").begin_array();
  }
  std::optional<Error> first_error;
  bool printed = false;
  for (const std::string& file : options.files) {
    std::string text;
    Status status = inspect(file, options, text, json);
    if (!status.ok()) {
      if (options.json) {
        json.begin_object().field("file", file).field("error", status.error().message()).end_object();
      } else if (options.files.size() > 1) {
        text = status.error().message() + "\n";
      }
      if (!first_error) first_error = std::move(status).error();
    }
    if (text.empty()) continue;
    print("{}{}", printed ? "\n" : "", text);
    printed = true;
  }
  if (options.json && (!first_error || options.files.size() > 1)) {
    json.end_array().end_object();
    print("{}", std::move(json).text());
  }
  if (first_error) return *std::move(first_error);
  return kSuccess;
}

}  // namespace

Verb inspect_verb() {
  return {"inspect", "say what is in a trace file and whether it is usable", [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("FILE", options->files,
                           "profiler traces, PyTorch execution traces or Chakra traces, plain or gzip")
                ->required();
            app.add_flag("--json", options->json, "print one JSON object");
            auto* operations = app.add_flag(
                "--operations", options->operations,
                "list the work of the operators of an execution trace, and what has no model; with "
                "their times where the profiler trace of the rank lies beside");
            app.add_option("--profiler-trace", options->profiler_trace, "take the times from this file")
                ->needs(operations);
            app.add_flag("--tf32", options->tf32, "fp32 products ran on TF32 units")->needs(operations);
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
