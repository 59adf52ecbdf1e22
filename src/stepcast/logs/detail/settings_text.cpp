#include "stepcast/logs/detail/settings_text.h"

#include <utility>
#include <vector>

#include "stepcast/base/text.h"
#include "stepcast/logs/detail/log_text.h"

namespace stepcast::detail {
namespace {

bool is_letter(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

std::string python_to_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      out += '"';
      for (++i; i < text.size() && text[i] != c; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
          if (text[i + 1] != '\'') out += text[i];
          out += text[++i];
        } else if (text[i] == '"') {
          out += "\\\"";
        } else {
          out += text[i];
        }
      }
      out += '"';
      ++i;
    } else if (is_letter(c)) {
      std::size_t end = i;
      while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]) || text[end] == '.')) ++end;
      const std::string_view word = text.substr(i, end - i);
      if (word == "True" || word == "true") {
        out += "true";
      } else if (word == "False" || word == "false") {
        out += "false";
      } else if (word == "None" || word == "null") {
        out += "null";
      } else {
        out += '"';
        out += word;
        out += '"';
      }
      i = end;
    } else if (is_digit(c) || c == '-' || c == '+') {  // with its exponent, which is no word
      std::size_t end = i + 1;
      while (end < text.size() &&
             (is_digit(text[end]) || text[end] == '.' || text[end] == 'e' || text[end] == 'E' ||
              ((text[end] == '-' || text[end] == '+') && lower(text[end - 1]) == 'e')))
        ++end;
      out += text.substr(i, end - i);
      i = end;
    } else {
      out += c == '(' ? '[' : c == ')' ? ']' : c;
      ++i;
    }
  }
  return out;
}

std::map<std::string, std::string, std::less<>> yaml_scalars(std::string_view text) {
  std::map<std::string, std::string, std::less<>> scalars;
  std::vector<std::pair<std::size_t, std::string>> open;  // indent and path of the mappings around
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos || line[indent] == '#' || line[indent] == '-') continue;
    const std::size_t colon = line.find(':', indent);
    if (colon == std::string_view::npos) continue;
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    const std::string_view key = without_quotes(trimmed(line.substr(indent, colon - indent)));
    std::string path = open.empty() ? std::string{key} : open.back().second + "." + std::string{key};
    const std::string_view value = without_quotes(trimmed(line.substr(colon + 1)));
    constexpr std::size_t kDeepest = 16;
    if (value.empty()) {
      if (open.size() < kDeepest) open.emplace_back(indent, std::move(path));
    } else if (value.front() != '&' && value.front() != '|') {
      scalars.insert_or_assign(std::move(path), std::string{value});
    }
  }
  return scalars;
}

}  // namespace stepcast::detail
