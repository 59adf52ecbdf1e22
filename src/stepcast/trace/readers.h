// Readers of trace files. The format is told from the content, never from the file's name.
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

enum class TraceFormat : std::uint8_t {
  kineto,
  execution_trace,
  chakra_protobuf,
  pipeline_timeline,  // pipeline_timeline.h
  other_json,
  unknown
};
[[nodiscard]] std::string_view to_string(TraceFormat format);

struct ReadOptions {
  // Called now and then with the compressed bytes read so far and in total.
  ProgressReport progress;
  // Refuses files that inflate beyond this (a guard against decompression bombs).
  std::uint64_t max_inflated_bytes = std::uint64_t{1} << 40;
  // Of a profiler trace keep what this has chosen; events of other steps are counted as skipped. Null: everything.
  const StepSelection* only = nullptr;
};

// Looks at the first part of the (inflated) file only.
[[nodiscard]] Result<TraceFormat> detect_trace_format(const std::filesystem::path& file);
[[nodiscard]] Result<TraceFormat> detect_trace_format(ByteSource& source);

// The rank that a profiler trace names before its events; reads no event. Nothing where it names none there.
[[nodiscard]] Result<std::optional<std::int32_t>> read_kineto_rank(const std::filesystem::path& file);

// The steps of a profiler trace, and what each of them needs; keeps no event.
[[nodiscard]] Result<StepSelection> scan_steps(const std::filesystem::path& file,
                                               const ReadOptions& options = {});

[[nodiscard]] Result<RecordedRank> read_kineto(const std::filesystem::path& file,
                                               const ReadOptions& options = {});
[[nodiscard]] Result<ExecutionTrace> read_execution_trace(const std::filesystem::path& file,
                                                          const ReadOptions& options = {});
[[nodiscard]] Result<OperationGraph> read_chakra(const std::filesystem::path& file,
                                                 const ReadOptions& options = {});

// The same from memory (plain or gzip), for tests and fuzzing; `name` stands for the file in errors.
[[nodiscard]] Result<RecordedRank> parse_kineto(std::string_view content, std::string name);
[[nodiscard]] Result<ExecutionTrace> parse_execution_trace(std::string_view content, std::string name);
[[nodiscard]] Result<OperationGraph> parse_chakra(std::string_view content, std::string name);

}  // namespace stepcast
