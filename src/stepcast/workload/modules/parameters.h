// Sizes and parameters as several modules count and check them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Weights of a norm over `width` elements.
[[nodiscard]] inline std::int64_t norm_parameters(const Transformer& model, std::int64_t width) {
  if (!model.norm_weights) return 0;
  return model.norm_bias ? 2 * width : width;
}

// A size of a model, by its name in Transformer, and its range.
struct NamedSize {
  std::string_view name;
  std::int64_t value;
  std::int64_t smallest;
  std::int64_t largest;
};

// An error for the first that is out of its range. `part`: what the names are members of, with a dot.
[[nodiscard]] Status check_sizes(const Transformer& model, std::string_view part,
                                 std::initializer_list<NamedSize> sizes);

// What is wrong with a member of a Layout.
[[nodiscard]] Error layout_error(std::string_view field, std::string problem);

}  // namespace stepcast
