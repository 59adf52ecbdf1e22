// One question through several doors: flags, Megatron-LM by name, a launch script, a plan's flags pasted into one.

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::doors_test {
namespace {

constexpr double kSameDigits = 1e-7;

Result<double> step_ms(const Session& session, PredictRequest request) {
  request.only_critical = true;
  STEPCAST_ASSIGN(const Forecast forecast, session.predict(request));
  return forecast.step_time_ms;
}

// The flags as a script has them.
PredictRequest as_script(const PredictRequest& request) {
  PredictRequest script = request;
  script.job.settings = {};
  script.job.command_line = "torchrun pretrain_gpt.py " + megatron_flags_of(request.job.settings);
  return script;
}

TEST(Doors, FlagsANameAndAScriptGiveOneNumber) {
  const Session session;
  std::mt19937 random{7};
  const auto one_of = [&](auto... values) {
    const std::int64_t all[] = {values...};
    return all[random() % sizeof...(values)];
  };
  constexpr const char* kModels[] = {"llama-3-8b", "qwen3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt2-xl"};
  int asked = 0;
  for (int i = 0; i < 60; ++i) {
    PredictRequest flags{.job = {.model = kModels[i % 5], .n_gpus = one_of(16, 32, 64)},
                         .platform = random() % 2 == 0 ? "dgx-h100" : "dgx-b200"};
    JobSettings& s = flags.job.settings;
    s.tensor = one_of(1, 2, 4);
    s.pipeline = one_of(1, 2, 4);
    if (i % 5 == 2 || i % 5 == 3) s.expert = one_of(1, 2, 4, 8);
    s.micro_batch_sequences = one_of(1, 2);
    s.global_batch_sequences = 128;
    s.seq_len_tokens = 4096 / one_of(1, 2, 4);
    s.dtype = DType::bf16;
    if (random() % 2 == 0) s.distributed_optimizer = true;
    if (s.tensor > 1 && (s.expert || random() % 2 == 0)) s.sequence_parallel = true;
    if (random() % 3 == 0) s.recompute = Recompute::selective;
    PredictRequest named = flags;
    named.job.framework = Framework::megatron;
    const PredictRequest script = as_script(flags);
    SCOPED_TRACE(flags.job.model + " " + *script.job.command_line);
    const Result<double> by_flags = step_ms(session, flags), by_name = step_ms(session, named),
                         by_script = step_ms(session, script);
    ASSERT_EQ(by_flags.ok(), by_script.ok());
    if (!by_flags) continue;
    ++asked;
    EXPECT_NEAR(*by_name / *by_flags, 1, kSameDigits);
    EXPECT_NEAR(*by_script / *by_flags, 1, kSameDigits);
  }
  EXPECT_GT(asked, 30);
}

TEST(Doors, AScriptWithAPlansFlagsGivesThePlansNumber) {
  const Session session;
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  for (const char* model : {"llama-3-8b", "llama-3-70b", "mixtral-8x7b", "gpt2-xl"}) {
    for (const std::int64_t n_gpus : {8, 64}) {
      SCOPED_TRACE(fmt::format("{} on {}", model, n_gpus));
      const Job job{.model = model, .n_gpus = n_gpus};
      const auto plan =
          plan_layouts({.job = job, .n_gpus = n_gpus, .restrictions = {}, .refines = true}, *platform);
      ASSERT_TRUE(plan.ok()) << plan.error().message();
      if (plan->ranking.layouts.empty()) continue;
      const ChosenLayout chosen = chosen_layout(*plan);
      const std::optional<std::string> flags = megatron_text(chosen, plan->prototypes);
      ASSERT_TRUE(flags.has_value());
      PredictRequest script{.job = job, .platform = "dgx-h100"};
      script.job.command_line = "torchrun pretrain_gpt.py " + *flags;
      const Result<double> by_script = step_ms(session, script);
      ASSERT_TRUE(by_script.ok()) << by_script.error().message();
      EXPECT_NEAR(*by_script / (chosen.step.step.time.value() * 1e-3), 1, kSameDigits) << *flags;
    }
  }
}

// What TorchTitan's published configurations say goes without saying in flags.
TEST(Doors, FlagsOfTorchTitanSayWhatItsConfigsDo) {
  const Session session;
  for (const std::int64_t micro_batch : {1, 4}) {
    PredictRequest flags{.job = {.model = "llama-3-8b", .n_gpus = 8, .framework = Framework::torchtitan},
                         .platform = "dgx-h100"};
    JobSettings& s = flags.job.settings;
    s.tensor = s.pipeline = 1;
    s.optimizer = OptimizerKind::adamw;
    s.micro_batch_sequences = micro_batch;
    s.global_batch_sequences = 8 * micro_batch;
    s.seq_len_tokens = 8192;
    PredictRequest config{.job = {.model = "llama-3-8b", .n_gpus = 8}, .platform = "dgx-h100"};
    const auto toml = [&](std::string_view rest) {
      return ConfigText{
          fmt::format("[training]\nlocal_batch_size = {}\nseq_len = 8192\n{}", micro_batch, rest),
          "made.toml"};
    };
    const auto expect_same = [&] {
      const auto by_flags = session.predict(flags), by_config = session.predict(config);
      ASSERT_TRUE(by_flags.ok()) << by_flags.error().message();
      ASSERT_TRUE(by_config.ok()) << by_config.error().message();
      EXPECT_NEAR(by_flags->step_time_ms / by_config->step_time_ms, 1, kSameDigits);
      EXPECT_NEAR(by_flags->memory->peak_memory_GiB / by_config->memory->peak_memory_GiB, 1, kSameDigits);
    };
    config.job.torchtitan = toml(
        "[compile]\nenable = true\n"
        "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n");
    expect_same();
    for (const auto& [recompute, mode] : {std::pair{Recompute::none, "none"}, {Recompute::full, "full"}}) {
      s.recompute = recompute;
      config.job.torchtitan =
          toml(fmt::format("[compile]\nenable = true\n[activation_checkpoint]\nmode = \"{}\"\n", mode));
      expect_same();
    }
  }
}

}  // namespace
}  // namespace stepcast::doors_test
