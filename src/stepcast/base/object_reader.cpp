#include "stepcast/base/object_reader.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/words.h"

namespace stepcast {

// Lists and objects are only named, because they may be long.
std::string describe_value(const JsonValue& value) {
  if (value.is_array() || value.is_object()) return std::string{value.kind_name()};
  if (!value.is_text()) return compact_json(value);
  constexpr std::size_t kShown = 60;
  const std::string& text = value.text();
  return text.size() > kShown ? fmt::format("`{}...`", text.substr(0, kShown)) : fmt::format("`{}`", text);
}

Error error_at(const std::string& file, const JsonValue& value, std::string_view path, std::string problem) {
  std::string place = value.line() > 0 ? fmt::format("line {}", value.line()) : std::string{};
  if (!path.empty()) place += fmt::format("{}{}", place.empty() ? "" : ": ", path);
  return Error::at(file, std::move(place), std::move(problem));
}

Result<ObjectReader> ObjectReader::of(const JsonValue& value, std::string path, const std::string& file,
                                      NullMeans null, std::string_view advice) {
  if (!value.is_object())
    return error_at(file, value, path).found(describe_value(value)).expected("an object");
  return ObjectReader{value, std::move(path), file, null, advice};
}

// Linear search: objects have few members, and each key is read once. `known_` collects the keys for suggestions.
const JsonValue* ObjectReader::take(std::string_view key) {
  known_.emplace_back(key);
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].key != key) continue;
    taken_[i] = true;
    return counts(members[i].value) ? &members[i].value : nullptr;
  }
  return nullptr;
}

bool ObjectReader::has(std::string_view key) const {
  const JsonValue* value = value_->find(key);
  return value != nullptr && counts(*value);
}

std::string ObjectReader::path_of(std::string_view key) const {
  constexpr std::size_t kShown = 80;
  // Errors show the spelling of the file, which show_as() registered.
  const auto shown = std::ranges::find(shown_, key, &std::pair<std::string_view, std::string_view>::first);
  key = (shown == shown_.end() ? key : shown->second).substr(0, kShown);
  if (path_.empty() || key.empty()) return path_ + std::string{key};
  return fmt::format("{}.{}", path_, key);
}

// Without a member of this key, the error has the line of the object.
Error ObjectReader::error(std::string_view key, std::string problem) const {
  const JsonValue* member = key.empty() ? nullptr : value_->find(key);
  return error_at(*file_, member != nullptr ? *member : *value_, path_of(key), std::move(problem));
}

Error ObjectReader::wrong(std::string_view key, std::string_view found, std::string_view expected) const {
  constexpr std::size_t kShown = 60;
  return error(key).found(fmt::format("`{}`", found.substr(0, kShown))).expected(std::string{expected});
}

Error ObjectReader::wrong(std::string_view key, std::int64_t found, std::string_view expected) const {
  return error(key).found(fmt::format("{}", found)).expected(std::string{expected});
}

Error ObjectReader::wrong_kind(std::string_view key, const JsonValue& found,
                               std::string_view expected) const {
  return error_at(*file_, found, path_of(key)).found(describe_value(found)).expected(std::string{expected});
}

Status ObjectReader::optional(std::string_view key, std::string& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_text()) return wrong_kind(key, *member, "a text");
  out = member->text();
  return Ok{};
}

// A list of texts replaces `out`; an error may leave it partly filled.
Status ObjectReader::optional(std::string_view key, std::vector<std::string>& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_array()) return wrong_kind(key, *member, "a list of texts");
  out.clear();
  for (const JsonValue& item : member->items()) {
    if (!item.is_text()) return wrong_kind(key, item, "a list of texts");
    out.push_back(item.text());
  }
  return Ok{};
}

Status ObjectReader::optional(std::string_view key, bool& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_bool()) return wrong_kind(key, *member, "true or false");
  out = member->truth();
  return Ok{};
}

Status ObjectReader::optional(std::string_view key, double& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_number()) return wrong_kind(key, *member, "a number");
  out = member->number();
  return Ok{};
}

Status ObjectReader::optional(std::string_view key, std::optional<double>& out) {
  double number = 0;
  const bool is_there = has(key);
  STEPCAST_TRY(optional(key, number));
  if (is_there) out = number;
  return Ok{};
}

Status ObjectReader::optional(std::string_view key, std::int64_t& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  // Sizes of models and jobs are far below this limit.
  constexpr double kLargest = 1e12;
  if (!member->is_number() || member->number() < 0 || member->number() > kLargest ||
      member->number() != std::floor(member->number())) {
    return wrong_kind(key, *member, "a whole number from 0 to 1e12");
  }
  out = static_cast<std::int64_t>(member->number());
  return Ok{};
}

// The error for a missing key is at the line of the object.
Status ObjectReader::required(std::string_view key, std::int64_t& out) {
  if (!has(key)) return error("", fmt::format("`{}` is missing", path_of(key))).expected("a whole number");
  return optional(key, out);
}

// Numbers of a JsonValue are doubles, so integers above 2^53 cannot be read exactly and are rejected.
Status ObjectReader::count(std::string_view key, std::uint64_t smallest, std::uint64_t largest,
                           std::uint64_t& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  constexpr double kExact = 9007199254740992.0;  // 2^53: above, doubles skip whole numbers
  const std::string expected = fmt::format("a whole number from {} to {}", smallest, largest);
  if (!member->is_number()) return wrong_kind(key, *member, expected);
  const double x = member->number();
  if (!(x >= 0 && x <= kExact) || x != std::floor(x)) return wrong_kind(key, *member, expected);
  const auto whole = static_cast<std::uint64_t>(x);
  if (whole < smallest || whole > largest) return wrong_kind(key, *member, expected);
  out = whole;
  return Ok{};
}

Status ObjectReader::count(std::string_view key, std::uint64_t smallest, std::uint32_t largest,
                           std::uint32_t& out) {
  std::uint64_t wide = out;
  STEPCAST_TRY(count(key, smallest, std::uint64_t{largest}, wide));
  out = static_cast<std::uint32_t>(wide);
  return Ok{};
}

// The section inherits the meaning of null and the advice.
Result<std::optional<ObjectReader>> ObjectReader::section(std::string_view key) {
  const JsonValue* member = take(key);
  if (member == nullptr) return std::optional<ObjectReader>{};
  STEPCAST_ASSIGN(ObjectReader below, ObjectReader::of(*member, path_of(key), *file_, null_, advice_));
  return std::optional<ObjectReader>{std::move(below)};
}

void ObjectReader::ignore(std::string_view keys) {
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i)
    if (is_among(members[i].key, keys)) taken_[i] = true;
}

std::vector<std::string> ObjectReader::left() const {
  std::vector<std::string> keys;
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!taken_[i] && counts(members[i].value)) keys.push_back(members[i].key);
  return keys;
}

// Only the first unknown key is reported. Without a general advice, a similar known key is suggested.
Status ObjectReader::finish() const {
  const std::vector<std::string> keys = left();
  if (keys.empty()) return Ok{};
  std::string advice = advice_.empty() ? "remove it" : advice_;
  if (const auto meant = nearest_word(keys.front(), known_); advice_.empty() && meant)
    advice = fmt::format("did you mean `{}`?", *meant);
  return error(keys.front(), "unknown key").advice(std::move(advice));
}

}  // namespace stepcast
