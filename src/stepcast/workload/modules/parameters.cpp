#include "stepcast/workload/modules/parameters.h"

#include <utility>

#include <fmt/format.h>

namespace stepcast {

Status check_sizes(const Transformer& model, std::string_view part, std::initializer_list<NamedSize> sizes) {
  for (const NamedSize& size : sizes) {
    if (size.value >= size.smallest && size.value <= size.largest) continue;
    return Error::at(model.name, fmt::format("{}{}", part, size.name))
        .found(fmt::format("{}", size.value))
        .expected(fmt::format("a whole number from {} to {}", size.smallest, size.largest));
  }
  return Ok{};
}

Error layout_error(std::string_view field, std::string problem) {
  return Error::at("", std::string{field}, std::move(problem));
}

}  // namespace stepcast
