#include "stepcast/describe/detail/config_keys.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stepcast::detail {

std::string shown(const JsonValue& value) {
  if (value.is_array() || value.is_object()) return std::string{value.kind_name()};
  if (!value.is_text()) return compact_json(value);
  constexpr std::size_t kShown = 60;
  const std::string& text = value.text();
  return text.size() > kShown ? fmt::format("`{}...`", text.substr(0, kShown)) : fmt::format("`{}`", text);
}

Result<ConfigKeys> ConfigKeys::of(const JsonValue& value, std::string path, const std::string& file) {
  if (!value.is_object()) {
    std::string place = fmt::format("line {}", value.line());
    if (!path.empty()) place += fmt::format(": {}", path);
    return Error::at(file, std::move(place)).found(shown(value)).expected("an object");
  }
  return ConfigKeys{value, std::move(path), file};
}

const JsonValue* ConfigKeys::take(std::string_view key) {
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].key != key) continue;
    taken_[i] = true;
    return members[i].value.is_null() ? nullptr : &members[i].value;
  }
  return nullptr;
}

bool ConfigKeys::has(std::string_view key) const {
  const JsonValue* value = value_->find(key);
  return value != nullptr && !value->is_null();
}

Status ConfigKeys::required(std::string_view key, std::int64_t& out) {
  if (!has(key)) return error("", fmt::format("`{}` is missing", path_of(key))).expected("a whole number");
  return optional(key, out);
}

Status ConfigKeys::optional(std::string_view key, std::int64_t& out) {
  const JsonValue* value = take(key);
  if (value == nullptr) return Ok{};
  constexpr double kLargest = 1e12;
  if (!value->is_number() || value->number() < 0 || value->number() > kLargest ||
      value->number() != std::floor(value->number())) {
    return wrong(key, *value, "a whole number from 0 to 1e12");
  }
  out = static_cast<std::int64_t>(value->number());
  return Ok{};
}

Status ConfigKeys::optional(std::string_view key, double& out) {
  const JsonValue* value = take(key);
  if (value == nullptr) return Ok{};
  if (!value->is_number()) return wrong(key, *value, "a number");
  out = value->number();
  return Ok{};
}

Status ConfigKeys::optional(std::string_view key, bool& out) {
  const JsonValue* value = take(key);
  if (value == nullptr) return Ok{};
  if (!value->is_bool()) return wrong(key, *value, "true or false");
  out = value->truth();
  return Ok{};
}

Status ConfigKeys::optional(std::string_view key, std::string& out) {
  const JsonValue* value = take(key);
  if (value == nullptr) return Ok{};
  if (!value->is_text()) return wrong(key, *value, "a text");
  out = value->text();
  return Ok{};
}

Result<std::optional<ConfigKeys>> ConfigKeys::section(std::string_view key) {
  const JsonValue* value = take(key);
  if (value == nullptr) return std::optional<ConfigKeys>{};
  STEPCAST_ASSIGN(ConfigKeys keys, ConfigKeys::of(*value, path_of(key), *file_));
  return std::optional<ConfigKeys>{std::move(keys)};
}

void ConfigKeys::ignore(std::span<const std::string_view> keys) {
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (std::find(keys.begin(), keys.end(), members[i].key) != keys.end()) taken_[i] = true;
  }
}

std::vector<std::string> ConfigKeys::left() const {
  std::vector<std::string> keys;
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!taken_[i] && !members[i].value.is_null()) keys.push_back(members[i].key);
  }
  return keys;
}

Status ConfigKeys::finish() const {
  const std::vector<std::string> keys = left();
  if (keys.empty()) return Ok{};
  return error(keys.front(), "unknown key")
      .advice("it may change the shape of the model, so it is not passed over; remove it if it does not");
}

std::string ConfigKeys::path_of(std::string_view key) const {
  constexpr std::size_t kShown = 80;
  key = key.substr(0, kShown);
  return path_.empty() ? std::string{key} : fmt::format("{}.{}", path_, key);
}

Error ConfigKeys::error(std::string_view key, std::string problem) const {
  const JsonValue* value = key.empty() ? value_ : value_->find(key);
  std::string place = value != nullptr && value->line() > 0 ? fmt::format("line {}", value->line()) : "";
  const std::string path = key.empty() ? path_ : path_of(key);
  if (!path.empty()) place += fmt::format("{}{}", place.empty() ? "" : ": ", path);
  return Error::at(*file_, std::move(place), std::move(problem));
}

Error ConfigKeys::wrong(std::string_view key, const JsonValue& found, std::string_view expected) const {
  return error(key).found(shown(found)).expected(std::string{expected});
}

}  // namespace stepcast::detail
