#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/recommend/torchrec_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  stepcast::Dlrm model;
  model.top_mlp = {1};
  model.tables = {{.name = "a", .rows = 100, .dim = 16}, {.name = "b", .rows = 10, .dim = 16}};
  (void)stepcast::parse_torchrec_plan(text, "fuzz.json", model, 4);
  return 0;
}
