// The flags of a verb as lists of rows: what a flag is called, where its value goes, what it means, which values it takes,
// and which questions it means something for.
//
//   FlagList flags{app};
//   flags.begin("Layout and batch", kDescribed);
//   flags.add("--tp,--tensor-model-parallel-size", &settings.tensor, "tensor parallel degree");
//   flags.add("--gbs", &global_batch, "sequences per step", {.above_zero = true}, kDescribed | kRecommendation);
//
// A verb that answers one question leaves out questions. One that answers several tells the question once the flags are
// parsed, and refuses what given() holds besides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"

namespace stepcast::cli {

inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// A bool is a switch.
using FlagTarget =
    std::variant<bool*, std::optional<bool>*, std::int64_t*, std::uint64_t*, unsigned*, double*, std::string*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*,
                 std::vector<std::int64_t>*, std::vector<std::string>*, std::vector<std::filesystem::path>*>;

// Which values a flag takes.
struct FlagValues {
  bool above_zero = false;
  bool takes_max = false;  // also the word `max`, which becomes kLargest
  std::optional<std::pair<std::int64_t, std::int64_t>> range{};  // from, to
  std::vector<std::string> one_of{};
  bool with_commas = false;  // several in one word
  bool one_word = false;     // with it: the next word is another flag's
  bool is_output = false;    // the name of a file to write
  bool shows_default = false;
  bool required = false;
  std::string needs{};  // another flag
};

using QuestionSet = unsigned;  // bits that a verb gives its questions
inline constexpr QuestionSet kEveryQuestion = ~0U;

struct GivenFlag {
  std::string name;  // the first of its long ones: "--tp"
  QuestionSet of = kEveryQuestion;
};

// What `predict` and `plan` say alike.
inline constexpr char kStackFlag[] =
    "software that runs the step: pytorch, nvidia, torchrec, hugectr, hugectr-2 (docs/dlrm.md)";
inline constexpr char kReleaseFlag[] =
    "of the software: year and month of its container, as 23.09, or a round of MLPerf Training, as v3.1";
inline constexpr char kExchangeFlag[] =
    "of vectors and their gradients between ranks: fp32, fp16, bf16, fp8, int8 (default: as the stack has "
    "it)";
inline constexpr char kFailuresFlag[] =
    "interruptions of a training: default (rates of a published job), or a CSV log of your own "
    "(docs/runs.md)";
inline constexpr char kRecoveryFlag[] =
    "how it goes on: interval=30m (default: the best), mode=sync|async|memory, storage=200GB/s, restart=15m, "
    "spares=8 nodes, repair=24h, elastic=yes";

class FlagList {
 public:
  // `app` has to outlive it.
  explicit FlagList(CLI::App& app) : app_(&app) {}

  // What follows stands under this heading of --help, and is for these questions unless it says otherwise.
  void begin(std::string heading, QuestionSet of = kEveryQuestion);
  // `names` as CLI11 takes them: "--tp,--tensor-model-parallel-size".
  void add(const std::string& names, FlagTarget to, const std::string& meaning, const FlagValues& values = {},
           std::optional<QuestionSet> of = {});
  // An option that was declared otherwise.
  void add_declared(const std::string& name);

  // What was given, in the order of the declarations.
  [[nodiscard]] std::vector<GivenFlag> given() const;
  [[nodiscard]] bool is_given(const std::string& name) const;
  // What the verb knows nothing of: flags of Megatron-LM, or words too many.
  [[nodiscard]] std::vector<std::string> remaining() const { return app_->remaining(); }
  // "--gpus", "--global-batch-size".
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  CLI::App* app_;
  std::string heading_;
  QuestionSet of_ = kEveryQuestion;
  std::vector<std::pair<const CLI::Option*, QuestionSet>> flags_;
};

// What options take as values: numbers as people write them (base/spelled_number.h), and nothing that means nothing.

// For numbers of which none or fewer make no sense.
[[nodiscard]] std::string above_zero(const std::string& text);

// "2024", "2024-05" or "2024-05-31": a day that there is.
[[nodiscard]] std::string check_date(const std::string& text);

// The software that --framework names.
[[nodiscard]] Result<Framework> framework_named(const std::string& text);

// "--gpus", "--global-batch-size": what the options of a verb are called.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::App& app);

// Makes every option of `app` and of its subcommands refuse empty values, as of a shell variable that is not set, and
// read numbers as above. An option called --date takes dates alone.
void make_strict(CLI::App& app);

// Flags that say nothing without others, or that say the contrary of others: no verb takes them silently.

// The words of a command line. Errors: an empty entry of a list, "1,,2", which CLI11 drops.
[[nodiscard]] Status check_lists(const CLI::App& app, std::span<const char* const> words);

// The first flag that was given and names a file to write, "--report"; empty if there is none.
[[nodiscard]] std::string flag_that_writes(const CLI::App& verb);

// Looks at the flags that were given to the verb. Errors: a flag without its partner (--seed without --scenarios), --json
// beside another --format, two results into one file.
[[nodiscard]] Status check_pairs(const CLI::App& verb);

}  // namespace stepcast::cli
