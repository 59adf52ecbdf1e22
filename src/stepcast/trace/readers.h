// Readers of trace files. The format is always detected from the content, not from the name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/operation_graph.h"
#include "stepcast/trace/read_progress.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

class ByteSource;     // byte_source.h
class StepSelection;  // step_selection.h

// The formats that are distinguished.
enum class TraceFormat : std::uint8_t {
  kineto,
  execution_trace,
  chakra_protobuf,
  pipeline_timeline,  // pipeline_timeline.h
  xplane,             // xla_profile.h
  other_json,
  unknown
};
// The name in JSON output: "kineto".
[[nodiscard]] std::string_view to_string(TraceFormat format);

// Options of all readers.
struct ReadOptions {
  // Called repeatedly with the bytes read so far and in total (compressed size).
  ProgressReport progress;
  // Files that decompress to more bytes are refused, as a guard against decompression bombs.
  std::uint64_t max_inflated_bytes = std::uint64_t{1} << 40;
  // For profiler traces: keep only the events of the chosen step; events of other steps are counted as
  // skipped. Null: keep all.
  const StepSelection* only = nullptr;
};

// Detects the format. Examines only the first part of the decompressed file. Errors: a file that cannot be
// read, an empty file, an archive or another known format that is not a trace.
[[nodiscard]] Result<TraceFormat> detect_trace_format(const std::filesystem::path& file);
// The same for an open source. Detection may consume a part of the source.
[[nodiscard]] Result<TraceFormat> detect_trace_format(ByteSource& source);

// The rank that a profiler trace names in front of its events; no event is read. Empty if it names none
// there.
[[nodiscard]] Result<std::optional<std::int32_t>> read_kineto_rank(const std::filesystem::path& file);

// First pass over a large profiler trace: its steps, and which events each of them needs. Keeps no event.
[[nodiscard]] Result<StepSelection> scan_steps(const std::filesystem::path& file,
                                               const ReadOptions& options = {});

// Read a whole file. Errors: a file that cannot be read, another format, damaged JSON or protobuf. Invalid
// times and unknown events are counted in the result and are not errors.
[[nodiscard]] Result<RecordedRank> read_kineto(const std::filesystem::path& file,
                                               const ReadOptions& options = {});
[[nodiscard]] Result<ExecutionTrace> read_execution_trace(const std::filesystem::path& file,
                                                          const ReadOptions& options = {});
[[nodiscard]] Result<OperationGraph> read_chakra(const std::filesystem::path& file,
                                                 const ReadOptions& options = {});

// The same from memory (plain or gzip), for tests and fuzzing. `name` is used in errors.
[[nodiscard]] Result<RecordedRank> parse_kineto(std::string_view content, std::string name);
[[nodiscard]] Result<ExecutionTrace> parse_execution_trace(std::string_view content, std::string name);
[[nodiscard]] Result<OperationGraph> parse_chakra(std::string_view content, std::string name);

}  // namespace stepcast
