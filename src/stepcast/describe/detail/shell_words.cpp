#include "stepcast/describe/detail/shell_words.h"

#include <algorithm>

#include <fmt/format.h>

namespace stepcast::detail {

Result<std::vector<std::string>> split_shell_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\0') return Error::at("", fmt::format("byte {}", i)).found("a zero byte").expected("text");
    if ((c == '$' || c == '`') && quote != '\'') {
      return Error::at("", fmt::format("byte {}", i), "variables and commands are not expanded")
          .found(fmt::format("`{}`", line.substr(i, 24)))
          .advice("give the line with their values");
    }
    if (c == '\\' && quote != '\'') {
      if (++i == line.size()) break;
      if (line[i] == '\r' && i + 1 < line.size() && line[i + 1] == '\n') ++i;
      if (line[i] == '\n') continue;
      if (quote == '"' && line[i] != '"' && line[i] != '\\') word += '\\';
      word += line[i];
      in_word = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else if (c == '#' && !in_word) {
      i = std::min(line.find('\n', i), line.size());
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') return Error{fmt::format("a quote {} is not closed", quote)};
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace stepcast::detail
