// Answers of verbs inside the test, by command lines as somebody types them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/report/forecast_json.h"

#include "in_process.h"

namespace stepcast::test {

inline std::vector<std::string> words_in(const std::string& command) {
  std::vector<std::string> words;
  bool in_word = false, quoted = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      in_word = false;
    } else {
      if (!std::exchange(in_word, true)) words.emplace_back();
      words.back() += c;
    }
  }
  return words;
}

// "stepcast predict ..." with `--json`.
inline std::string json_of(const std::string& command) {
  static const auto session = std::make_shared<const Session>();
  std::vector<std::string> words = words_in(command);
  words.erase(words.begin());  // the program
  words.emplace_back("--json");
  const cli::VerbOutcome outcome =
      cli::run_verb(words, {.session = [](const std::string& /*platform*/) { return session; }});
  EXPECT_EQ(outcome.error, "") << command;
  return outcome.output;
}

inline Forecast answer_alone(const std::string& command) {
  const Result<Forecast> forecast = forecast_from_json(json_of(command));
  EXPECT_TRUE(forecast.ok()) << command;
  return forecast ? *forecast : Forecast{};
}

inline Forecast answer_of(const std::string& command) { return answer_alone(command + " --advice on"); }

inline ForecastAdvice advice_of(const std::string& command) {
  return answer_of(command).what_to_change.value_or(ForecastAdvice{});
}

}  // namespace stepcast::test
