#include "given_flags.h"

#include <algorithm>

#include "stepcast/base/words.h"

#include "in_process.h"

namespace stepcast::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Flags flags_in(std::span<const std::string> words, Question question) {
  const auto flag_named = [&](std::string_view name) {
    const Option* option = find_option(name, bit(question));
    return Flag{std::string{option != nullptr ? option->name() : name}, {}};
  };
  Flags all;
  for (const std::string& word : words) {
    const bool is_flag = word.size() > 1 && word[0] == '-' && !is_digit(word[1]) && word[1] != '.';
    if (!is_flag) {
      if (!all.empty()) all.back().values.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    all.push_back(flag_named(std::string_view{word}.substr(0, equals)));
    if (equals != std::string::npos) all.back().values.push_back(word.substr(equals + 1));
  }
  return all;
}

std::vector<std::string> words_of(const Flags& flags) {
  std::vector<std::string> words;
  for (const Flag& flag : flags) {
    words.push_back(flag.name);
    words.insert(words.end(), flag.values.begin(), flag.values.end());
  }
  return words;
}

bool is_said(const Flags& flags, std::string_view name) {
  return std::ranges::find(flags, name, &Flag::name) != flags.end();
}

bool is_of_output(const Flag& flag, Question question) {
  constexpr std::string_view kOfStep = "--what-if --measured --background-load --power-limit --layout";
  const Option* option = find_option(flag.name, bit(question));
  return option != nullptr && option->under == OptionHeading::result && !is_among(flag.name, kOfStep);
}

bool wants_advice(std::string_view wanted) {
  return wanted.empty() ? verb_sink() == nullptr : wanted == "on";
}

}  // namespace stepcast::cli
