// Bytes as pools of GPUs, and as a zone of them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "stepcast/describe/gpu_pools.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  const auto pools = stepcast::parse_gpu_pools(text);
  const auto zone = stepcast::parse_gpu_zone(text);
  if (pools) (void)stepcast::check_gpu_zones(*pools, {});
  if (zone) (void)stepcast::check_gpu_zones({}, {&*zone, 1});
  return 0;
}
