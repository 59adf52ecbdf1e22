// HTML and SVG piece by piece: every text and attribute is escaped, every element is closed.
//
//   Markup page;
//   page.open("p", {{"class", "verdict"}}).text(model_name).close();
//   svg.leaf("rect", {{"x", 12.5}, {"width", 80}});
//
// Tags and names of attributes are ours; texts and values of attributes may come from anywhere. A Markup that is
// complete (depth 0) may be put into another as it is.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// For text and for values of attributes in double quotes. Bytes that are no UTF-8, control characters but for tab and
// line break, and what turns the direction of text become visible characters.
[[nodiscard]] std::string escape_markup(std::string_view text);

// At most one decimal and no exponent, for coordinates; 0 for what is not finite.
[[nodiscard]] std::string coordinate(double value);

class Markup {
 public:
  struct Attribute {
    Attribute(std::string_view key, std::string_view text) : name(key), value(text) {}
    Attribute(std::string_view key, const char* text) : name(key), value(text) {}
    Attribute(std::string_view key, const std::string& text) : name(key), value(text) {}
    template <class Number>
      requires std::integral<Number> || std::floating_point<Number>
    Attribute(std::string_view key, Number number)
        : name(key), value(coordinate(static_cast<double>(number))) {}
    std::string_view name;
    std::string value;
  };
  using Attributes = std::initializer_list<Attribute>;

  Markup& open(std::string_view tag, Attributes attributes = {});
  Markup& close();
  // An element without content: <rect .../>, <br/>.
  Markup& leaf(std::string_view tag, Attributes attributes = {});
  // An element with nothing but text.
  Markup& element(std::string_view tag, Attributes attributes, std::string_view text);
  Markup& text(std::string_view text);
  Markup& append(const Markup& other);

  [[nodiscard]] std::size_t depth() const { return open_.size(); }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  void begin(std::string_view tag, Attributes attributes);

  std::string text_;
  std::vector<std::string> open_;
};

}  // namespace stepcast
