// Enough of a JSON reader to check what the reports write: a tree of values, or nothing if the text is no
// JSON.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::fixtures {

struct Json {
  enum class Kind { null, boolean, number, text, array, object };
  Kind kind = Kind::null;
  double number = 0;
  std::string text;
  std::vector<Json> items;
  std::map<std::string, Json> fields;

  [[nodiscard]] bool has(const std::string& key) const { return fields.count(key) == 1; }
  [[nodiscard]] const Json& operator[](const std::string& key) const {
    static const Json kNothing;
    const auto found = fields.find(key);
    return found == fields.end() ? kNothing : found->second;
  }
  [[nodiscard]] const Json& operator[](std::size_t i) const { return items.at(i); }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}
  std::optional<Json> run() {
    Json value;
    if (!read(value)) return std::nullopt;
    space();
    if (!rest_.empty()) return std::nullopt;
    return value;
  }

 private:
  void space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0)
      rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  bool read_text(std::string& text) {
    if (!take("\"")) return false;
    while (!rest_.empty() && rest_.front() != '"') {
      if (static_cast<unsigned char>(rest_.front()) < 0x20) return false;
      if (rest_.front() == '\\' && rest_.size() > 1) {
        text += rest_[1];
        rest_.remove_prefix(2);
      } else {
        text += rest_.front();
        rest_.remove_prefix(1);
      }
    }
    return take("\"");
  }
  bool read(Json& value) {
    space();
    if (take("{")) {
      value.kind = Json::Kind::object;
      if (take("}")) return true;
      do {
        std::string key;
        space();
        if (!read_text(key) || !take(":") || value.has(key) || !read(value.fields[key])) return false;
      } while (take(","));
      return take("}");
    }
    if (take("[")) {
      value.kind = Json::Kind::array;
      if (take("]")) return true;
      do {
        if (!read(value.items.emplace_back())) return false;
      } while (take(","));
      return take("]");
    }
    if (rest_.starts_with("\"")) {
      value.kind = Json::Kind::text;
      return read_text(value.text);
    }
    if (take("null")) return true;
    if (take("true") || take("false")) {
      value.kind = Json::Kind::boolean;
      return true;
    }
    const std::string digits{rest_.substr(0, rest_.find_first_of(",]} \n"))};
    char* end = nullptr;
    value.kind = Json::Kind::number;
    value.number = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0') return false;
    rest_.remove_prefix(digits.size());
    return true;
  }
  std::string_view rest_;
};

inline std::optional<Json> parse_json(std::string_view text) { return JsonReader{text}.run(); }

}  // namespace stepcast::fixtures
