// Bytes as words for a load of experts, and as a file of measured loads.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/workload/expert_load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const auto& load :
       {stepcast::parse_expert_load(text), stepcast::parse_expert_load_file(text, "fuzz.csv")}) {
    if (!load) continue;
    (void)stepcast::check(*load, 8, 2);
    (void)stepcast::busiest_over_mean(*load, 8, 4, 4096, 1.25);
  }
  return 0;
}
