#include "stepcast/workload/detail/toml_document.h"

#include <cmath>
#include <sstream>

#include <fmt/format.h>

// Without exceptions, and without the compiled library of the package.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace stepcast::detail {
namespace {

class TreeConverter {
 public:
  explicit TreeConverter(const std::string& name) : name_(name) {}

  Result<JsonValue> table(const toml::table& from, int depth) const {
    if (depth > kMostLevels) return too_deep(from);
    JsonValue result = JsonValue::object();
    for (const auto& [key, value] : from) {
      STEPCAST_ASSIGN(JsonValue converted, node(value, depth));
      result.add(key.str(), std::move(converted));
    }
    result.set_line(from.source().begin.line);
    return result;
  }

 private:
  static constexpr int kMostLevels = 32;

  Error too_deep(const toml::node& from) const {
    return Error::at(name_, fmt::format("line {}", from.source().begin.line), "too deeply nested")
        .expected(fmt::format("at most {} levels", kMostLevels));
  }

  Result<JsonValue> array(const toml::array& from, int depth) const {
    if (depth > kMostLevels) return too_deep(from);
    JsonValue result = JsonValue::array();
    for (const toml::node& item : from) {
      STEPCAST_ASSIGN(JsonValue converted, node(item, depth));
      result.add(std::move(converted));
    }
    return result;
  }

  Result<JsonValue> node(const toml::node& from, int depth) const {
    if (const auto* inner = from.as_table()) return table(*inner, depth + 1);
    JsonValue result;
    if (const auto* items = from.as_array()) {
      STEPCAST_ASSIGN(result, array(*items, depth + 1));
    } else if (const auto* text = from.as_string()) {
      result = JsonValue{text->get()};
    } else if (const auto* truth = from.as_boolean()) {
      result = JsonValue{truth->get()};
    } else if (const auto* whole = from.as_integer()) {
      result = JsonValue{static_cast<double>(whole->get())};
    } else if (const auto* number = from.as_floating_point()) {
      if (!std::isfinite(number->get())) {
        return Error::at(name_, fmt::format("line {}", from.source().begin.line)).expected("a finite number");
      }
      result = JsonValue{number->get()};
    } else {
      result = JsonValue{"a date or time"};
    }
    result.set_line(from.source().begin.line);
    return result;
  }

  const std::string& name_;
};

}  // namespace

Result<JsonValue> parse_toml(std::string_view text, const std::string& name) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (text.size() > kMostBytes)
    return Error::at(name, "", "too large").expected("a TOML file of at most 1 MiB");
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error::at(name, fmt::format("line {}", error.source().begin.line),
                     fmt::format("not valid TOML ({})", error.description()));
  }
  return TreeConverter{name}.table(parsed.table(), 1);
}

}  // namespace stepcast::detail
