// The flags of a verb, from the option table (stepcast/sweep/option_table.h) or declared separately.
//
//   FlagList flags{app};
//   flags.add_table(kPlanHeadings, kPlanQuestions, targets);   // all options of `plan` in the table
//   flags.add("--critical-path", &o.report.critical_path, "longest contributors to show", {.shows_default = true});
//
// A verb for several questions decides after parsing which one is asked, and rejects the flags in given()
// that do not belong to it.
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

// Where the value is stored. bool: a flag without value. monostate: the option belongs to another verb.
using FlagTarget =
    std::variant<std::monostate, bool*, std::optional<bool>*, std::int64_t*, std::uint64_t*, unsigned*,
                 double*, std::string*, std::optional<std::int64_t>*, std::optional<double>*,
                 std::optional<std::string>*, std::vector<std::int64_t>*, std::vector<std::string>*,
                 std::vector<std::filesystem::path>*>;

struct GivenFlag {
  std::string name;  // the first long name: "--tp"
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
  // `app` must outlive the list.
  explicit FlagList(CLI::App& app) : app_(&app) {}

  // Adds all options in the table for `questions`, under the headings of the verb. `targets`: where the value
  // of each row of option_table() is stored.
  void add_table(std::span<const VerbHeading> headings, QuestionSet questions,
                 std::span<const FlagTarget> targets);
  void add(const Option& option, FlagTarget to, const char* heading = nullptr);
  // Adds one flag. `names` in CLI11's syntax: "--tp,--tensor-model-parallel-size".
  void add(std::string_view names, FlagTarget to, std::string_view meaning, const OptionValues& values = {}) {
    add(Option{.flags = names, .meaning = meaning, .values = values}, to);
  }

  // The given flags in the order of their declaration.
  [[nodiscard]] std::vector<GivenFlag> given() const;
  [[nodiscard]] bool is_given(const std::string& name) const;
  // Words that the verb does not know: flags of Megatron-LM, or superfluous words.
  [[nodiscard]] std::vector<std::string> remaining() const { return app_->remaining(); }
  // The long names of all flags: "--gpus", "--global-batch-size".
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  CLI::App* app_;
  std::vector<std::pair<const CLI::Option*, QuestionSet>> flags_;
};

// Validators of values. Numbers may be abbreviated (base/spelled_number.h).

// For numbers that must be positive. Returns the error text, empty if the text is valid.
[[nodiscard]] std::string above_zero(const std::string& text);

// An existing day, month or year: "2024", "2024-05" or "2024-05-31".
[[nodiscard]] std::string check_date(const std::string& text);

// The names of a verb's options: "--gpus", "--global-batch-size".
[[nodiscard]] std::vector<std::string> flags_of(const CLI::App& app);

// Makes all options of `app` and its subcommands reject empty values (from unset shell variables) and accept
// abbreviated numbers. Options with the name --date accept only dates.
void make_strict(CLI::App& app);

// Checks of combinations of flags, so that no verb ignores a flag silently.

// Errors: an empty entry in a list, "1,,2", which CLI11 would drop. `words` is the command line.
[[nodiscard]] Status check_lists(const CLI::App& app, std::span<const char* const> words);

// Looks at the flags that were given to the verb. Errors: a flag without its partner (--seed without --scenarios), --json
// beside another --format, two results into one file.
[[nodiscard]] Status check_pairs(const CLI::App& verb);

}  // namespace stepcast::cli
