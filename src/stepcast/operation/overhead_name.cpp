#include "stepcast/operation/overhead_name.h"

#include <fmt/format.h>

namespace stepcast {
namespace {

// Parts of names. Readers of names search for them, so they must not occur in names of operators.
constexpr std::string_view kInDataLoader = "enumerate(DataLoader) ";
constexpr std::string_view kAfter = " after ";

}  // namespace

std::string overhead_name_of(OverheadType type, std::string_view op, bool in_data_loader,
                             std::string_view after) {
  std::string name = fmt::format("{}{}", in_data_loader ? kInDataLoader : "", op);
  if (type == OverheadType::t1) name += fmt::format("{}{}", kAfter, after.empty() ? "(step begin)" : after);
  return name;
}

std::string hand_off_name(std::string_view description) { return fmt::format("(hand-off) {}", description); }

bool is_in_data_loader(std::string_view overhead) { return overhead.starts_with(kInDataLoader); }

bool names_both_sides(std::string_view overhead) { return overhead.find(kAfter) != std::string_view::npos; }

std::string_view less_special(std::string_view overhead) {
  // First without the operator before the gap, then outside of the data loader; then there is nothing more
  // general.
  if (names_both_sides(overhead)) return overhead.substr(0, overhead.find(kAfter));
  return is_in_data_loader(overhead) ? overhead.substr(kInDataLoader.size()) : std::string_view{};
}

}  // namespace stepcast
