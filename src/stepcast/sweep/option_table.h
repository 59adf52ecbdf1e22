// The table of command-line options of `stepcast predict` and `stepcast plan`. Each row of option_table.def
// gives the spellings of an option, the questions it applies to, its type, its allowed values and its help
// text. The command line, the keys of sweeps, the keywords of the Python API and docs/reference/options.md
// are generated from these rows.
//
//   const Option* option = find_option("--tp", bit(Question::described));   // also "--tensor-model-parallel-size"
//   option->meaning                                                         // "tensor parallel degree"
//
// To add an option, add a row and the member that stores its value. The cell of members names one member per
// reader: PREDICT(member of PredictOptions) and PLAN(member of PlanOptions) in apps/stepcast, SWEEP(member
// that sweep_question.cpp fills), PYTHON(member of DescribedStep, for calls that need no command line). An
// option with the same text in `predict` and `plan` has one row. If the texts differ, it has one row for
// each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast {

// The kinds of question that a command line can ask. An option lists the kinds it applies to (QuestionSet).
enum class Question : std::uint8_t {
  described,       // predict: one step of a described job
  series,          // predict: several described steps, shown side by side
  log,             // predict --from-log: the run that a training log records
  traces,          // predict --trace: recorded ranks under changed conditions
  recommendation,  // predict: one step of a recommendation model
  post_training,   // predict --rl: one step of reinforcement learning
  plan,            // plan: layouts of one training
  plan_pools,      // plan: layouts over pools of different GPUs
  plan_jobs,       // plan --jobs: several trainings that share the GPUs
  plan_rl,         // plan --rl: one step of reinforcement learning
};

// The name of a question in docs/reference/options.md: "description", "training". Post-training has one name
// for `predict` and `plan`.
[[nodiscard]] std::string_view to_string(Question question);

// A set of questions: bit i is the question with the value i.
using QuestionSet = unsigned;
[[nodiscard]] constexpr QuestionSet bit(Question question) { return 1U << static_cast<unsigned>(question); }
inline constexpr QuestionSet kPlanQuestions =
    bit(Question::plan) | bit(Question::plan_pools) | bit(Question::plan_jobs) | bit(Question::plan_rl);
inline constexpr QuestionSet kPredictQuestions = bit(Question::plan) - 1;
// Whether the question has a parallel layout, so that the flags of layouts and of Megatron-LM apply to it.
[[nodiscard]] bool is_laid_out(Question question);
// All questions in the order of the enumeration.
inline constexpr Question kQuestions[] = {
    Question::described,      Question::series,        Question::log,  Question::traces,
    Question::recommendation, Question::post_training, Question::plan, Question::plan_pools,
    Question::plan_jobs,      Question::plan_rl};

// The heading under which --help and the reference list an option. Each verb has its text and order of
// headings.
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

// The type of an option's value on the command line. `truth` is a switch without a value; `whole` is an
// integer.
enum class OptionKind : std::uint8_t { text, truth, whole, number, file };

// How a sweep reads the value of an option's key: none: not a sweep key; text: unchanged; file: the name of a
// file; whole, number: a number above 0; count: an integer that Megatron-LM also takes and that may have a
// suffix ("8k").
enum class SweepValue : std::uint8_t { none, text, file, whole, number, count };

// The values that an option accepts, and how it takes them.
struct OptionValues {
  bool above_zero = false;
  bool takes_max = false;                                        // the word `max` is accepted, too
  std::optional<std::pair<std::int64_t, std::int64_t>> range{};  // smallest and largest value
  // the accepted words, separated by blanks; empty: any
  std::string_view one_of{};
  bool with_commas = false;  // a list separated by commas
  // a list ends with its first word: the next word is another option
  bool one_word = false;
  bool is_output = false;  // the name of a file that is written
  // --help shows the default value.
  bool shows_default = false;
  // The command line is rejected without this option.
  bool required = false;
  std::string_view needs{};  // an option that must be given, too
};

// One row of the table.
struct Option {
  std::string_view flags{};  // "--tp,--tensor-model-parallel-size": our name, then the name of Megatron-LM
  OptionHeading under = OptionHeading::result;
  // The questions that the option applies to.
  QuestionSet of = kPredictQuestions | kPlanQuestions;
  // The help text, and the unit of the value for the reference ("GPUs", "tokens").
  std::string_view meaning{};
  OptionKind kind = OptionKind::text;
  std::string_view unit{};
  SweepValue sweep = SweepValue::none;
  std::string_view key{};  // the key in sweeps, if it differs from the flag
  OptionValues values{};

  // our name: "--tp"
  [[nodiscard]] std::string_view name() const { return flags.substr(0, flags.find(',')); }
  // The key in sweeps (lower case) and the keyword argument in Python: "tp".
  [[nodiscard]] std::string sweep_key() const;
  [[nodiscard]] std::string python_keyword() const;
};

// All rows in the order of declaration. Rows of one option are next to each other where the headings allow
// it.
[[nodiscard]] std::span<const Option> option_table();
// The row with the spelling `flag` (ours or Megatron-LM's) for one of `questions`. A null pointer if there is
// none. Linear in the number of rows.
[[nodiscard]] const Option* find_option(std::string_view flag, QuestionSet questions);

}  // namespace stepcast
