// Takes the keys of a JSON object that somebody else's software wrote, one by one, and knows in the end which
// ones nobody asked for. null counts as not there, as it does for those who write such files.
//
//   STEPCAST_ASSIGN(ConfigKeys keys, ConfigKeys::of(value, "", file));
//   STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
//   keys.ignore(kHarmless);
//   STEPCAST_TRY(keys.finish());      // "config.json: line 7: n_streams: unknown key; ..."
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

class ConfigKeys {
 public:
  // `path` is empty for the document itself. `value` and `file` must outlive this.
  [[nodiscard]] static Result<ConfigKeys> of(const JsonValue& value, std::string path,
                                             const std::string& file);

  // The value, which counts as known from now on; null pointer if it is not there.
  [[nodiscard]] const JsonValue* take(std::string_view key);
  [[nodiscard]] bool has(std::string_view key) const;

  // A whole number from 0 to 1e12. The others leave `out` alone if the key is not there.
  [[nodiscard]] Status required(std::string_view key, std::int64_t& out);
  [[nodiscard]] Status optional(std::string_view key, std::int64_t& out);
  [[nodiscard]] Status optional(std::string_view key, double& out);
  [[nodiscard]] Status optional(std::string_view key, bool& out);
  [[nodiscard]] Status optional(std::string_view key, std::string& out);
  // An object below this one; nothing if it is not there.
  [[nodiscard]] Result<std::optional<ConfigKeys>> section(std::string_view key);

  void ignore(std::span<const std::string_view> keys);
  // Keys that nobody took, in the order of the file, null ones left out.
  [[nodiscard]] std::vector<std::string> left() const;
  // An error if a key is left.
  [[nodiscard]] Status finish() const;

  // An error at a key, or at the object if `key` is empty.
  [[nodiscard]] Error error(std::string_view key, std::string problem = {}) const;
  [[nodiscard]] std::string path_of(std::string_view key) const;

 private:
  ConfigKeys(const JsonValue& value, std::string path, const std::string& file)
      : value_(&value), path_(std::move(path)), file_(&file), taken_(value.members().size(), false) {}
  [[nodiscard]] Error wrong(std::string_view key, const JsonValue& found, std::string_view expected) const;

  const JsonValue* value_;
  std::string path_;
  const std::string* file_;
  std::vector<bool> taken_;
};

// "found" of an error: -3, `text`, "an object".
[[nodiscard]] std::string shown(const JsonValue& value);

}  // namespace stepcast::detail
