// Any bytes as a platform file: an error, or a platform that can be and that survives being written and read
// again. Its overheads answer with times that can be, or say which record of launches is damaged.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/platform/platform_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void ask_host(const stepcast::Platform& platform) {
  const auto host = stepcast::HostOverheads::of(platform, {.profiler_cost_us = 1});
  if (!host.ok()) {
    require(!host.error().message().empty());
    return;
  }
  for (const stepcast::OverheadRecord& record : *platform.overheads) {
    const stepcast::Estimate estimate = host->time(record.type, record.op).estimate();
    require(std::isfinite(estimate.time.value()) && estimate.time.value() >= 0);
    require(estimate.p10 <= estimate.time && estimate.time <= estimate.p90);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto platform = stepcast::parse_platform(text, "/nowhere/fuzz.json", {});
  if (!platform.ok()) {
    require(!platform.error().message().empty());
    return 0;
  }
  require(platform->check().ok());
  ask_host(*platform);
  const std::string written = stepcast::platform_json(*platform);
  const auto back = stepcast::parse_platform(written, "/nowhere/written.json", {});
  require(back.ok());
  require(*back == *platform);
  require(stepcast::platform_json(*back) == written);
  return 0;
}
