#include "stepcast/sweep/option_table.h"

#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/words.h"
#include "stepcast/sweep/sweep_keys.h"

namespace stepcast::option_table_test {
namespace {

TEST(OptionTable, NamesNothingTwiceForAQuestion) {
  for (const Question question : kQuestions) {
    std::set<std::string> spellings, keywords, keys;
    for (const Option& option : option_table()) {
      if ((option.of & bit(question)) == 0) continue;
      any_word(
          option.flags,
          [&](std::string_view name) {
            EXPECT_TRUE(name.starts_with("--")) << name;
            EXPECT_TRUE(spellings.emplace(name).second) << name << ", of " << to_string(question);
            EXPECT_EQ(find_option(name, bit(question)), &option) << name;
            return false;
          },
          ',');
      EXPECT_TRUE(keywords.insert(option.python_keyword()).second) << option.name();
      if (option.sweep != SweepValue::none) {
        EXPECT_TRUE(keys.insert(option.sweep_key()).second) << option.name();
      }
    }
    EXPECT_GT(spellings.size(), 20U) << to_string(question);
  }
}

TEST(OptionTable, SaysOfEveryOptionWhatItMeans) {
  for (const Option& option : option_table()) {
    EXPECT_NE(option.of, 0U) << option.name();
    EXPECT_FALSE(option.meaning.empty()) << option.name();
    EXPECT_FALSE(option.kind == OptionKind::truth && !option.unit.empty()) << option.name();
  }
  EXPECT_EQ(find_option("--top", kPredictQuestions), nullptr);
  EXPECT_EQ(find_option("--tensor-model-parallel-size", kPlanQuestions)->name(), "--tp");
}

// A sweep reads a key before it knows more than the mode: both rows of an option say alike how.
TEST(OptionTable, HasTheKeysOfSweeps) {
  std::map<std::string, SweepValue> read_as;
  for (const Option& option : option_table()) {
    if (option.sweep == SweepValue::none) continue;
    const std::string key = option.sweep_key();
    EXPECT_EQ(read_as.emplace(key, option.sweep).first->second, option.sweep) << key;
    const std::size_t comma = option.flags.find(',');  // the name that Megatron-LM has for it
    if (comma != std::string_view::npos) {
      EXPECT_EQ(sweep_key(option.flags.substr(comma + 1)), key);
      EXPECT_EQ(flag_of_key(key), option.flags.substr(comma + 1));
    }
  }
  for (const auto& [key, value] : read_as) {
    for (const SweepMode mode : {SweepMode::predict, SweepMode::plan}) {
      bool has_row = false;
      for (const Option& option : option_table())
        has_row = has_row || ((option.of & questions_of(mode)) != 0 && option.sweep_key() == key &&
                              option.sweep != SweepValue::none);
      EXPECT_EQ(is_sweep_key(key, mode), has_row) << key << ", mode " << to_string(mode);
    }
  }
}

}  // namespace
}  // namespace stepcast::option_table_test
