// Bytes as words for lengths of sequences, and as a CSV file of them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/rollout/lengths.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  const auto use = [](const stepcast::Result<stepcast::Lengths>& lengths) {
    if (lengths) (void)lengths->survival(lengths->mean());
  };
  use(stepcast::Lengths::parse_csv(text, "fuzz.csv"));
  use(stepcast::Lengths::read("mean=" + text));  // never the name of a file
  return 0;
}
