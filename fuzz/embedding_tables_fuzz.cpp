#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/recommend/dlrm_job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)stepcast::parse_embedding_tables(text, "fuzz.csv");
  return 0;
}
