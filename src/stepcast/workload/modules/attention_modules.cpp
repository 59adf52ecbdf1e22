#include <algorithm>
#include <array>

#include "stepcast/workload/modules/attention_module.h"

namespace stepcast {

#define STEPCAST_ATTENTION(name) const AttentionModule& name();
#include "stepcast/workload/modules/attention_modules.def"
#undef STEPCAST_ATTENTION

std::span<const AttentionModule* const> attention_modules() {
  static const std::array kModules{
#define STEPCAST_ATTENTION(name) &name(),
#include "stepcast/workload/modules/attention_modules.def"
#undef STEPCAST_ATTENTION
  };
  return kModules;
}

AttentionVariant attention_named(std::string_view name,
                                 std::initializer_list<std::pair<std::string_view, std::int64_t>> sizes) {
  for (const AttentionModule* module : attention_modules()) {
    if (module->traits().name != name) continue;
    AttentionVariant variant{.module = module};
    for (const auto& [key, value] : sizes) {
      const auto& known = module->traits().sizes;
      const auto at = std::ranges::find(known, key, &AttentionSize::key) - known.begin();
      if (at < std::ssize(known)) variant.sizes[static_cast<std::size_t>(at)] = value;
    }
    return variant;
  }
  return {};
}

}  // namespace stepcast
