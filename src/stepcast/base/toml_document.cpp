#include "stepcast/base/toml_document.h"

#include <cmath>

#include <fmt/format.h>

// toml++ is used header-only and without exceptions. Some of its assertions (version 3.3) fail on input that
// it rejects a few lines later, such as "[" and a line break before a key. With NDEBUG they become hints to
// the optimizer and thus undefined behaviour; without it they abort. So they are disabled in both modes.
#ifdef NDEBUG
#undef NDEBUG
#define STEPCAST_RESTORE_NDEBUG
#endif
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#ifdef STEPCAST_RESTORE_NDEBUG
#define NDEBUG
#endif

namespace stepcast {
namespace {

// Converts a toml++ tree into JsonValues with lines. Numbers become doubles; dates and times are errors.
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
      if (!std::isfinite(number->get()))
        return Error::at(name_, fmt::format("line {}", from.source().begin.line)).expected("a finite number");
      result = JsonValue{number->get()};
    } else {
      return Error::at(name_, fmt::format("line {}", from.source().begin.line))
          .found("a date or a time")
          .expected("a text, a number, true or false")
          .advice("quote it if it is a text");
    }
    result.set_line(from.source().begin.line);
    return result;
  }

  const std::string& name_;
};

// Line `number` (from 1) of the text, without surrounding blanks.
std::string line_of(std::string_view text, std::size_t number) {
  for (; number > 1 && text.find('\n') != std::string_view::npos; --number)
    text.remove_prefix(text.find('\n') + 1);
  text = text.substr(0, text.find('\n'));
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string{text.substr(first, text.find_last_not_of(" \t\r") + 1 - first)};
}

}  // namespace

Result<JsonValue> parse_toml(std::string_view text, const std::string& name) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (text.size() > kMostBytes)
    return Error::at(name, "", "too large").expected("a TOML file of at most 1 MiB");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  // toml++ 3.3 checks parts of its input only by assertions, so it is given printable ASCII only. Control
  // characters are not valid TOML, and no key or value that is read contains other letters.
  std::string plain;
  plain.reserve(text.size());
  std::size_t line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\t' && c != '\n' && c != '\r') || code == 0x7f) {
      return Error::at(name, fmt::format("line {}", line), "not valid TOML")
          .found(fmt::format("the control character {}", code))
          .expected("text");
    }
    plain += code < 0x80 ? c : '?';
  }
  const toml::parse_result parsed = toml::parse(std::string_view{plain});
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    // The most common mistake is a text without quotes, so it gets a clearer message.
    if (error.description().find("could not determine value type") != std::string_view::npos) {
      return Error::at(name, fmt::format("line {}", error.source().begin.line))
          .found(fmt::format("`{}`", line_of(plain, error.source().begin.line).substr(0, 80)))
          .expected("KEY = VALUE with a number, true, false, a list or a text in quotes")
          .advice("put texts into quotes");
    }
    return Error::at(name, fmt::format("line {}", error.source().begin.line),
                     fmt::format("not valid TOML ({})", error.description()));
  }
  return TreeConverter{name}.table(parsed.table(), 1);
}

}  // namespace stepcast
