// Writes HTML and SVG piece by piece. Every text and attribute is escaped, and every element is closed.
//
//   Markup page;
//   page.open("p", {{"class", "verdict"}}).text(model_name).close();
//   svg.leaf("rect", {{"x", 12.5}, {"width", 80}});
//
// Tags and names of attributes come from this program; texts and values of attributes may come from anywhere.
// A Markup that is complete (depth 0) can be appended to another one.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// Escapes a text for elements and for attributes in double quotes. Invalid UTF-8, control characters except
// tab and line break, and characters that change the direction of text become visible replacements.
[[nodiscard]] std::string escape_markup(std::string_view text);

// A coordinate with at most one decimal and without exponent; "0" if it is not finite.
[[nodiscard]] std::string coordinate(double value);

// A piece of HTML or SVG. Functions return *this, so that calls can be chained.
class Markup {
 public:
  // An attribute with a text or a number as its value. Numbers are written as coordinates.
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

  // Opens an element; close() closes the element that was opened last.
  Markup& open(std::string_view tag, Attributes attributes = {});
  Markup& close();
  // An element without content: <rect .../>, <br/>.
  Markup& leaf(std::string_view tag, Attributes attributes = {});
  // An element that contains only text.
  Markup& element(std::string_view tag, Attributes attributes, std::string_view text);
  // A text, escaped; and another complete piece, unchanged.
  Markup& text(std::string_view text);
  Markup& append(const Markup& other);

  // The number of open elements.
  [[nodiscard]] std::size_t depth() const { return open_.size(); }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  // The start of a tag with its attributes, without the closing bracket.
  void begin(std::string_view tag, Attributes attributes);

  std::string text_;
  std::vector<std::string> open_;
};

}  // namespace stepcast
