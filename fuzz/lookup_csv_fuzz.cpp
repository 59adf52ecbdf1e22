// Bytes as a file of measured lookups over several tables.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "calibrate/lookup_measurements.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)stepcast::looks_like_lookup_measurements(text);
  (void)stepcast::parse_lookup_measurements(text, "fuzz.csv");
  return 0;
}
