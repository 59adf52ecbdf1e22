// Reads the members of a JSON object one by one, and complains in the end about what nobody asked for.
//
//   STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(value, "device", file));
//   STEPCAST_TRY(o.optional("name", device.name));
//   STEPCAST_TRY(o.finish());     // an unknown key is an error that names the nearest known one
//
// Errors say file, line and path: "my.json: line 12: device.memory_bandwidth_GBps: found -3, expected a
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

enum class NullMeans : std::uint8_t {
  a_value,  // like any other: an error where something else is expected
  absent,   // the key is not there, as in files that other software writes
};

class ObjectReader {
 public:
  // `path` is empty for the document itself. `value` and `file` must outlive this. `advice` goes with unknown
  // keys; without one the nearest known key does.
  [[nodiscard]] static Result<ObjectReader> of(const JsonValue& value, std::string path,
                                               const std::string& file, NullMeans null = NullMeans::a_value,
                                               std::string_view advice = {});

  // The member, which counts as known from now on; null pointer if it is not there.
  [[nodiscard]] const JsonValue* take(std::string_view key);
  [[nodiscard]] bool has(std::string_view key) const;

  // Each leaves `out` alone if the member is not there.
  [[nodiscard]] Status optional(std::string_view key, std::string& out);
  [[nodiscard]] Status optional(std::string_view key, std::vector<std::string>& out);
  [[nodiscard]] Status optional(std::string_view key, bool& out);
  [[nodiscard]] Status optional(std::string_view key, double& out);
  [[nodiscard]] Status optional(std::string_view key, std::optional<double>& out);
  // A whole number from 0 to 1e12.
  [[nodiscard]] Status optional(std::string_view key, std::int64_t& out);
  [[nodiscard]] Status required(std::string_view key, std::int64_t& out);
  // A whole number from `smallest` to `largest`.
  [[nodiscard]] Status count(std::string_view key, std::uint64_t smallest, std::uint64_t largest,
                             std::uint64_t& out);
  [[nodiscard]] Status count(std::string_view key, std::uint64_t smallest, std::uint32_t largest,
                             std::uint32_t& out);
  // An object below this one, read in the same way; nothing if it is not there.
  [[nodiscard]] Result<std::optional<ObjectReader>> section(std::string_view key);

  // Keys that may stand there and mean nothing here: names with blanks between them.
  void ignore(std::string_view keys);
  // Errors at `key` name it so; both must outlive this.
  void show_as(std::string_view key, std::string_view shown) { shown_.emplace_back(key, shown); }
  // Keys that nobody took, in the order of the file.
  [[nodiscard]] std::vector<std::string> left() const;
  // An error if a key is left.
  [[nodiscard]] Status finish() const;

  [[nodiscard]] const std::string& file() const { return *file_; }
  [[nodiscard]] const JsonValue& value() const { return *value_; }
  [[nodiscard]] std::string path_of(std::string_view key) const;
  // An error at a member, or at the object if `key` is empty.
  [[nodiscard]] Error error(std::string_view key, std::string problem = {}) const;
  // The same with what was found, a word or a number, and what was expected.
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
  [[nodiscard]] bool counts(const JsonValue& value) const {
    return null_ == NullMeans::a_value || !value.is_null();
  }

  const JsonValue* value_;
  std::string path_;
  const std::string* file_;
  NullMeans null_;
  std::string advice_;
  std::vector<bool> taken_;  // [member]
  std::vector<std::string> known_;
  std::vector<std::pair<std::string_view, std::string_view>> shown_;
};

// "found" of an error: -3, `text`, "an object".
[[nodiscard]] std::string describe_value(const JsonValue& value);
// `path` leads to the value in its document.
[[nodiscard]] Error error_at(const std::string& file, const JsonValue& value, std::string_view path,
                             std::string problem = {});

}  // namespace stepcast
