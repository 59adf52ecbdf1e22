#include "stepcast/plan/layout_refinement.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string_view>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/megatron.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"

namespace stepcast::layout_refinement_test {
namespace {

using ::testing::HasSubstr;

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

PlanRequest request_of(std::string model, std::int64_t n_gpus, std::int64_t batch) {
  PlanRequest request;
  request.job.model = std::move(model);
  request.job.settings.global_batch_sequences = batch;
  request.job.settings.seq_len_tokens = 4096;
  request.n_gpus = n_gpus;
  request.threads = 2;
  request.refines = true;
  return request;
}

LayoutPlan plan_of(const PlanRequest& request) {
  Result<LayoutPlan> plan = plan_layouts(request, platform());
  if (!plan.ok()) throw std::runtime_error(plan.error().message());
  return std::move(*plan);
}

// Gemma has 256,000 words and 28 layers: the loss weighs as much as several layers.
TEST(LayoutRefinement, UnevenStagesBeatEvenOnesWhereTheVocabularyIsLarge) {
  PlanRequest request = request_of("gemma-7b", 32, 128);
  request.restrictions.tensor = {1};
  request.restrictions.pipeline = {4};
  request.restrictions.context = {1};
  request.restrictions.virtual_stages = {1};
  request.restrictions.micro_batch = {1};
  request.restrictions.shardings = std::vector{DataSharding{Sharding::zero1, 0}};
  const LayoutPlan plan = plan_of(request);
  ASSERT_FALSE(plan.refined.empty());
  const RefinedLayout& refined = plan.refined.front();
  const RankedLayout& even = plan.ranking.layouts[refined.of];
  EXPECT_LT(refined.step.step.time.value(), 0.97 * even.step.step.time.value());
  ASSERT_TRUE(refined.settings.pipeline_layout.has_value());
  EXPECT_LT(refined.layout.pipeline.layers_per_stage.back(), 7);  // of 28 on 4

  // The engine, with every operation of every micro-batch as a task, says the same of both.
  StepModel steps{platform()};
  const auto engine_us = [&](const Layout& layout) {
    const Result<PredictedStep> step = predict_step(plan.prototypes.model(), layout, steps);
    if (!step.ok()) throw std::runtime_error(step.error().message());
    return step->timeline.end_us();
  };
  EXPECT_NEAR(engine_us(refined.layout) / refined.step.step.time.value(), 1, 1e-9);
  EXPECT_NEAR(engine_us(even.layout) / even.step.step.time.value(), 1, 1e-9);

  // What is pasted is what was priced.
  const Result<MegatronWords> words = parse_megatron_command_line(megatron_flags_of(refined.settings));
  ASSERT_TRUE(words.ok()) << words.error().message();
  Job job{.model = "gemma-7b", .n_gpus = 32};
  job.settings = words->settings;
  const Result<ResolvedJob> resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->layout, refined.layout);
}

TEST(LayoutRefinement, RecomputesAsFewLayersAsLeaveMemoryToSpare) {
  PlanRequest request = request_of("llama-3-70b", 64, 128);
  request.restrictions.tensor = {4};
  request.restrictions.pipeline = {8};
  request.restrictions.context = {1};
  request.restrictions.virtual_stages = {1};
  request.restrictions.micro_batch = {2};
  request.restrictions.recomputations = {Recompute::full};
  request.restrictions.sequence_parallel = {true};
  const LayoutPlan plan = plan_of(request);
  ASSERT_FALSE(plan.refined.empty());
  for (const RefinedLayout& refined : plan.refined) {
    EXPECT_NE(refined.memory.verdict, MemoryVerdict::does_not_fit);
    EXPECT_LT(refined.step.step.time, plan.ranking.layouts[refined.of].step.step.time);
    if (!refined.layout.layer.recompute.layers_per_stage) continue;
    Layout fewer = refined.layout;
    fewer.pipeline.layers_per_stage.clear();
    fewer.layer.recompute.layers_per_stage = *fewer.layer.recompute.layers_per_stage - 1;
    if (*fewer.layer.recompute.layers_per_stage == 0) continue;
    const Result<MemoryForecast> memory = memory_forecast(plan.prototypes.model(), fewer, plan.memory);
    ASSERT_TRUE(memory.ok());
    const bool was_tight = plan.ranking.layouts[refined.of].memory.verdict == MemoryVerdict::tight;
    if (was_tight)
      EXPECT_EQ(memory->verdict, MemoryVerdict::does_not_fit);
    else
      EXPECT_NE(memory->verdict, MemoryVerdict::fits);
  }
}

TEST(NearbyLayouts, EachFurtherChangeIsFaster) {
  const LayoutPoint now{.tensor = 8, .pipeline = 2, .data = 4, .recompute = Recompute::full};
  LayoutPoint one = now, two = now, far = now;
  one.recompute = Recompute::none;
  two.recompute = Recompute::none;
  two.sequence_parallel = true;
  far = {.tensor = 2, .pipeline = 4, .data = 8, .micro_batch = 2, .sequence_parallel = true};
  const std::vector<PricedLayout> priced = {{far, 70, 0}, {two, 80, 0}, {one, 90, 0}, {now, 100, 0}};
  const std::vector<NearbyLayout> nearby = nearby_layouts(priced, now);
  ASSERT_EQ(nearby.size(), 3U);
  EXPECT_EQ(nearby[0].layout.point, one);
  EXPECT_EQ(nearby[1].layout.point, two);
  EXPECT_EQ(nearby[2].layout.point, far);
  EXPECT_EQ(nearby[0].changes, 1);
  EXPECT_EQ(nearby[1].changes, 2);
  EXPECT_EQ(nearby[2].changes, 5);  // tensor, pipeline, micro-batch, recomputation, sequence parallel
}

TEST(NearbyLayouts, ReadsWhatRunsNow) {
  const std::filesystem::path file =
      std::filesystem::path{::testing::TempDir()} / ("train_" + std::to_string(::getpid()) + ".sh");
  std::ofstream{file}
      << "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
         "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
         "--micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 4 "
         "--pipeline-model-parallel-size 2 --vocab-size 32000 --bf16 --swiglu "
         "--use-distributed-optimizer --recompute-granularity full --recompute-method uniform\n";
  const Result<RunningLayout> running = read_running_layout(file, {});
  std::filesystem::remove(file);
  ASSERT_TRUE(running.ok()) << running.error().message();
  EXPECT_EQ(running->n_gpus, 16);
  const LayoutPoint from = point_of(running->layout, 8);
  EXPECT_EQ(to_string(from), "tp4 pp2 dp2 mbs1 zero1 recompute-full");
  PlanRequest request;
  request.job = running->job;
  request.n_gpus = 16;
  const LayoutPlan plan = plan_of(request);
  // The layout that runs is one of those that were priced, at the same time.
  StepModel steps{platform()};
  const Result<StepPrediction> now = steps.predict(running->model, running->layout);
  ASSERT_TRUE(now.ok());
  bool found = false;
  for (const PricedLayout& layout : plan.found.priced) {
    if (layout.point != from) continue;
    found = true;
    EXPECT_NEAR(layout.step_us / now->step.time.value(), 1, 1e-9);
  }
  EXPECT_TRUE(found);
}

// What a script recomputes is searched, be it said by kinds or by modules; modules said beside it restrict the search.
TEST(NearbyLayouts, ModulesThatAreRecomputedAreSearched) {
  const std::filesystem::path file =
      std::filesystem::path{::testing::TempDir()} / ("modules_" + std::to_string(::getpid()) + ".sh");
  std::ofstream{file} << "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
                         "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
                         "--micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 4 "
                         "--vocab-size 32000 --bf16 "
                         "--recompute-granularity selective --recompute-modules core_attn layernorm\n";
  const Result<RunningLayout> running = read_running_layout(file, {});
  Job beside;
  beside.settings.recompute_modules = "core_attn";
  const Result<RunningLayout> restricted = read_running_layout(file, beside);
  std::filesystem::remove(file);
  ASSERT_TRUE(running.ok()) << running.error().message();
  EXPECT_EQ(running->job.settings.recompute, std::nullopt);
  EXPECT_EQ(running->job.settings.recompute_modules, std::nullopt);
  ASSERT_TRUE(restricted.ok()) << restricted.error().message();
  EXPECT_EQ(restricted->job.settings.recompute_modules, beside.settings.recompute_modules);
}

// Of a search of a part of the space, if its choice is of a measured kind and leaves memory to spare.
std::optional<double> comparable_us(const PlanRequest& request) {
  const LayoutPlan found = plan_of(request);
  if (found.ranking.layouts.empty()) return std::nullopt;
  const ChosenLayout chosen = chosen_layout(found);
  const bool is_comparable =
      chosen.memory.verdict != MemoryVerdict::tight && found.ranking.layouts[chosen.of].unmeasured.empty();
  return is_comparable ? std::optional{chosen.step.step.time.value()} : std::nullopt;
}

// What refinement makes of a layout is not known from its place in the ranking: searches of parts of the space find
// nothing that the search of all of it passed over.
TEST(LayoutRefinement, NoPartOfTheSpaceHoldsABetterLayout) {
  for (const char* model : {"llama-3-8b", "qwen3-30b-a3b"}) {
    const PlanRequest request = request_of(model, 16, 256);
    const double whole_us = chosen_layout(plan_of(request)).step.step.time.value();
    for (const std::int64_t tensor : {1, 2, 4}) {
      for (const std::int64_t pipeline : {1, 2, 4}) {
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          PlanRequest part = request;
          part.restrictions.tensor = {tensor};
          part.restrictions.pipeline = {pipeline};
          part.restrictions.recomputations = std::vector{recompute};
          const std::optional<double> part_us = comparable_us(part);
          if (!part_us) continue;
          EXPECT_LE(whole_us, 1.002 * *part_us) << model << " " << tensor << " " << pipeline;
        }
      }
    }
  }
}

// The same for choices of the recipe: none that is said beforehand is faster than what a search finds that may choose it, and
// it stays as it was said.
TEST(LayoutRefinement, NoRecipeThatIsSaidIsFaster) {
  struct Said {
    const char* words;
    void (*say)(JobSettings&);
  };
  const Said all[] = {
      {"p2p", [](JobSettings& s) { s.context_parallel_kind = ContextParallelKind::ring; }},
      {"a2a", [](JobSettings& s) { s.context_parallel_kind = ContextParallelKind::all_to_all; }},
      {"all_gather", [](JobSettings& s) { s.context_parallel_kind = ContextParallelKind::all_gather; }},
      {"graphs", [](JobSettings& s) { s.cuda_graph_implementation = "transformer_engine"; }},
      {"hybridep",
       [](JobSettings& s) {
         s.dispatcher = TokenDispatcher::deepep;
         s.flex_dispatcher = TokenDispatcher::hybridep;
       }},
      {"deepep",
       [](JobSettings& s) {
         s.dispatcher = TokenDispatcher::deepep;
         s.flex_dispatcher = TokenDispatcher::deepep;
       }},
      {"moe_act",
       [](JobSettings& s) {
         s.recompute = Recompute::selective;
         s.recompute_modules = "moe_act";
       }},
      {"tensorwise", [](JobSettings& s) { s.fp8_scaling = Fp8Scaling::dynamic; }},
      {"blockwise", [](JobSettings& s) { s.fp8_scaling = Fp8Scaling::blockwise; }},
      {"fp8 gather", [](JobSettings& s) { s.fp8_gather_weights = true; }},
      {"fp8 gather off", [](JobSettings& s) { s.fp8_gather_weights = false; }},
  };
  for (const char* model : {"llama-3-8b", "qwen3-30b-a3b"}) {
    const bool experts = std::string_view{model}.starts_with("qwen");
    PlanRequest request = request_of(model, 16, 64);
    request.job.settings.seq_len_tokens = 16384;
    request.restrictions.dtypes = std::vector{DType::fp8};
    const double whole_us = chosen_layout(plan_of(request)).step.step.time.value();
    for (const Said& one : all) {
      const std::string_view words = one.words;
      if (!experts && (words.ends_with("ep") || words == "moe_act")) continue;
      PlanRequest said = request;
      one.say(said.job.settings);
      const std::optional<double> said_us = comparable_us(said);
      ASSERT_TRUE(said_us) << one.words;
      // Sets of choices are tried on what comes close to the fastest with one choice after the other.
      EXPECT_LE(whole_us, 1.008 * *said_us) << model << " " << one.words;
    }
  }
}

// Settings that help only together: projections of latent attention recomputed alone make room for two micro-batches at once,
// and stages are even with the tokens' dispatcher that is chosen after them. What is said beforehand is not faster.
TEST(LayoutRefinement, TakesSettingsThatHelpOnlyTogether) {
  struct Question {
    const char* model;
    std::int64_t n_gpus, tensor, pipeline, expert;
    DType dtype;
    void (*say)(JobSettings&);
  };
  const Question all[] = {{"deepseek-v3", 256, 4, 4, 64, DType::fp8,
                           [](JobSettings& s) {
                             s.recompute = Recompute::selective;
                             s.recompute_modules = "mla_up_proj";
                           }},
                          {"gpt-oss-120b", 64, 1, 2, 16, DType::bf16, [](JobSettings& s) {
                             s.dispatcher = TokenDispatcher::deepep;
                             s.flex_dispatcher = TokenDispatcher::hybridep;
                           }}};
  for (const Question& one : all) {
    PlanRequest request = request_of(one.model, one.n_gpus, 512);
    request.job.settings.seq_len_tokens = 8192;
    request.restrictions.dtypes = std::vector{one.dtype};
    request.restrictions.tensor = {one.tensor};
    request.restrictions.pipeline = {one.pipeline};
    request.restrictions.context = {2};
    request.restrictions.expert = {one.expert};
    request.restrictions.micro_batch = {1};
    const LayoutPlan open = plan_of(request);
    one.say(request.job.settings);
    const std::optional<double> said_us = comparable_us(request);
    ASSERT_TRUE(said_us) << one.model;
    EXPECT_LE(chosen_layout(open).step.step.time.value(), 1.002 * *said_us) << one.model;
    EXPECT_EQ(chosen_layout(open).point.recompute, chosen_layout(open).layout.layer.recompute.kind);
    // No change stands there twice.
    const RefinedLayout* refined = chosen_layout(open).refinement;
    ASSERT_NE(refined, nullptr) << one.model;
    EXPECT_EQ(std::set<std::string>(refined->changes.begin(), refined->changes.end()).size(),
              refined->changes.size());
  }
}

// Long sequences over many ranks: keys and values that travel around arrive too late.
TEST(LayoutRefinement, ChoosesHowContextIsExchanged) {
  PlanRequest request = request_of("llama-3-8b", 64, 64);
  request.job.settings.seq_len_tokens = 65536;
  const LayoutPlan open = plan_of(request);
  EXPECT_EQ(chosen_layout(open).layout.layer.context_parallel_kind, ContextParallelKind::all_to_all);
  EXPECT_THAT(*megatron_text(chosen_layout(open), open.prototypes), HasSubstr("--cp-comm-type a2a"));
  request.job.settings.context_parallel_kind = ContextParallelKind::ring;
  const LayoutPlan said = plan_of(request);
  EXPECT_EQ(chosen_layout(said).layout.layer.context_parallel_kind, ContextParallelKind::ring);
  EXPECT_LT(chosen_layout(open).step.step.time, chosen_layout(said).step.step.time);
}

// Llama 3 70B needs 1.1 TB with its optimizer: 8 GPUs hold it without.
TEST(LayoutRefinement, PutsTheOptimizerOnTheHostWhereNothingFits) {
  PlanRequest request = request_of("llama-3-70b", 8, 64);
  const LayoutPlan open = plan_of(request);
  ASSERT_FALSE(open.ranking.layouts.empty());
  EXPECT_TRUE(chosen_layout(open).layout.optimizer.cpu_offload);
  EXPECT_THAT(*megatron_text(chosen_layout(open), open.prototypes), HasSubstr("--optimizer-cpu-offload"));
  request.job.settings.optimizer_offload = true;
  EXPECT_EQ(chosen_layout(open).step.step.time, chosen_layout(plan_of(request)).step.step.time);
  request.job.settings.optimizer_offload = false;
  EXPECT_TRUE(plan_of(request).ranking.layouts.empty());
  request.job.settings.optimizer_offload.reset();
  request.n_gpus = 16;  // which hold all of it
  EXPECT_FALSE(chosen_layout(plan_of(request)).layout.optimizer.cpu_offload);
}

// Where the host launches operator by operator and falls behind, layers are captured.
TEST(LayoutRefinement, CapturesLayersWhereTheHostBinds) {
  PlanRequest request = request_of("llama-3-8b", 64, 128);
  request.job.framework = Framework::megatron;
  request.restrictions.tensor = {8};
  request.restrictions.micro_batch = {1};
  const LayoutPlan open = plan_of(request);
  EXPECT_TRUE(chosen_layout(open).layout.layer.cuda_graphs.attention);
  EXPECT_THAT(*megatron_text(chosen_layout(open), open.prototypes), HasSubstr("--cuda-graph-scope attn mlp"));
  request.job.settings.cuda_graph_implementation = "none";
  EXPECT_FALSE(chosen_layout(plan_of(request)).layout.layer.cuda_graphs.attention);
}

// Tokens that go over many nodes by all-to-all leave a layout far behind that is the fastest once it is refined.
TEST(LayoutRefinement, FindsWhatStandsFarBehind) {
  PlanRequest request = request_of("deepseek-v3", 1024, 4096);
  request.job.settings.seq_len_tokens = 4096;
  const double whole_us = chosen_layout(plan_of(request)).step.step.time.value();
  request.restrictions.tensor = {2};
  request.restrictions.pipeline = {4};
  request.restrictions.recomputations = std::vector{Recompute::full};
  EXPECT_LE(whole_us, 1.002 * chosen_layout(plan_of(request)).step.step.time.value());
}

// Who moves tokens to their experts is part of the answer, unless it was said; flags of it are read back.
TEST(LayoutRefinement, ChoosesWhoMovesTokensUnlessItIsSaid) {
  PlanRequest request = request_of("qwen3-30b-a3b", 16, 256);
  const LayoutPlan open = plan_of(request);
  request.job.settings.dispatcher = TokenDispatcher::all_to_all;
  const LayoutPlan said = plan_of(request);
  EXPECT_NE(chosen_layout(open).layout.layer.dispatcher, TokenDispatcher::all_to_all);
  EXPECT_EQ(chosen_layout(said).layout.layer.dispatcher, TokenDispatcher::all_to_all);
  EXPECT_LT(chosen_layout(open).step.step.time, chosen_layout(said).step.step.time);
  const std::optional<std::string> text = megatron_text(chosen_layout(open), open.prototypes);
  ASSERT_TRUE(text.has_value());
  const Result<MegatronWords> words = parse_megatron_command_line(*text);
  ASSERT_TRUE(words.ok()) << words.error().message();
  Job job{.model = "qwen3-30b-a3b", .n_gpus = 16};
  job.settings = words->settings;
  const Result<ResolvedJob> resolved = resolve(job);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->layout, chosen_layout(open).layout);
}

// Experts whose weights are sharded were never published with Megatron-LM: such layouts stand in the table, and a measured
// kind is chosen as long as the difference is within the band.
TEST(LayoutRefinement, PrefersKindsThatWereMeasured) {
  const LayoutPlan plan = plan_of(request_of("qwen3-235b-a22b", 256, 2048));
  EXPECT_EQ(plan.ranking.layouts.front().unmeasured, "experts with sharded weights");
  const ChosenLayout chosen = chosen_layout(plan);
  EXPECT_EQ(plan.ranking.layouts[chosen.of].unmeasured, "");
  EXPECT_NE(chosen.layout.sharding.kind, Sharding::zero3);
}

TEST(TrainingPlan, FindsTheFewestAndTheCheapest) {
  PlanRequest request = request_of("llama-3-8b", 8, 128);
  request.refines = false;
  const TrainingGoal goal{.tokens = 1e11, .within_days = 8, .price_per_gpu_hour = 2};
  const Result<TrainingPlan> plan =
      plan_training(request, {{"dgx-h100", platform()}}, {1, 8, 32, 64, 128}, goal);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  ASSERT_EQ(plan->options.size(), 5U);
  EXPECT_THAT(plan->options[0].why_not, HasSubstr("do not fit"));
  EXPECT_FALSE(plan->options[1].meets);  // 8 GPUs take about 15 days
  ASSERT_TRUE(plan->fewest && plan->cheapest);
  for (const TrainingOption& option : plan->options) {
    if (!option.why_not.empty()) continue;
    EXPECT_NEAR(option.gpu_hours, option.days * 24 * static_cast<double>(option.n_gpus), 1e-6);
    EXPECT_NEAR(*option.price, 2 * option.gpu_hours, 1e-6);
    if (!option.meets) continue;
    EXPECT_GE(option.n_gpus, plan->options[*plan->fewest].n_gpus);
    EXPECT_GE(*option.price, *plan->options[*plan->cheapest].price);
  }
}

TEST(TrainingPlan, ComparesTheLayoutsOfOneMachine) {
  PlanRequest request = request_of("llama-3-8b", 8, 128);
  request.refines = false;
  const Result<TrainingPlan> plan =
      plan_training(request, {{"dgx-h100", platform()}}, {8}, {.tokens = 1e11, .layouts_of_each = 3});
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  ASSERT_EQ(plan->options.size(), 3U);
  EXPECT_NE(plan->options[0].layout, plan->options[1].layout);
  EXPECT_NE(plan->options[1].layout, plan->options[2].layout);
  EXPECT_LE(plan->options[1].days, plan->options[2].days);
}

TEST(TrainingPlan, ReadsDeadlines) {
  EXPECT_EQ(*parse_days("30d"), 30);
  EXPECT_EQ(*parse_days("36h"), 1.5);
  EXPECT_EQ(*parse_days("2w"), 14);
  EXPECT_EQ(*parse_days("7"), 7);
  for (const char* bad : {"", "d", "-3d", "0", "3y", "1e9d"}) EXPECT_FALSE(parse_days(bad).ok()) << bad;
}

}  // namespace
}  // namespace stepcast::layout_refinement_test
