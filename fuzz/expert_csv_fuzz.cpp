// Bytes as a file of measured expert layers or exchanges.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "calibrate/expert_measurements.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepcast::ExpertMeasurements out;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)stepcast::parse_expert_measurements(text, "fuzz.csv", out);
  return 0;
}
