// The kinds of recorded jobs: how their files are recognised, how they are opened, and which requests they
// cannot answer.
//
//   const SourceKind& kind = source_kind(listing.kind());
//   STEPCAST_TRY(check_asks(kind, listing, asks));               // "Chakra traces hold ..., which --step would need"
//   STEPCAST_ASSIGN(const auto source, kind.open(listing, {}));  // recorded_source.h
//
// To add a kind, write a file NAME_source.cpp that defines the function NAME_source(), and add its line to
// source_kinds.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/trace/readers.h"

namespace stepcast {

class RecordedSource;
struct TraceListing;
struct TraceSetOptions;

// Position of a kind in source_kinds.def.
enum class SourceKindId : std::uint8_t {
#define STEPCAST_SOURCE_KIND(name) name,
#include "stepcast/sources/source_kinds.def"
#undef STEPCAST_SOURCE_KIND
};

// Number of kinds: the lines of source_kinds.def.
inline constexpr std::size_t kSourceKindCount = 0
#define STEPCAST_SOURCE_KIND(name) +1
#include "stepcast/sources/source_kinds.def"
#undef STEPCAST_SOURCE_KIND
    ;

// Requests to the traces of a job. Each one belongs to a command-line flag, see flag_of().
enum class TraceAsk : std::uint8_t {
  step,
  all_steps,
  shapes_of_step,
  ranks,
  platform,
  recorded_on,
  recorded_kernels,
  modelled_kernels,
  scaled_kernels,
  host_overheads,
  batch,
  second_trace,
  dtype,
  data_parallel_ranks,
  bucket_size,
  recompute,
  overlap,
  links_of,
  rank_platform,
};
// The flag of a request as a user types it, "--step".
[[nodiscard]] std::string_view flag_of(TraceAsk ask);

// A group of requests that a kind of traces cannot answer, and the error message for them.
struct Refusal {
  // Text of the error. {} is replaced by the flag.
  std::string_view problem;
  // What the user can do instead.
  std::string_view advice;
  // The requests that are refused. The message names the first of them that was requested.
  std::span<const TraceAsk> asks;
};

// The part of the work for which the files contain times.
enum class RecordedTimes : std::uint8_t {
  all,   // all work has times, and the duration of the step was measured
  some,  // some work has times; a platform prices the rest
  none,  // no work has times; a platform supplies all times
};

// Properties and functions of one kind of recorded job.
struct SourceKind {
  std::string_view called;  // used in messages, "Chakra traces"
  RecordedTimes times;
  bool names_gpu;  // the files name the GPU they were recorded on
  // The files record how the CPU launches GPU work. A replay can then leave out launches to show their cost.
  bool has_launches;
  bool is_one_file;  // one file contains all ranks, and refusals name it
  std::span<const Refusal> refusals;
  // Whether a file is of this kind. `format` is the format detected from its content, `beginning` are the
  // first 4 KiB of the content after decompression.
  bool (*holds)(TraceFormat format, std::string_view beginning);
  // Reads the files of this kind in the listing. Errors: files that cannot be read, requested ranks that are
  // missing.
  Result<std::unique_ptr<RecordedSource>> (*open)(const TraceListing& listing,
                                                  const TraceSetOptions& options);
};

// All kinds, indexed by SourceKindId.
[[nodiscard]] std::span<const SourceKind, kSourceKindCount> source_kinds();
// The kind with this identifier.
[[nodiscard]] const SourceKind& source_kind(SourceKindId id);

// Ok if traces of this kind can answer all requests, else the message of the first refusal that applies.
[[nodiscard]] Status check_asks(const SourceKind& kind, const TraceListing& listing,
                                std::span<const TraceAsk> asked);

}  // namespace stepcast
