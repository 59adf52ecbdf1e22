// The options of `predict` and `plan`, a row of option_table.def each: what an option is called, which questions it means
// something for, what it takes and means. The command line, the keys of sweeps, the keywords of Python and
// docs/reference/options.md are read from these rows.
//
//   const Option* option = find_option("--tp", bit(Question::described));   // also "--tensor-model-parallel-size"
//   option->meaning                                                         // "tensor parallel degree"
//
// A new option is a row, and the member that takes its value. The first cell of a row names that member for each program
// that reads it: PREDICT(member of PredictOptions) and PLAN(member of PlanOptions) in apps/stepcast, SWEEP(member of what
// sweep_question.cpp fills), PYTHON(member of DescribedStep, for calls that need no command line). An option that `predict`
// and `plan` explain alike has one row, one that they explain differently a row for each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast {

enum class Question : std::uint8_t {
  described,       // predict: a step of a description
  series,          // several of them side by side
  log,             // the run of a log
  traces,          // recorded ranks under other circumstances
  recommendation,  // a step of a recommendation model
  post_training,   // a step of reinforcement learning
  plan,            // plan: layouts of a training
  plan_pools,      // layouts over pools of different GPUs
  plan_jobs,       // several trainings that share GPUs
  plan_rl,         // a step of reinforcement learning
};

// "description", "training": as docs/reference/options.md calls them.
[[nodiscard]] std::string_view to_string(Question question);

using QuestionSet = unsigned;
[[nodiscard]] constexpr QuestionSet bit(Question question) { return 1U << static_cast<unsigned>(question); }
inline constexpr QuestionSet kPlanQuestions =
    bit(Question::plan) | bit(Question::plan_pools) | bit(Question::plan_jobs) | bit(Question::plan_rl);
inline constexpr QuestionSet kPredictQuestions = bit(Question::plan) - 1;
// Whether flags of layouts, and those of Megatron-LM, mean something.
[[nodiscard]] bool is_laid_out(Question question);
inline constexpr Question kQuestions[] = {
    Question::described,      Question::series,        Question::log,  Question::traces,
    Question::recommendation, Question::post_training, Question::plan, Question::plan_pools,
    Question::plan_jobs,      Question::plan_rl};

// What an option stands under in --help and in the reference. Each verb has a text and a place for those that it has.
enum class OptionHeading : std::uint8_t {
  subject,
  layout,
  software,
  recommendation,
  rl,
  recorded,
  result,
  training
};

enum class OptionKind : std::uint8_t { text, truth, whole, number, file };

// How a sweep reads the key of an option: as it is, as the name of a file, as a number above 0, or as one of Megatron-LM that
// people write with letters ("8k"). none: it is no key of sweeps.
enum class SweepValue : std::uint8_t { none, text, file, whole, number, count };

// Which values an option takes.
struct OptionValues {
  bool above_zero = false;
  bool takes_max = false;                                        // also the word `max`
  std::optional<std::pair<std::int64_t, std::int64_t>> range{};  // from, to
  std::string_view one_of{};                                     // with blanks between them
  bool with_commas = false;                                      // several in one word
  bool one_word = false;                                         // with it: the next word is another option's
  bool is_output = false;                                        // the name of a file to write
  bool shows_default = false;
  bool required = false;
  std::string_view needs{};  // another option
};

struct Option {
  std::string_view flags{};  // "--tp,--tensor-model-parallel-size": ours, then Megatron-LM's
  OptionHeading under = OptionHeading::result;
  QuestionSet of = kPredictQuestions | kPlanQuestions;
  std::string_view meaning{};
  OptionKind kind = OptionKind::text;
  std::string_view unit{};
  SweepValue sweep = SweepValue::none;
  std::string_view key{};  // of sweeps, where it is not the flag
  OptionValues values{};

  [[nodiscard]] std::string_view name() const { return flags.substr(0, flags.find(',')); }  // "--tp"
  // Its key in sweeps and its keyword in Python: "tp".
  [[nodiscard]] std::string sweep_key() const;
  [[nodiscard]] std::string python_keyword() const;
};

// In the order in which they are declared; the rows of one option stand next to each other where headings allow.
[[nodiscard]] std::span<const Option> option_table();
// The row that one of these questions has under this spelling. Null pointer if there is none.
[[nodiscard]] const Option* find_option(std::string_view flag, QuestionSet questions);

}  // namespace stepcast
