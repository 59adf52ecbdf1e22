// Reads the members of a JSON object one by one and complains about what nobody asked for.
//
//   STEPCAST_ASSIGN(ObjectView o, ObjectView::of(value, "device", file));
//   STEPCAST_TRY(o.text("name", device.name));
//   STEPCAST_TRY(o.finish());     // an unknown key is an error that names the nearest known one
//
// Errors say file, line and path: "my.json: line 12: device.memory_bandwidth_GBps: found -3, expected a
// number above 0".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

class ObjectView {
 public:
  // `path` is empty for the document itself. `file` must outlive the view.
  [[nodiscard]] static Result<ObjectView> of(const JsonValue& value, std::string path,
                                             const std::string& file);

  // The member, which counts as known from now on; null pointer if it is not there.
  [[nodiscard]] const JsonValue* take(std::string_view key);

  // Each leaves `out` alone if the member is not there.
  [[nodiscard]] Status text(std::string_view key, std::string& out);
  [[nodiscard]] Status texts(std::string_view key, std::vector<std::string>& out);
  [[nodiscard]] Status truth(std::string_view key, bool& out);
  [[nodiscard]] Status number(std::string_view key, double& out);
  [[nodiscard]] Status number(std::string_view key, std::optional<double>& out);
  // A whole number from `smallest` to `largest`.
  [[nodiscard]] Status count(std::string_view key, std::uint64_t smallest, std::uint64_t largest,
                             std::uint64_t& out);
  [[nodiscard]] Status count(std::string_view key, std::uint64_t smallest, std::uint32_t largest,
                             std::uint32_t& out);

  [[nodiscard]] Status finish() const;

  [[nodiscard]] const std::string& file() const { return *file_; }
  [[nodiscard]] std::string path_of(std::string_view key) const;
  // An error at a member, or at the object if `key` is empty.
  [[nodiscard]] Error error(std::string_view key, std::string problem = {}) const;
  [[nodiscard]] Error wrong_kind(std::string_view key, const JsonValue& found,
                                 std::string_view expected) const;

 private:
  ObjectView(const JsonValue& value, std::string path, const std::string& file)
      : value_(&value), path_(std::move(path)), file_(&file), taken_(value.members().size(), false) {}
  const JsonValue* value_;
  std::string path_;
  const std::string* file_;
  std::vector<bool> taken_;
  std::vector<std::string> known_;
};

// "found" of an error: -3, `text`, "an object".
[[nodiscard]] std::string describe_value(const JsonValue& value);
[[nodiscard]] Error error_at(const std::string& file, const JsonValue& value, std::string_view path,
                             std::string problem = {});

}  // namespace stepcast::detail
