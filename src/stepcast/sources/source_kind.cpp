#include "stepcast/sources/source_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/sources/trace_listing.h"

namespace stepcast {

#define STEPCAST_SOURCE_KIND(name) SourceKind name##_source();
#include "stepcast/sources/source_kinds.def"
#undef STEPCAST_SOURCE_KIND

namespace {

// [TraceAsk] The flag as the user typed it. Three requests about kernels share `--kernels`, since they are
// its values.
constexpr auto kFlags = names<TraceAsk::rank_platform>(
    {"--step", "--all-steps", "--shapes-of-step", "--ranks", "--platform", "--recorded-on", "--kernels",
     "--kernels", "--kernels", "--host overheads", "--batch", "--second-trace", "--dtype",
     "--data-parallel-ranks", "--bucket-size-mb", "--recompute", "--overlap", "--links-of",
     "--rank-platform"});

}  // namespace

std::string_view flag_of(TraceAsk ask) { return kFlags[ask]; }

// Built on first use from source_kinds.def, in the order of SourceKindId.
std::span<const SourceKind, kSourceKindCount> source_kinds() {
  static const std::array kinds{
#define STEPCAST_SOURCE_KIND(name) name##_source(),
#include "stepcast/sources/source_kinds.def"
#undef STEPCAST_SOURCE_KIND
  };
  return kinds;
}

const SourceKind& source_kind(SourceKindId id) { return source_kinds()[static_cast<std::size_t>(id)]; }

// The refusals of a kind are checked in their order, and the first one with a requested flag is reported. A
// kind with one file for all ranks also names that file.
Status check_asks(const SourceKind& kind, const TraceListing& listing, std::span<const TraceAsk> asked) {
  for (const Refusal& refusal : kind.refusals) {
    const auto first =
        std::find_first_of(refusal.asks.begin(), refusal.asks.end(), asked.begin(), asked.end());
    if (first == refusal.asks.end()) continue;
    Error error = Error{fmt::format(fmt::runtime(refusal.problem), flag_of(*first))}.advice(
        std::string{refusal.advice});
    return kind.is_one_file ? std::move(error).in_file(listing.files().front().string()) : std::move(error);
  }
  return Ok{};
}

}  // namespace stepcast
