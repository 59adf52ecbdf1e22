// One function per family of models on Hugging Face: takes its keys and fills a Transformer.
#pragma once

#include <span>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/detail/foreign_object.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

struct HuggingfaceFamily {
  std::string_view model_type;
  Status (*read)(ObjectReader& keys, Transformer& model);
};

[[nodiscard]] std::span<const HuggingfaceFamily> huggingface_families();

// Words: keys that say nothing about shape, time or memory of training.
[[nodiscard]] std::string_view harmless_huggingface_keys();

}  // namespace stepcast::detail
