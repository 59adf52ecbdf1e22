#include "stepcast/describe/setting_groups.h"

#include <map>

namespace stepcast {
namespace {

// Names of all members, in all groups, with pointers to them.
std::map<std::string_view, SettingMember> named_settings() {
  std::map<std::string_view, SettingMember> all;
  const auto add = [&](std::string_view name, auto member) { all.emplace(name, member); };
  setting_groups::kModel.each_named(add);
  setting_groups::kSearched.each_named(add);
  setting_groups::kOfSearched.each_named(add);
  setting_groups::kOfDegrees.each_named(add);
  setting_groups::kKept.each_named(add);
  return all;
}

}  // namespace

std::optional<SettingMember> setting_named(std::string_view name) {
  static const std::map<std::string_view, SettingMember> kNamed = named_settings();
  const auto found = kNamed.find(name);
  return found == kNamed.end() ? std::nullopt : std::optional{found->second};
}

}  // namespace stepcast
