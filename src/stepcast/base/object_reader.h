// Reads the members of a JSON object by key and finally reports keys that were not read.
//
//   STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(value, "device", file));
//   STEPCAST_TRY(o.optional("name", device.name));
//   STEPCAST_TRY(o.finish());     // an unknown key is an error that names the nearest known one
//
// Errors name the file, line and path: "my.json: line 12: device.memory_bandwidth_GBps: found -3, expected a
// number above 0".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// The meaning of a null member.
enum class NullMeans : std::uint8_t {
  a_value,  // a value like others: an error if another kind is expected
  absent,   // the key counts as missing, as in files that other software writes
};

class ObjectReader {
 public:
  // `path` leads to `value` in its document, and is empty for the root. `value` and `file` must outlive the
  // reader. `advice` is added to the error for unknown keys; if empty, the error suggests the nearest known key.
  [[nodiscard]] static Result<ObjectReader> of(const JsonValue& value, std::string path,
                                               const std::string& file, NullMeans null = NullMeans::a_value,
                                               std::string_view advice = {});

  // The member with this key, which is known from then on. Null if it is missing.
  [[nodiscard]] const JsonValue* take(std::string_view key);
  // Whether the key is present. It does not become known.
  [[nodiscard]] bool has(std::string_view key) const;

  // Each reads a member of the given type. If it is missing, `out` does not change. Errors: another type.
  [[nodiscard]] Status optional(std::string_view key, std::string& out);
  [[nodiscard]] Status optional(std::string_view key, std::vector<std::string>& out);
  [[nodiscard]] Status optional(std::string_view key, bool& out);
  [[nodiscard]] Status optional(std::string_view key, double& out);
  [[nodiscard]] Status optional(std::string_view key, std::optional<double>& out);
  // A whole number from 0 to 1e12.
  [[nodiscard]] Status optional(std::string_view key, std::int64_t& out);
  [[nodiscard]] Status required(std::string_view key, std::int64_t& out);
  // An integer from `smallest` to `largest`, at most 2^53.
  [[nodiscard]] Status count(std::string_view key, std::uint64_t smallest, std::uint64_t largest,
                             std::uint64_t& out);
  [[nodiscard]] Status count(std::string_view key, std::uint64_t smallest, std::uint32_t largest,
                             std::uint32_t& out);
  // A reader for an object that is a member of this one; nothing if it is missing.
  [[nodiscard]] Result<std::optional<ObjectReader>> section(std::string_view key);

  // Accepts these keys (names separated by blanks) without reading them.
  void ignore(std::string_view keys);
  // Makes errors at `key` show `shown` instead. Both must outlive the reader.
  void show_as(std::string_view key, std::string_view shown) { shown_.emplace_back(key, shown); }
  // Keys that were not read, in file order.
  [[nodiscard]] std::vector<std::string> left() const;
  // Errors: a key that was not read.
  [[nodiscard]] Status finish() const;

  [[nodiscard]] const std::string& file() const { return *file_; }
  [[nodiscard]] const JsonValue& value() const { return *value_; }
  // The path of a member, as errors show it.
  [[nodiscard]] std::string path_of(std::string_view key) const;
  // An error at a member, or at the object if `key` is empty.
  [[nodiscard]] Error error(std::string_view key, std::string problem = {}) const;
  // An error with a found value (a word or number) and what was expected. wrong_kind(): the found value is of
  // another type.
  [[nodiscard]] Error wrong(std::string_view key, std::string_view found, std::string_view expected) const;
  [[nodiscard]] Error wrong(std::string_view key, std::int64_t found, std::string_view expected) const;
  [[nodiscard]] Error wrong_kind(std::string_view key, const JsonValue& found,
                                 std::string_view expected) const;

 private:
  ObjectReader(const JsonValue& value, std::string path, const std::string& file, NullMeans null,
               std::string_view advice)
      : value_(&value),
        path_(std::move(path)),
        file_(&file),
        null_(null),
        advice_(advice),
        taken_(value.members().size(), false) {}
  // Whether a value is present, given the meaning of null.
  [[nodiscard]] bool counts(const JsonValue& value) const {
    return null_ == NullMeans::a_value || !value.is_null();
  }

  const JsonValue* value_;
  std::string path_;
  const std::string* file_;
  NullMeans null_;
  std::string advice_;
  std::vector<bool> taken_;  // for each member: whether it was read
  // Keys that were asked for, as candidates for suggestions.
  std::vector<std::string> known_;
  std::vector<std::pair<std::string_view, std::string_view>> shown_;
};

// A value as errors show it: -3, `text`, "an object". Texts are cut to 60 characters.
[[nodiscard]] std::string describe_value(const JsonValue& value);
// An error at the line of `value`; `path` leads to the value in its document.
[[nodiscard]] Error error_at(const std::string& file, const JsonValue& value, std::string_view path,
                             std::string problem = {});

}  // namespace stepcast
