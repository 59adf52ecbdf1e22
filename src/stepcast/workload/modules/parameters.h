// Parameter counts and size checks that several modules share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Parameters of a norm over `width` elements.
[[nodiscard]] inline std::int64_t norm_parameters(const Transformer& model, std::int64_t width) {
  if (!model.norm_weights) return 0;
  return model.norm_bias ? 2 * width : width;
}

// A size of a model with its name in Transformer and its range.
struct NamedSize {
  std::string_view name;
  std::int64_t value;
  std::int64_t smallest;
  std::int64_t largest;
};

// Error for the first size outside of its range. `part`: prefix of the names, with a dot.
[[nodiscard]] Status check_sizes(const Transformer& model, std::string_view part,
                                 std::initializer_list<NamedSize> sizes);

// An error about a field of a Layout.
[[nodiscard]] Error layout_error(std::string_view field, std::string problem);

}  // namespace stepcast
