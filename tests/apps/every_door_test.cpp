// One question through every door: JSON, text, page, series, sweep, script, log, plan, a whole training, jobs on a pool. All
// answer with the same step, the same expected step and the same days.

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/output_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/result_reader.h"
#include "stepcast/sweep/sweep_spec.h"

#include "in_process.h"
#include "tests/support/rounds.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::every_door_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr double kSameDigits = 1e-7, kTokens = 1e12;
constexpr int kDecimals = 1;  // of a step in a terminal, above 10 ms

const std::shared_ptr<const Session>& session() {
  static const auto kept = std::make_shared<const Session>();
  return kept;
}

cli::VerbOutcome run(const Words& words) {
  return cli::run_verb(words, {.session = [](const std::string& /*platform*/) { return session(); }});
}

Words words_in(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    if (blank > 0) words.emplace_back(text.substr(0, blank));
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return words;
}

// What a door says; nothing of what it does not say.
struct Said {
  std::optional<double> step_ms, promised_ms, days;
};

JsonValue printed(const std::string& command) {
  const cli::VerbOutcome outcome = run(words_in(command));
  EXPECT_EQ(outcome.error, "") << command;
  const Result<JsonValue> json = parse_json(outcome.output, "printed");
  return json ? *json : JsonValue{};
}

// A member behind dots and positions: "points.0.step_time_ms".
std::optional<double> number_in(const JsonValue& json, std::string_view path) {
  const JsonValue* at = &json;
  while (!path.empty() && at != nullptr) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (at->is_array()) {
      const auto position = static_cast<std::size_t>(name.front() - '0');
      at = position < at->items().size() ? &at->items()[position] : nullptr;
    } else {
      at = at->find(name);
    }
  }
  if (at == nullptr || !at->is_number()) return std::nullopt;
  return at->number();
}

Said said_by(const JsonValue& json, const std::string& of, std::string_view step = "step_time_ms",
             std::string_view promised = "promised_step_time_ms") {
  Said said{number_in(json, of + std::string{step}), number_in(json, of + std::string{promised}),
            number_in(json, of + "days")};
  constexpr double kSecondsPerDay = 86400;
  if (const std::optional<double> s = number_in(json, of + "training.time_s"))
    said.days = *s / kSecondsPerDay;
  return said;
}

void expect_same(const Said& a, const Said& b, std::string_view door) {
  const auto compare = [&](const std::optional<double>& x, const std::optional<double>& y,
                           std::string_view what) {
    if (x && y) {
      EXPECT_NEAR(*y / *x, 1, kSameDigits) << door << ": " << what << " " << *y << " instead of " << *x;
    }
  };
  EXPECT_TRUE(b.step_ms.has_value()) << door;
  EXPECT_TRUE(b.promised_ms.has_value()) << door;
  compare(a.step_ms, b.step_ms, "step");
  compare(a.promised_ms, b.promised_ms, "expected step");
  compare(a.days, b.days, "days");
}

Said row_of(const std::string& settings) {
  const Result<SweepSpec> spec = parse_sweep(settings, "made");
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message());
  if (!spec) return {};
  const Result<std::string> row = session()->run(spec->points.front());
  EXPECT_TRUE(row.ok()) << settings;
  const Result<JsonValue> json = row ? parse_json(*row, "row") : Result<JsonValue>{JsonValue{}};
  return json ? said_by(*json, "") : Said{};
}

// A training: flags of `stepcast` without their hyphens, and what they say.
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string flags_of(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += fmt::format(" --{} {}", name, value);
  return text;
}

std::string keys_of(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += fmt::format("{} = \"{}\"\n", name, value);
  return text;
}

class EveryDoor : public ::testing::Test {
 protected:
  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }
  std::int64_t one_of(const std::vector<std::int64_t>& values) { return values[random_() % values.size()]; }

  // Doors of `predict`. `rest`: flags that have no key in a sweep.
  void ask_predict(const std::string& job, const Settings& settings, const std::string& keys,
                   const Said& first, std::int64_t n_gpus) {
    const std::string question = "predict " + job + flags_of(settings);
    const std::string trains =
        question + fmt::format(" --gpus {} --train-tokens {:.0f} --advice off", n_gpus, kTokens);
    expect_same(first, said_by(printed(trains + " --json"), ""), "predict");
    const std::string text = run(words_in(trains + " --details")).output;
    // As the JSON rounds it, to either side.
    const auto names = [&](std::string_view what, double ms) {
      for (const double near : {ms * (1 - kSameDigits), ms * (1 + kSameDigits)})
        if (text.find(fmt::format("{} {} ms", what, table_number(near, kDecimals))) != std::string::npos)
          return true;
      return false;
    };
    EXPECT_TRUE(names("Step time", *first.step_ms)) << text;
    if (std::abs(*first.promised_ms / *first.step_ms - 1) > kSameDigits) {
      EXPECT_TRUE(names("Expected", *first.promised_ms)) << text;
    }
    EXPECT_THAT(text, AnyOf(HasSubstr(fmt::format(" steps, {:.1f} days", *first.days * (1 - kSameDigits))),
                            HasSubstr(fmt::format(" steps, {:.1f} days", *first.days * (1 + kSameDigits)))));
    EXPECT_EQ(run(words_in(trains + " --report " + place("page.html"))).error, "");
    const Result<Forecast> page = read_result(place("page.html"));
    ASSERT_TRUE(page.ok()) << page.error().message();
    expect_same(first, {page->step_time_ms, page->promised_ms(), page->training->time_s / 86400}, "page");
    const std::string series = question + fmt::format(" --gpus {},{} --json", n_gpus, 2 * n_gpus);
    expect_same(first, said_by(printed(series), "points.0."), "series");
    expect_same(
        first,
        row_of(keys + keys_of(settings) + fmt::format("gpus = {}\ntrain_tokens = {:.0f}\n", n_gpus, kTokens)),
        "sweep");
  }

  // The flags of Megatron-LM in a launch script.
  void ask_script(const std::string& job, const std::string& megatron, const std::string& rest,
                  const Said& first) {
    ASSERT_TRUE(write_file(place("run.sh"), "torchrun pretrain_gpt.py " + megatron + "\n").ok());
    expect_same(first,
                said_by(printed(fmt::format(
                            "predict {} --command-line {} {} --train-tokens {:.0f} --advice off --json", job,
                            place("run.sh"), rest, kTokens)),
                        ""),
                "script");
  }

  const TemporaryFolder folder_;
  std::mt19937 random_{23};
};

// All of it is said: doors that search find nothing to search, and nothing is expected but the forecast.
TEST_F(EveryDoor, SaysTheSameOfALayoutThatIsGiven) {
  constexpr const char* kModels[] = {"llama-3-8b", "mixtral-8x7b", "qwen3-8b", "qwen3-30b-a3b"};
  int asked = 0;
  for (int i = 0; i < rounds(8, 200); ++i) {
    const std::string model = kModels[i % 4];
    const bool has_experts = i % 2 == 1;
    const std::int64_t n_gpus = one_of({16, 32, 64}), tensor = one_of({1, 2, 4}),
                       pipeline = one_of({1, 2, 4}), expert = has_experts ? one_of({1, 2, 4, 8}) : 1,
                       micro_batch = one_of({1, 2}), sequence = one_of({2048, 4096});
    const std::string platform = one_of({0, 1}) == 0 ? "dgx-h100" : "dgx-b200";
    const bool shards = one_of({0, 1}) == 0;
    Settings settings{{"tp", fmt::to_string(tensor)},          {"pp", fmt::to_string(pipeline)},
                      {"mbs", fmt::to_string(micro_batch)},    {"gbs", "256"},
                      {"seq", fmt::to_string(sequence)},       {"dtype", "bf16"},
                      {"sharding", shards ? "zero1" : "none"}, {"layout", "as-said"}};
    if (has_experts) settings.emplace_back("ep", fmt::to_string(expert));
    if (tensor > 1) settings.emplace_back("sp", "on");
    const std::string job = fmt::format("--model {} --platform {}", model, platform);
    SCOPED_TRACE(job + flags_of(settings) + fmt::format(" --gpus {}", n_gpus));
    const std::string reference =
        fmt::format("predict {}{} --gpus {} --train-tokens {:.0f} --advice off --json", job,
                    flags_of(settings), n_gpus, kTokens);
    const cli::VerbOutcome outcome = run(words_in(reference));
    if (outcome.code != 0) continue;  // a layout that cannot be
    ++asked;
    const Said first = said_by(*parse_json(outcome.output, "printed"), "");
    ASSERT_TRUE(first.step_ms && first.promised_ms && first.days);
    EXPECT_NEAR(*first.promised_ms / *first.step_ms, 1, kSameDigits);
    ask_predict(job, settings, fmt::format("model = \"{}\"\nplatform = \"{}\"\n", model, platform), first,
                n_gpus);
    std::string megatron = fmt::format(
        "--tensor-model-parallel-size {} --pipeline-model-parallel-size {} --micro-batch-size {} "
        "--global-batch-size 256 --seq-length {} --bf16",
        tensor, pipeline, micro_batch, sequence);
    if (has_experts) megatron += fmt::format(" --expert-model-parallel-size {}", expert);
    if (tensor > 1) megatron += " --sequence-parallel";
    if (shards) megatron += " --use-distributed-optimizer";
    ask_script(job, megatron, fmt::format("--gpus {}", n_gpus), first);
    std::string log = "------------------------ arguments ------------------------\n";
    const auto argument = [&](std::string_view name, const auto& value) {
      log += fmt::format("  {} {} {}\n", name, std::string(48 - name.size(), '.'), value);
    };
    argument("tensor_model_parallel_size", tensor);
    argument("pipeline_model_parallel_size", pipeline);
    if (has_experts) argument("expert_model_parallel_size", expert);
    argument("micro_batch_size", micro_batch);
    argument("global_batch_size", 256);
    argument("seq_length", sequence);
    argument("bf16", "True");
    argument("sequence_parallel", tensor > 1 ? "True" : "False");
    argument("use_distributed_optimizer", shards ? "True" : "False");
    argument("world_size", n_gpus);
    log += "-------------------- end of arguments ---------------------\n";
    for (int step = 1; step <= 4; ++step)
      log += fmt::format(
          " [2026-01-02 03:04:0{0}] iteration        {0}/      50 | consumed samples:           {1} | "
          "elapsed time "
          "per iteration (ms): 4000.0 | global batch size:   256 | lm loss: 1.0E+01 |\n",
          step, 256 * step);
    ASSERT_TRUE(write_file(place("train.log"), log).ok());
    expect_same(first,
                said_by(printed(fmt::format("predict --from-log {} {} --json", place("train.log"), job)),
                        "forecast."),
                "log");
  }
  EXPECT_GT(asked, rounds(4, 100));
}

// A part is said, and the rest is searched: by `predict` as by `plan`. What a plan prints, pasted, is what it says.
TEST_F(EveryDoor, SaysTheSameOfALayoutThatIsSearched) {
  constexpr const char* kModels[] = {"mixtral-8x7b", "llama-3-8b", "qwen3-30b-a3b", "qwen3-8b"};
  int with_factor = 0;
  for (int i = 0; i < rounds(2, 40); ++i) {
    const std::string model = kModels[i % 4];
    const std::int64_t n_gpus = one_of({8, 16, 32});
    Settings settings{{"gbs", "128"}, {"seq", "2048"}, {"dtype", "bf16"}};
    if (one_of({0, 1}) == 1) settings.emplace_back("tp", fmt::to_string(one_of({1, 2})));
    if (one_of({0, 1}) == 1) settings.emplace_back("pp", fmt::to_string(one_of({1, 2})));
    const std::string job = fmt::format("--model {} --platform dgx-h100", model);
    const std::string plan = fmt::format("plan {}{} --gpus {} --json", job, flags_of(settings), n_gpus);
    SCOPED_TRACE(plan);
    const JsonValue chosen = printed(plan);
    Said first = said_by(chosen, "chosen_layout.");
    const Said training = said_by(printed(fmt::format("{} --train-tokens {:.0f}", plan, kTokens)),
                                  "options.0.", "forecast_step_time_ms", "step_time_ms");
    ASSERT_TRUE(first.step_ms && training.days);
    first.days = training.days;
    expect_same(first, training, "plan --train-tokens");
    if (*first.promised_ms > *first.step_ms) ++with_factor;
    const std::string keys = fmt::format("model = \"{}\"\nplatform = \"dgx-h100\"\n", model);
    ask_predict(job, settings, keys, first, n_gpus);
    expect_same(first,
                row_of("mode = \"plan\"\n" + keys + keys_of(settings) +
                       fmt::format("gpus = {}\ntrain_tokens = {:.0f}\n", n_gpus, kTokens)),
                "sweep of plans");
    const JsonValue* of_megatron = chosen.find("chosen_layout")->find("megatron_flags");
    ASSERT_TRUE(of_megatron != nullptr && of_megatron->is_text());
    std::string pasted{of_megatron->text()};
    std::erase(pasted, '"');  // of a shell
    ask_script(job, std::string{of_megatron->text()}, fmt::format("--gpus {} --layout as-planned", n_gpus),
               first);
    expect_same(first,
                said_by(printed(fmt::format(
                            "predict {} --gpus {} --layout as-planned {} --train-tokens {:.0f} --advice "
                            "off --json",
                            job, n_gpus, pasted, kTokens)),
                        ""),
                "the flags of the plan");
    if (settings.size() > 3) continue;  // a pool leaves the whole layout open
    ASSERT_TRUE(
        write_file(place("jobs.toml"), fmt::format("[[job]]\nname = \"one\"\nmodel = \"{}\"\ngbs = 128\n"
                                                   "seq = 2048\ntokens = {:.0f}\n",
                                                   model, kTokens))
            .ok());
    const JsonValue pool = printed(fmt::format(
        "plan --jobs {} --gpus {} --platform dgx-h100 --dtype bf16 --json", place("jobs.toml"), n_gpus));
    const auto curve_at = number_in(pool, "jobs.0.chosen");
    ASSERT_TRUE(curve_at.has_value());
    const std::string of = fmt::format("jobs.0.curve.{:.0f}.", *curve_at);
    if (number_in(pool, of + "n_gpus") == static_cast<double>(n_gpus))
      expect_same(first, said_by(pool, of, "forecast_step_time_ms", "step_time_ms"), "jobs");
  }
  EXPECT_GT(with_factor, 0);
}

}  // namespace
}  // namespace stepcast::test::every_door_test
