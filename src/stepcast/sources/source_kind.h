// What the traces of a job can be: how its files are told from others, how they are read, and what can be asked of them.
//
//   const SourceKind& kind = source_kind(listing.kind());
//   STEPCAST_TRY(check_asks(kind, listing, asks));               // "Chakra traces hold ..., which --step would need"
//   STEPCAST_ASSIGN(const auto source, kind.open(listing, {}));  // recorded_source.h
//
// A kind is a file NAME_source.cpp, which defines the function NAME_source(), and its line in source_kinds.def.
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

enum class SourceKindId : std::uint8_t {
#define STEPCAST_SOURCE_KIND(name) name,
#include "stepcast/sources/source_kinds.def"
#undef STEPCAST_SOURCE_KIND
};

inline constexpr std::size_t kSourceKindCount = 0
#define STEPCAST_SOURCE_KIND(name) +1
#include "stepcast/sources/source_kinds.def"
#undef STEPCAST_SOURCE_KIND
    ;

// What can be asked of the traces of a job, by the flag that asks for it.
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
// "--step"
[[nodiscard]] std::string_view flag_of(TraceAsk ask);

// What traces of a kind cannot answer, and why.
struct Refusal {
  std::string_view problem;  // {} stands for the flag
  std::string_view advice;
  std::span<const TraceAsk> asks;  // the first that was asked for is named
};

// Which times the files hold.
enum class RecordedTimes : std::uint8_t {
  all,   // of all work, and the measured step
  some,  // of the work that has one; a platform prices the rest
  none,  // a platform gives all of them
};

struct SourceKind {
  std::string_view called;  // "Chakra traces"
  RecordedTimes times;
  bool names_gpu;     // that recorded
  bool has_launches;  // of GPU work by the CPU, which a replay can leave out for comparison
  bool is_one_file;   // of all ranks, which refusals name
  std::span<const Refusal> refusals;
  // Whether a file is one of these: by the format that its content shows and by its first 4 KiB, inflated.
  bool (*holds)(TraceFormat format, std::string_view beginning);
  // Errors: files that cannot be read, ranks that are not there.
  Result<std::unique_ptr<RecordedSource>> (*open)(const TraceListing& listing,
                                                  const TraceSetOptions& options);
};

// [SourceKindId]
[[nodiscard]] std::span<const SourceKind, kSourceKindCount> source_kinds();
[[nodiscard]] const SourceKind& source_kind(SourceKindId id);

// The first thing asked for that these traces cannot answer.
[[nodiscard]] Status check_asks(const SourceKind& kind, const TraceListing& listing,
                                std::span<const TraceAsk> asked);

}  // namespace stepcast
