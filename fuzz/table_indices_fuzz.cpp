#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/recommend/measured_indices.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string content{reinterpret_cast<const char*>(data), size};
  const std::vector<std::pair<std::string, std::string>> files{{"fuzz.npz", content}};
  (void)stepcast::measure_indices(files, {.batch_samples = 2});
  return 0;
}
