// Any bytes as a config.json: an error, or a model that can be and whose parameters can be counted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/formats/huggingface.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto model = stepcast::parse_huggingface_config(text, "fuzz.json");
  if (!model.ok()) {
    require(!model.error().message().empty());
    return 0;
  }
  require(stepcast::check(*model).ok());
  const auto n = stepcast::parameter_count(*model);
  require(n.total() > 0);
  require(stepcast::active_parameter_count(*model) > 0);
  require(stepcast::active_parameter_count(*model) <= n.total());
  require(stepcast::multi_token_prediction_parameters(*model) >= 0);
  return 0;
}
