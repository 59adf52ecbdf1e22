#include <cstddef>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/forecast_document.h"

#include "tests/support/paths.h"

namespace stepcast::session_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PredictRequest small_job() {
  PredictRequest request;
  request.job.model = "gpt3-175b";
  request.job.n_gpus = 64;
  request.job.settings.tensor = 8;
  request.job.settings.pipeline = 8;
  request.job.settings.global_batch_sequences = 32;
  request.platform = "dgx-a100";
  return request;
}

TEST(Session, PredictsAJob) {
  const Session session;
  const Result<Forecast> f = session.predict(small_job());
  ASSERT_TRUE(f.ok()) << f.error().message();
  EXPECT_EQ(f->kind, "transformer");
  EXPECT_EQ(f->n_gpus, 64U);
  ASSERT_EQ(f->classes.size(), 8U);  // one per pipeline stage
  EXPECT_LE(f->step_time_p10_ms, f->step_time_ms);
  EXPECT_GE(f->step_time_p90_ms, f->step_time_ms);
  for (const ForecastClass& c : f->classes) {
    EXPECT_NEAR(sum_ms(c.parts()), f->step_time_ms, 1e-6 * f->step_time_ms) << c.name;
  }
  EXPECT_GT(time_ms(f->critical().idle_ms, "pipeline"), 0);
  EXPECT_GT(time_ms(f->critical().exposed_comm_by_group_ms, "tensor"), 0);
  EXPECT_NEAR(f->coverage.sum(), 1, 1e-9);
  const double path = f->critical_path.length_ms;
  EXPECT_NEAR(path, f->step_time_ms, 1e-6 * path);
}

// Of networks, too, everything is found that nobody says: images of a GPU, and a layout that fits.
// Fill, drain and imbalance: inner stages wait as long, whether for the first micro-batch or for the last.
TEST(Session, TheBubbleHasOneNameOnEveryStage) {
  PredictRequest request = small_job();
  request.job.settings.micro_batch_sequences = 1;
  request.open_layout = OpenLayout::as_said;
  const Result<Forecast> f = Session{}.predict(request);
  ASSERT_TRUE(f.ok()) << f.error().message();
  ASSERT_EQ(f->classes.size(), 8U);
  const double bubble_ms = time_ms(f->classes[1].idle_ms, "pipeline");
  EXPECT_GT(bubble_ms, 0.1 * f->step_time_ms);  // 7 of 32 + 7 passes, about
  for (const ForecastClass& c : f->classes) EXPECT_EQ(time_ms(c.idle_ms, "other_rank"), 0) << c.name;
  for (std::size_t stage = 2; stage + 1 < f->classes.size(); ++stage)
    EXPECT_NEAR(time_ms(f->classes[stage].idle_ms, "pipeline"), bubble_ms, 0.05 * bubble_ms) << stage;
}

TEST(Session, NetworksNeedNoFlags) {
  const Session session;
  const auto asked = [&](const std::string& model, const std::string& platform) {
    PredictRequest request;
    request.job.model = model;
    request.job.n_gpus = 8;
    request.job.settings.dtype = DType::fp16;
    request.platform = platform;
    return session.predict(request);
  };
  for (const auto& [model, sample] : {std::pair{"resnet-50", "image"},
                                      {"vgg-16", "image"},
                                      {"vit-large", "image"},
                                      {"dit-xl-2", "image"},
                                      {"t5-large", "sequence"},
                                      {"whisper-small", "sequence"}}) {
    for (const char* platform : {"dgx-1-v100", "dgx-h100"}) {
      const Result<Forecast> f = asked(model, platform);
      ASSERT_TRUE(f.ok()) << model << ": " << f.error().message();
      EXPECT_EQ(f->throughput.sample, sample);
      EXPECT_FALSE(f->throughput.tokens_per_s) << model;
      EXPECT_GT(*f->throughput.samples_per_s, 0);
      ASSERT_TRUE(f->memory) << model;
      EXPECT_LT(f->memory->peak_memory_GiB, f->memory->available_GiB) << model << " on " << platform;
    }
  }
  EXPECT_THAT(
      forecast_text(*asked("resnet-50", "dgx-h100")),
      AllOf(HasSubstr("256 images per micro-batch, 2048 images per step"), HasSubstr("images/s"),
            HasSubstr("global batch not given: 2048 images, 256 per GPU"), Not(HasSubstr("attention"))));
}

// Flags of a plan are those of the step that it says, also where a sample has two lengths or none.
TEST(Session, FlagsOfPlansOfNetworksGiveTheirStep) {
  const Session session;
  const Platform h100 = load_platform("dgx-h100").value();
  const auto check = [&](Job job) {
    job.n_gpus = 8;
    const Result<LayoutPlan> plan = plan_layouts({.job = job, .n_gpus = 8, .restrictions = {}}, h100);
    ASSERT_TRUE(plan.ok()) << job.model << ": " << plan.error().message();
    const ChosenLayout chosen = chosen_layout(*plan);
    PredictRequest request;
    request.job = job;
    request.platform = "dgx-h100";
    request.open_layout = OpenLayout::as_said;
    std::istringstream flags{megatron_text(chosen, plan->prototypes).value()};
    const std::vector<std::string> split{std::istream_iterator<std::string>{flags}, {}};
    const auto words = parse_megatron_flags(split);
    ASSERT_TRUE(words.ok()) << words.error().message();
    request.job.settings = over(job.settings, words->settings);
    const Result<Forecast> f = session.predict(request);
    ASSERT_TRUE(f.ok()) << job.model << ": " << f.error().message();
    EXPECT_NEAR(f->step_time_ms * 1e3, chosen.step.step.time.value(), 1e-6 * chosen.step.step.time.value())
        << job.model;
  };
  for (const char* model : {"resnet-50", "t5-base", "whisper-small"}) check({.model = model});
  Job long_texts{.model = "t5-base"};
  long_texts.settings.seq_len_tokens = 1024;
  long_texts.settings.decoder_tokens = 64;
  check(long_texts);
  PredictRequest decoder;
  decoder.job = {.model = "llama-3-8b", .n_gpus = 8};
  decoder.job.settings.decoder_tokens = 64;
  EXPECT_THAT(session.predict(decoder).error().message(), HasSubstr("--decoder-seq-length"));
  const Result<TrainingPlan> training =
      plan_training({.job = {.model = "t5-base"}, .n_gpus = 8, .restrictions = {}}, {{"dgx-h100", h100}}, {8},
                    {.tokens = 1e9});
  ASSERT_FALSE(training.ok());
  EXPECT_THAT(training.error().message(), HasSubstr("--train-samples"));
}

// Of the best layout: energy and days of `plan` are those of the forecast that searches it.
TEST(Session, EnergyIsThatOfThePlan) {
  const Platform h100 = load_platform("dgx-h100").value();
  Job job{.model = "llama-3-8b", .n_gpus = 64};
  job.settings.global_batch_sequences = 256;
  const Result<TrainingPlan> plan = plan_training({.job = job, .n_gpus = 64, .restrictions = {}},
                                                  {{"dgx-h100", h100}}, {64}, {.tokens = 1e12});
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  ASSERT_EQ(plan->options.size(), 1U);
  PredictRequest request{.job = job, .platform = "dgx-h100"};
  request.budget.tokens = 1e12;
  const Result<Forecast> f = Session{}.predict(request);
  ASSERT_TRUE(f.ok()) << f.error().message();
  const double energy_MWh = plan->options[0].energy_MWh.value();
  EXPECT_NEAR(f->training->energy_MWh.value(), energy_MWh, 1e-6 * energy_MWh);
}

// As the forecast says, where it is said at all: every setting of a layout, a search, a what-if, a limit; the errors too.
TEST(Session, SaysTheStepTimeOfTheForecastAlone) {
  std::vector<PredictRequest> requests(8, small_job());
  requests[1].job.settings.virtual_stages = 2;
  requests[2].job.settings.fully_sharded = true;
  requests[3].job.settings = {};  // searched
  requests[4].what_if = {"network=2x", "gemm=1.5x"};
  requests[5].power_limit_W = 350;
  requests[6].job.settings.pipeline = 7;
  requests[7].measured = {"tp=8 pp=8=9000"};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Session session, fresh;
    const Result<std::optional<StepTime>> time = session.step_time(requests[i]);
    const Result<Forecast> forecast = fresh.predict(requests[i]);
    ASSERT_EQ(time.ok(), forecast.ok()) << i;
    EXPECT_EQ(time.ok(), i != 6);
    if (!time.ok()) {
      EXPECT_EQ(time.error().message(), forecast.error().message());
      continue;
    }
    ASSERT_TRUE(time->has_value()) << i;
    EXPECT_EQ((*time)->step_time_ms, forecast->step_time_ms) << i;
    EXPECT_EQ((*time)->step_time_p10_ms, forecast->step_time_p10_ms) << i;
    EXPECT_EQ((*time)->step_time_p90_ms, forecast->step_time_p90_ms) << i;
  }
  PredictRequest on_pools = small_job();
  on_pools.pools = "32xdgx-a100+32xdgx-h100";
  const Session session;
  const Result<std::optional<StepTime>> time = session.step_time(on_pools);
  ASSERT_TRUE(time.ok());
  EXPECT_FALSE(time->has_value());
}

// What completes a layout, said with it, is the same forecast, and leaves nothing to complete.
TEST(Session, SaysWhatCompletesALayout) {
  const Session session;
  PredictRequest request = small_job();
  const Result<CompletingSettings> rest = session.completing_settings(request);
  ASSERT_TRUE(rest.ok()) << rest.error().message();
  EXPECT_EQ(rest->settings.tensor, std::nullopt);
  EXPECT_TRUE(rest->settings.micro_batch_sequences);
  const double step_ms = session.predict(request)->step_time_ms;
  request.job.settings = over(request.job.settings, rest->settings);
  EXPECT_NEAR(session.predict(request)->step_time_ms, step_ms, 1e-9 * step_ms);
  EXPECT_EQ(session.completing_settings(request)->settings, JobSettings{});
}

std::string layout_note(const Forecast& forecast) {
  for (const std::string& note : forecast.notes)
    if (note.starts_with("layout not given")) return note;
  return {};
}

// Of a machine that is asked about with other parts, the layout is that for the machine as it is, in a session that was asked
// before and in a new one; another may be faster, and is found where it is asked for.
// What a terminal shows of a forecast does not need the other ranks.
TEST(Session, SaysTheSameOfTheRanksThatDecide) {
  const Session session;
  for (const std::int64_t pipeline : {1, 4}) {
    for (const std::int64_t sequences : {16, 256}) {  // with every micro-batch, and with rounds left out
      PredictRequest request{.job = {.model = "llama-3-70b", .n_gpus = 64}, .platform = "dgx-h100"};
      request.job.settings.tensor = 4;
      request.job.settings.pipeline = pipeline;
      request.job.settings.micro_batch_sequences = 1;
      request.job.settings.global_batch_sequences = sequences;
      const auto all = session.predict(request);
      request.only_critical = true;
      const auto critical = session.predict(request);
      ASSERT_TRUE(all.ok() && critical.ok());
      EXPECT_EQ(forecast_text(*critical), forecast_text(*all));
      EXPECT_EQ(all->classes.size(), static_cast<std::size_t>(pipeline));
      EXPECT_EQ(critical->classes.size(), 1U);
      EXPECT_TRUE(critical->collectives.empty());
    }
  }
}

TEST(Session, FasterPartsDoNotMoveALayout) {
  const Session session;
  PredictRequest request{.job = {.model = "llama-3-70b", .n_gpus = 64}, .platform = "dgx-h100"};
  request.job.settings.global_batch_sequences = 128;
  const auto as_it_is = session.predict(request);
  ASSERT_TRUE(as_it_is.ok()) << as_it_is.error().message();
  request.what_if = {"network=0.02x"};
  const auto slower = session.predict(request);
  ASSERT_TRUE(slower.ok()) << slower.error().message();
  EXPECT_GT(slower->step_time_ms, as_it_is->step_time_ms);
  EXPECT_NE(layout_note(*as_it_is), "");
  EXPECT_EQ(layout_note(*slower), layout_note(*as_it_is));
  EXPECT_EQ(Session{}.predict(request)->step_time_ms, slower->step_time_ms);
  request.open_layout = OpenLayout::replanned;
  const auto replanned = session.predict(request);
  ASSERT_TRUE(replanned.ok()) << replanned.error().message();
  EXPECT_NE(layout_note(*replanned), layout_note(*slower));
  EXPECT_LT(replanned->step_time_ms, slower->step_time_ms);
}

// Whatever trains: an open layout is the one that `plan` chooses for the same question, and the note names it.
TEST(Session, OpenLayoutsOfEveryFrameworkAreThoseOfPlan) {
  const Session session;
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  for (const auto& [framework, model] : {std::pair{Framework::megatron, "mixtral-8x7b"},
                                         {Framework::nemo, "llama-3-8b"},
                                         {Framework::automodel, "qwen3-30b-a3b"},
                                         {Framework::torchtitan, "llama-3-8b"},
                                         {Framework::fsdp, "mixtral-8x7b"},
                                         {Framework::deepspeed, "llama-3-8b"},
                                         {Framework::neox, "llama-3-8b"},
                                         {Framework::pytorch, "llama-3-8b"},
                                         {Framework::libai, "llama-3-8b"},
                                         {Framework::maxtext, "llama-3-8b"}}) {
    PredictRequest request{.job = {.model = model, .n_gpus = 16, .framework = framework},
                           .platform = "dgx-h100"};
    request.job.settings.global_batch_sequences = 64;
    const auto predicted = session.predict(request);
    ASSERT_TRUE(predicted.ok()) << predicted.error().message();
    const auto plan =
        plan_layouts({.job = request.job, .n_gpus = 16, .restrictions = {}, .refines = true}, *platform);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    const double planned_ms = chosen_layout(*plan).step.step.time.value() * 1e-3;
    EXPECT_NEAR(predicted->step_time_ms, planned_ms, 1e-9 * planned_ms)
        << to_string(framework) << " " << model;
    EXPECT_THAT(layout_note(*predicted), HasSubstr("what `stepcast plan` chooses")) << to_string(framework);
  }
}

// Also one that splits and shards nothing is kept: the others are not searched.
TEST(Session, ASeriesKeepsAPlainLayout) {
  const Session session;
  PredictRequest request{.job = {.model = "gpt2", .framework = Framework::pytorch}, .platform = "dgx-h100"};
  const auto kept =
      session.predict_series(request, {.gpus = {8, 16}, .micro_batches = {1, 2}, .same_layout = true});
  ASSERT_TRUE(kept.ok()) << kept.error().message();
  ASSERT_EQ(kept->size(), 4U);
  EXPECT_EQ(kept->front().layout_source, "what `stepcast plan` chooses");
  EXPECT_EQ(kept->back().layout_source, "as in the first line");
  EXPECT_EQ(kept->back().micro_batch, 2);
  EXPECT_EQ(layout_note(kept->back().forecast), "");
}

// A series searches each of its points as it is alone, and keeps the layout of the first where that is asked for.
TEST(Session, ASeriesKeepsItsLayout) {
  const Session session;
  PredictRequest request{.job = {.model = "llama-3-70b"}, .platform = "dgx-h100"};
  request.job.settings.global_batch_sequences = 512;
  const auto kept = session.predict_series(request, {.gpus = {64, 256}, .same_layout = true});
  ASSERT_TRUE(kept.ok()) << kept.error().message();
  const auto each = session.predict_series(request, {.gpus = {64, 256}});
  ASSERT_TRUE(each.ok()) << each.error().message();
  EXPECT_EQ(kept->front().layout, each->front().layout);
  EXPECT_NE(kept->back().layout, each->back().layout);
  EXPECT_EQ(layout_note(kept->back().forecast), "");
  for (const auto& [points, n_gpus] : {std::pair{&*kept, 64}, std::pair{&*each, 256}}) {
    request.job.n_gpus = n_gpus;
    const ScalingPoint& point = n_gpus == 64 ? points->front() : points->back();
    EXPECT_EQ(point.n_gpus, n_gpus);
    EXPECT_EQ(point.global_batch, 512);
    EXPECT_EQ(point.forecast.step_time_ms, session.predict(request)->step_time_ms);
    EXPECT_LT(point.bound_ms, point.forecast.step_time_ms);
  }
  request.job.n_gpus = 64;
  request.job.settings.tensor = 2;
  request.open_layout = OpenLayout::as_said;
  const auto batches =
      session.predict_series(request, {.micro_batches = {1, 2}, .global_batches = {256, 512}});
  ASSERT_TRUE(batches.ok()) << batches.error().message();
  ASSERT_EQ(batches->size(), 4U);
  EXPECT_EQ(batches->at(1).global_batch, 512);
  EXPECT_EQ(batches->at(2).global_batch, 256);
  EXPECT_EQ(batches->at(2).layout, "tp2 dp32 mbs2");
}

TEST(Session, NodesAreAsLargeAsTheCallerSays) {
  const Session session;
  PredictRequest request{.job = {.model = "llama-3-8b", .n_gpus = 16},
                         .platform = "dgx-h100",
                         .open_layout = OpenLayout::as_said};
  request.job.settings.tensor = 8;
  const auto shipped = session.predict(request);
  ASSERT_TRUE(shipped.ok()) << shipped.error().message();
  request.job.gpus_per_node = 4;
  const auto small = session.predict(request);
  ASSERT_TRUE(small.ok()) << small.error().message();
  // Tensor parallelism of 8 then goes over the network.
  EXPECT_GT(small->step_time_ms, 1.1 * shipped->step_time_ms);
  EXPECT_THAT(small->notes, ::testing::Contains("nodes of 4 GPUs as described, but dgx-h100 has 8"));
  request.job.gpus_per_node = 8;
  EXPECT_EQ(session.predict(request)->step_time_ms, shipped->step_time_ms);
  request.job.gpus_per_node = 0;
  const auto none = session.predict(request);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message(), HasSubstr("the GPUs of a node, found 0, expected 1 to 32768"));
  request.job.gpus_per_node = 4096;  // only a torus is so large
  const auto rack = session.predict(request);
  ASSERT_FALSE(rack.ok());
  EXPECT_THAT(rack.error().message(),
              HasSubstr("node.gpus_per_node: found 4096, expected a whole number from 1 to 1024"));
}

TEST(Session, PredictsRecordedRanksUnderOtherCircumstances) {
  const Session session;
  const std::filesystem::path traces = test::source_dir() / "examples/dlrm_4gpu";
  const Result<Forecast> same = session.predict(PredictTraceRequest{.places = {traces}});
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_EQ(same->kind, "trace");
  EXPECT_EQ(same->n_gpus, 4U);
  EXPECT_EQ(same->coverage.measured, 1);
  const Result<Forecast> fast =
      session.predict(PredictTraceRequest{.places = {traces}, .what_if = {"host=2x"}});
  ASSERT_TRUE(fast.ok()) << fast.error().message();
  EXPECT_LT(fast->step_time_ms, same->step_time_ms);

  const Result<Forecast> moved = session.predict(
      PredictTraceRequest{.places = {traces}, .platform = "dgx-h100", .recorded_on = "dgx-a100"});
  ASSERT_TRUE(moved.ok()) << moved.error().message();
  EXPECT_EQ(moved->platform, "dgx-h100");
  EXPECT_NEAR(moved->coverage.sum(), 1, 1e-9);
  const Result<Forecast> wrong =
      session.predict(PredictTraceRequest{.places = {traces}, .kernels = "guesses"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), HasSubstr("found `guesses`, expected recorded, models or ratio"));
}

// Four threads share a session, so they take turns with prices that others have left: the forecasts are those of
// a session alone, to the last digit.
TEST(Session, GivesEveryThreadTheSameForecast) {
  const Session alone;
  PredictRequest plain = small_job(), faster = small_job();
  faster.what_if = {"gemm=2x"};
  const Result<Forecast> of_plain = alone.predict(plain), of_faster = alone.predict(faster);
  ASSERT_TRUE(of_plain.ok() && of_faster.ok());
  ASSERT_LT(of_faster->step_time_ms, of_plain->step_time_ms);
  const std::string expected_plain = forecast_json(*of_plain), expected_faster = forecast_json(*of_faster);

  const Session session;
  constexpr int kThreads = 4, kRounds = 2;
  std::vector<std::vector<std::string>> found(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const Result<Forecast> f = session.predict((t + round) % 2 == 0 ? plain : faster);
        found[static_cast<std::size_t>(t)].push_back(f.ok() ? forecast_json(*f) : f.error().message());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(found[static_cast<std::size_t>(t)][static_cast<std::size_t>(round)],
                (t + round) % 2 == 0 ? expected_plain : expected_faster);
    }
  }
}

TEST(Session, ReplaysTracesAndCompares) {
  const Session session;
  ReplayRequest request;
  request.places = {test::source_dir() / "examples" / "dlrm_4gpu"};
  request.samples_per_step = 256;
  request.budget.samples = 2560;
  const Result<Replayed> r = session.replay(request);
  ASSERT_TRUE(r.ok()) << r.error().message();
  EXPECT_EQ(r->simulated.kind, "replay");
  EXPECT_EQ(r->measured.kind, "measurement");
  EXPECT_NEAR(r->measured.step_time_ms, 8.630, 1e-3);  // README: rank 1
  EXPECT_NEAR(r->simulated.step_time_ms, 8.6245, 1e-3);
  ASSERT_TRUE(r->simulated.training.has_value());
  EXPECT_DOUBLE_EQ(r->simulated.training->iterations, 10);
  const Comparison same = compare(r->measured, r->measured);
  EXPECT_TRUE(same.parts.empty());
  EXPECT_TRUE(same.collectives.empty());
  const Comparison c = compare(r->measured, r->simulated);
  EXPECT_NEAR(c.step_difference_ms, r->simulated.step_time_ms - r->measured.step_time_ms, 1e-12);
  EXPECT_FALSE(c.parts.empty());
}

// Kernels of the rank, lookups among them, whose times add up to its work; the dense part decides this step.
TEST(Session, ExplainsRecommendationModels) {
  const Session session;
  PredictDlrmRequest request{.model = "dlrm-mlperf-v1", .platform = "dgx-a100", .n_gpus = 8};
  request.explained = true;
  const Result<Sensitive> answer = session.sensitivity(request);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->forecast.explained.size(), 1U);
  const ForecastItemList& list = answer->forecast.explained.front();
  double sum = 0;
  int lookups = 0;
  for (const ForecastItem& item : list.items) {
    sum += item.overlapped ? 0 : item.time_us;
    lookups += item.name.starts_with("lookup") ? 1 : 0;
  }
  EXPECT_EQ(lookups, 2);
  EXPECT_NEAR(sum, list.gpu_us, 1e-6);
  EXPECT_LE(list.gpu_us, answer->forecast.step_time_ms * 1e3);
  ASSERT_FALSE(answer->sensitivity.resources.empty());
  EXPECT_EQ(answer->sensitivity.resources.front().resource, "gemm");
  EXPECT_NEAR(answer->sensitivity.step_time_ms, answer->forecast.step_time_ms, 1e-9);
  double shares = 0;
  for (const ResourceSensitivity& one : answer->sensitivity.resources) shares += one.elasticity;
  EXPECT_LE(shares, 1 + 1e-9);
}

TEST(Session, SaysWhatIsWrong) {
  const Session session;
  PredictRequest request = small_job();
  request.platform = "dgx-z900";
  EXPECT_THAT(session.predict(request).error().message(), HasSubstr("dgx-z900"));
  request = small_job();
  request.what_if = {"nvlink=fast"};
  EXPECT_THAT(session.predict(request).error().message(), HasSubstr("found `nvlink=fast`"));
  request = small_job();
  request.budget.samples = 1;
  request.budget.tokens = 1;
  EXPECT_THAT(session.predict(request).error().message(), HasSubstr("a training needs exactly one length"));
  EXPECT_THAT(session.replay({.places = {"/nowhere"}}).error().message(), HasSubstr("/nowhere"));
}

// What ran is what the log's arguments say, and the comparison is that of the forecast with the log.
TEST(Session, PredictsWhatALogRan) {
  const Session session;
  const auto predicted =
      session.predict(PredictLogRequest{.log = test::source_dir() / "tests" / "golden" / "logs" / "train.log",
                                        .request = {.platform = "dgx-h100"}});
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  EXPECT_EQ(predicted->forecast.n_gpus, 64U);
  EXPECT_EQ(predicted->forecast.layout, predicted->measured.layout);
  EXPECT_NEAR(predicted->measured.step_time_ms, 2130, 10);
  EXPECT_DOUBLE_EQ(predicted->comparison.b_step_time_ms, predicted->measured.step_time_ms);
  EXPECT_TRUE(predicted->comparison.settings.empty());
  EXPECT_NE(predicted->run, nullptr);
}

}  // namespace
}  // namespace stepcast::session_test
