// Whether a page is well-formed as we write them: every element closed in order, attributes in double quotes, no stray '<'.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::test {

// Empty if nothing is wrong.
inline std::string html_problem(std::string_view page) {
  constexpr std::array<std::string_view, 2> kVoid{"meta", "link"}, kRaw{"script", "style"};
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at)) {
    std::size_t end = at + 1;
    bool quoted = false;
    for (; end < page.size() && (quoted || page[end] != '>'); ++end) {
      if (page[end] == '"') quoted = !quoted;
      if (!quoted && page[end] == '<') return "a '<' inside a tag: " + std::string{page.substr(at, 80)};
    }
    if (end >= page.size()) return "a tag without an end: " + std::string{page.substr(at, 80)};
    std::string_view tag = page.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with("!DOCTYPE")) continue;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1))
        return "</" + std::string{tag.substr(1)} + "> closes something else";
      open.pop_back();
      continue;
    }
    const bool closed = tag.ends_with('/');
    if (closed) tag.remove_suffix(1);
    const std::string name{tag.substr(0, tag.find(' '))};
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
      return "no tag: <" + std::string{tag.substr(0, 60)};
    for (std::size_t i = name.size(); i < tag.size();) {
      const std::size_t equals = tag.find('=', i);
      if (equals == std::string_view::npos || equals + 1 >= tag.size() || tag[equals + 1] != '"')
        return "an attribute without quotes: <" + std::string{tag.substr(0, 80)};
      i = tag.find('"', equals + 2);
      if (i == std::string_view::npos)
        return "an attribute without an end: <" + std::string{tag.substr(0, 80)};
      ++i;
    }
    if (closed || name == kVoid[0] || name == kVoid[1]) continue;
    open.push_back(name);
    if (name == kRaw[0] || name == kRaw[1]) {
      at = page.find("</" + name + ">", at);
      if (at == std::string_view::npos) return "<" + name + "> is not closed";
    }
  }
  return open.empty() ? std::string{} : "<" + open.back() + "> is not closed";
}

}  // namespace stepcast::test
