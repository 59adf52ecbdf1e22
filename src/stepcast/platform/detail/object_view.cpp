#include "stepcast/platform/detail/object_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace stepcast::detail {

std::string describe_value(const JsonValue& value) {
  if (value.is_number() || value.is_bool() || value.is_null()) return compact_json(value);
  if (!value.is_text()) return std::string{value.kind_name()};
  constexpr std::size_t kShown = 60;
  const std::string& text = value.text();
  return text.size() > kShown ? fmt::format("`{}...`", text.substr(0, kShown)) : fmt::format("`{}`", text);
}

Error error_at(const std::string& file, const JsonValue& value, std::string_view path, std::string problem) {
  std::string place = value.line() > 0 ? fmt::format("line {}", value.line()) : std::string{};
  if (!path.empty()) place += fmt::format("{}{}", place.empty() ? "" : ": ", path);
  return Error::at(file, std::move(place), std::move(problem));
}

Result<ObjectView> ObjectView::of(const JsonValue& value, std::string path, const std::string& file) {
  if (!value.is_object()) {
    return error_at(file, value, path).found(describe_value(value)).expected("an object");
  }
  return ObjectView{value, std::move(path), file};
}

const JsonValue* ObjectView::take(std::string_view key) {
  known_.emplace_back(key);
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].key == key) {
      taken_[i] = true;
      return &members[i].value;
    }
  }
  return nullptr;
}

std::string ObjectView::path_of(std::string_view key) const {
  if (path_.empty() || key.empty()) return path_ + std::string{key};
  return fmt::format("{}.{}", path_, key);
}

Error ObjectView::error(std::string_view key, std::string problem) const {
  const JsonValue* member = key.empty() ? nullptr : value_->find(key);
  return error_at(*file_, member != nullptr ? *member : *value_, path_of(key), std::move(problem));
}

Error ObjectView::wrong_kind(std::string_view key, const JsonValue& found, std::string_view expected) const {
  return error_at(*file_, found, path_of(key)).found(describe_value(found)).expected(std::string{expected});
}

Status ObjectView::text(std::string_view key, std::string& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_text()) return wrong_kind(key, *member, "a text");
  out = member->text();
  return Ok{};
}

Status ObjectView::texts(std::string_view key, std::vector<std::string>& out) {
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

Status ObjectView::truth(std::string_view key, bool& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_bool()) return wrong_kind(key, *member, "true or false");
  out = member->truth();
  return Ok{};
}

Status ObjectView::number(std::string_view key, double& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_number()) return wrong_kind(key, *member, "a number");
  out = member->number();
  return Ok{};
}

Status ObjectView::number(std::string_view key, std::optional<double>& out) {
  const JsonValue* member = take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_number()) return wrong_kind(key, *member, "a number");
  out = member->number();
  return Ok{};
}

Status ObjectView::count(std::string_view key, std::uint64_t smallest, std::uint64_t largest,
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

Status ObjectView::count(std::string_view key, std::uint64_t smallest, std::uint32_t largest,
                         std::uint32_t& out) {
  std::uint64_t wide = out;
  STEPCAST_TRY(count(key, smallest, std::uint64_t{largest}, wide));
  out = static_cast<std::uint32_t>(wide);
  return Ok{};
}

Status ObjectView::finish() const {
  const auto& members = value_->members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (taken_[i]) continue;
    std::string advice = "remove it";
    if (const auto meant = nearest_word(members[i].key, known_))
      advice = fmt::format("did you mean `{}`?", *meant);
    return error_at(*file_, members[i].value, path_of(members[i].key), "unknown key")
        .advice(std::move(advice));
  }
  return Ok{};
}

}  // namespace stepcast::detail
