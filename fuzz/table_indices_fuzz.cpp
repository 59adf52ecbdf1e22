#include <cstddef>
#include <cstdint>
#include <string>

#include "stepcast/describe/measured_indices.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content{reinterpret_cast<const char*>(data), size};
  (void)stepcast::measure_indices({{"fuzz.npz", content}}, {.batch_samples = 2});
  return 0;
}
