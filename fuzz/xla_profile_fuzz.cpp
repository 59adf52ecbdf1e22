// Any bytes as an XLA profile: an error, or devices with work that a replay can be tried of.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/trace_summary.h"
#include "stepcast/trace/xla_profile.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto ranks = stepcast::parse_xla_profile({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!ranks.ok()) {
    require(!ranks.error().message().empty());
    return 0;
  }
  require(!ranks->empty());
  for (const stepcast::RecordedRank& rank : *ranks) {
    require(rank.devices.size() == 1);
    static_cast<void>(stepcast::summarize(rank, stepcast::can_be_replayed));
    const stepcast::RecordedInput input{&rank, nullptr};
    const auto recorded = stepcast::rebuild_program({&input, 1});
    require(recorded.ok() || !recorded.error().message().empty());
  }
  return 0;
}
