// The flags of a verb: those of the table of options (stepcast/sweep/option_table.h), or lines of its own.
//
//   FlagList flags{app};
//   flags.add_table(kPlanHeadings, kPlanQuestions, targets);   // all that `plan` has in the table
//   flags.add("--critical-path", &o.report.critical_path, "longest contributors to show", {.shows_default = true});
//
// A verb that answers several questions tells which one is asked once the flags are parsed, and refuses what given() holds
// besides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "stepcast/base/result.h"
#include "stepcast/sweep/option_table.h"

namespace stepcast::cli {

inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// A bool is a switch. Nothing: the option is of another verb.
using FlagTarget =
    std::variant<std::monostate, bool*, std::optional<bool>*, std::int64_t*, std::uint64_t*, unsigned*,
                 double*, std::string*, std::optional<std::int64_t>*, std::optional<double>*,
                 std::optional<std::string>*, std::vector<std::int64_t>*, std::vector<std::string>*,
                 std::vector<std::filesystem::path>*>;

struct GivenFlag {
  std::string name;  // the first of its long ones: "--tp"
  QuestionSet of = 0;
};

// A heading of --help.
struct VerbHeading {
  OptionHeading heading;
  const char* text;
};
inline constexpr char kRlHeading[] = "Post-training by reinforcement learning (--rl)";

class FlagList {
 public:
  // `app` has to outlive it.
  explicit FlagList(CLI::App& app) : app_(&app) {}

  // Every option that the table has for `questions`, under the headings of the verb in their order. `targets`: where the
  // value of each row of option_table() goes.
  void add_table(std::span<const VerbHeading> headings, QuestionSet questions,
                 std::span<const FlagTarget> targets);
  void add(const Option& option, FlagTarget to, const char* heading = nullptr);
  // `names` as CLI11 takes them: "--tp,--tensor-model-parallel-size".
  void add(std::string_view names, FlagTarget to, std::string_view meaning, const OptionValues& values = {}) {
    add(Option{.flags = names, .meaning = meaning, .values = values}, to);
  }

  // What was given, in the order of the declarations.
  [[nodiscard]] std::vector<GivenFlag> given() const;
  [[nodiscard]] bool is_given(const std::string& name) const;
  // What the verb knows nothing of: flags of Megatron-LM, or words too many.
  [[nodiscard]] std::vector<std::string> remaining() const { return app_->remaining(); }
  // "--gpus", "--global-batch-size".
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  CLI::App* app_;
  std::vector<std::pair<const CLI::Option*, QuestionSet>> flags_;
};

// What options take as values: numbers as people write them (base/spelled_number.h), and nothing that means nothing.

// For numbers of which none or fewer make no sense.
[[nodiscard]] std::string above_zero(const std::string& text);

// "2024", "2024-05" or "2024-05-31": a day that there is.
[[nodiscard]] std::string check_date(const std::string& text);

// "--gpus", "--global-batch-size": what the options of a verb are called.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::App& app);

// Makes every option of `app` and of its subcommands refuse empty values, as of a shell variable that is not set, and
// read numbers as above. An option called --date takes dates alone.
void make_strict(CLI::App& app);

// Flags that say nothing without others, or that say the contrary of others: no verb takes them silently.

// The words of a command line. Errors: an empty entry of a list, "1,,2", which CLI11 drops.
[[nodiscard]] Status check_lists(const CLI::App& app, std::span<const char* const> words);

// Looks at the flags that were given to the verb. Errors: a flag without its partner (--seed without --scenarios), --json
// beside another --format, two results into one file.
[[nodiscard]] Status check_pairs(const CLI::App& verb);

}  // namespace stepcast::cli
