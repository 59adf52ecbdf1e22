// What experts add to a step: tokens that are conserved, products that count active parameters, exchanges by library.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/presets.h"
#include "stepcast/workload/step_work.h"

#include "tests/workload/step_work_text.h"

namespace stepcast {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

Transformer mixture() {
  Transformer model = llama();
  model.name = "mixture";
  model.moe = MixtureOfExperts{.n_experts = 8, .experts_per_token = 2, .expert_ffn_hidden_size = 2816};
  return model;
}

// 1024 tokens visit 2 experts each; on ep ranks with 8 / ep experts the visits of all ranks are the same.
TEST(StepWorkExperts, TokensAreConserved) {
  for (const std::int64_t ep : {1, 2, 4, 8}) {
    Layout layout = layout_of(1);
    layout.degrees.data = ep;
    layout.degrees.expert = ep;
    layout.batch.global_batch_sequences = 2 * ep;
    const StepWork work = work_for(mixture(), layout);
    std::int64_t visits = 0, width = 0;
    for (const WorkItem& item : work.layer_kinds[0]->forward) {
      if (item.name != "expert_up") continue;
      const auto& s = std::get<GemmShape>(item.operation()->shape);
      visits = s.batch * s.m;
      width = s.n;
    }
    EXPECT_EQ(visits, 2 * 1024) << "ep " << ep;
    EXPECT_EQ(width, 2 * 2816);
    const Totals sum = totals(work.layer_kinds[0]->forward);
    const double sent = ep == 1 ? 0 : 2.0 * (1024 * 2) * 1024 * 2;  // there and back
    EXPECT_DOUBLE_EQ(sum.transferred_bytes, sent) << "ep " << ep;
  }
}

// Router: 8 columns; experts: 2 of 8 for every token.
TEST(StepWorkExperts, ProductsAreSixPerActiveParameterAndToken) {
  const Transformer model = mixture();
  const Totals sum = totals(work_for(model, layout_of(1)));
  const double h = 1024;
  const double per_layer = h * 64 * (16 + 8) + h * h + h * 8 + 2 * 3 * h * 2816;
  EXPECT_NEAR(sum.products / (6 * 1024 * (4 * per_layer + h * 32768)), 1, 1e-12);
}

TEST(StepWorkExperts, ImbalanceMakesTheBusiestRankWaitedFor) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  const Totals even = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  layout.layer.expert_imbalance = 1.5;
  const Totals uneven = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  EXPECT_DOUBLE_EQ(uneven.transferred_bytes, 1.5 * even.transferred_bytes);
  EXPECT_GT(uneven.products, even.products);
}

TEST(StepWorkExperts, ExpertParametersAreSpreadOverExpertParallelRanks) {
  Layout layout = layout_of(1);
  const StepWork alone = work_for(mixture(), layout);
  layout.degrees.data = layout.degrees.expert = 4;
  const StepWork spread = work_for(mixture(), layout);
  EXPECT_DOUBLE_EQ(alone.chunks[0].expert_parameters, 4 * 8 * 3.0 * 1024 * 2816);
  EXPECT_DOUBLE_EQ(spread.chunks[0].expert_parameters, alone.chunks[0].expert_parameters / 4);
  EXPECT_DOUBLE_EQ(spread.chunks[0].dense_parameters, alone.chunks[0].dense_parameters);
  EXPECT_DOUBLE_EQ(alone.chunks[0].dense_parameters + alone.chunks[0].expert_parameters,
                   static_cast<double>(parameter_count(mixture()).total()));
}

std::vector<std::string> names_of(const WorkList& list) {
  std::vector<std::string> names;
  for (const WorkItem& item : list) names.emplace_back(item.name);
  return names;
}
bool has(const WorkList& list, std::string_view name) {
  const auto names = names_of(list);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// 1024 tokens of 1024 elements of 2 bytes: 2 MiB once, twice that for two experts each.
TEST(StepWorkExperts, LibrariesSendATokenOnce) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.batch.global_batch_sequences = 8;
  const auto dispatch = [&](TokenDispatcher dispatcher) {
    layout.layer.dispatcher = dispatcher;
    const StepWork work = work_for(mixture(), layout);
    for (const WorkItem& item : work.layer_kinds[0]->forward) {
      if (item.name == "dispatch_tokens") return *item.transfer();
    }
    return Transfer{};
  };
  EXPECT_EQ(dispatch(TokenDispatcher::all_to_all),
            (Transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{2.0 * 1024 * 1024 * 2}}));
  EXPECT_EQ(dispatch(TokenDispatcher::deepep),
            (Transfer{CollectiveOp::scatter, GroupKind::expert, Bytes{1024.0 * 1024 * 2}}));
  EXPECT_EQ(dispatch(TokenDispatcher::all_gather),
            (Transfer{CollectiveOp::all_gather, GroupKind::expert, Bytes{4 * 1024.0 * 1024 * 2}}));
}

TEST(StepWorkExperts, HybridEpWritesInTheOrderOfExperts) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.batch.global_batch_sequences = 8;
  const WorkList all_to_all = work_for(mixture(), layout).layer_kinds[0]->forward;
  layout.layer.dispatcher = TokenDispatcher::deepep;
  const WorkList deepep = work_for(mixture(), layout).layer_kinds[0]->forward;
  layout.layer.dispatcher = TokenDispatcher::hybridep;
  const WorkList hybridep = work_for(mixture(), layout).layer_kinds[0]->forward;
  EXPECT_TRUE(has(all_to_all, "permute_tokens") && has(all_to_all, "sort_by_expert"));
  EXPECT_TRUE(!has(deepep, "permute_tokens") && has(deepep, "sort_by_expert"));
  EXPECT_TRUE(!has(hybridep, "permute_tokens") && !has(hybridep, "sort_by_expert"));
}

// Of an exchange beside another micro-batch 0.15 stays exposed; of the rest the forward pass hides two thirds of its
// own, the backward pass four: together all of it.
TEST(StepWorkExperts, ExchangeRunsBesideAnotherMicroBatch) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.batch.global_batch_sequences = 8;
  const auto sums = [&] {
    double beside = 0, exposed = 0;
    const StepWork work = work_for(mixture(), layout);
    for (const WorkList* list : {&work.layer_kinds[0]->forward, &work.layer_kinds[0]->backward}) {
      for (const WorkItem& item : *list) {
        if (item.transfer() == nullptr) continue;
        (item.beside_rest ? beside : exposed) += item.transfer()->message.value();
      }
    }
    return std::pair{beside, exposed};
  };
  const auto [none, whole] = sums();
  EXPECT_EQ(none, 0);
  layout.layer.overlap.expert = true;
  const auto [beside, exposed] = sums();
  EXPECT_NEAR(exposed / whole, 0.15, 1e-12);
  EXPECT_NEAR(beside / whole, 0.85, 1e-12);
}

TEST(StepWorkExperts, CapacityLimitsTheBusiestRank) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.layer.expert_imbalance = 2;
  const Totals all = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  layout.layer.expert_capacity_factor = 1;
  const Totals dropped = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  EXPECT_DOUBLE_EQ(all.transferred_bytes, 2 * dropped.transferred_bytes);
}

TEST(StepWorkExperts, PaddedExpertsAreAlwaysFull) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  const Totals even = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  layout.layer.expert_capacity_factor = 1.5;
  EXPECT_DOUBLE_EQ(totals(work_for(mixture(), layout).layer_kinds[0]->forward).transferred_bytes,
                   even.transferred_bytes);
  layout.layer.expert_pads_to_capacity = true;
  EXPECT_DOUBLE_EQ(totals(work_for(mixture(), layout).layer_kinds[0]->forward).transferred_bytes,
                   1.5 * even.transferred_bytes);
}

TEST(StepWorkExperts, GraphsCaptureTheirScopeAlone) {
  Layout layout = layout_of(1);
  layout.layer.cuda_graphs.router = true;
  const StepWork work = work_for(mixture(), layout);
  for (const WorkItem& item : work.layer_kinds[0]->forward) {
    const bool of_router = item.name == "router" || item.name == "router_input_in_fp32" ||
                           item.name == "router_scores" || item.name == "top_k" ||
                           item.name == "routing_map" || item.name == "auxiliary_loss" ||
                           item.name == "router_on_host";
    EXPECT_EQ(item.captured, of_router) << item.name;
  }
}

// DeepSeek-V3: queries h -> 1536 -> 128 heads of 128 + 64; keys and values h -> 512 + 64, 512 -> 128 heads of
// 128 + 128; attention has queries of 192 and values of 128.
TEST(StepWorkLatentAttention, ShapesOfDeepSeekV3) {
  const Result<Transformer> model = find_preset("deepseek-v3");
  ASSERT_TRUE(model.ok());
  Layout layout{.batch = {.seq_len_tokens = 4096}};
  const StepWork work = work_for(*model, layout);
  std::map<std::string, std::string> lines;
  for (const WorkItem& item : work.layer_kinds[0]->forward) lines[std::string{item.name}] = text(item);
  EXPECT_EQ(lines["query_down"], "query_down gemm 4096x1536x7168");
  EXPECT_EQ(lines["query_up"], "query_up gemm 4096x24576x1536");
  EXPECT_EQ(lines["key_value_down"], "key_value_down gemm 4096x576x7168");
  EXPECT_EQ(lines["key_value_up"], "key_value_up gemm 4096x32768x512");
  EXPECT_EQ(lines["attention"], "attention attention batch 1 q 4096 k 4096 heads 128/128 dim 192");
  EXPECT_EQ(lines["attention_output"], "attention_output gemm 4096x7168x16384");
  // Three dense layers in front, 58 with experts, and the one that predicts a further token.
  ASSERT_EQ(work.chunks[0].runs.size(), 2U);
  EXPECT_EQ(work.chunks[0].runs[0].count, 3U);
  EXPECT_EQ(work.chunks[0].runs[1].count, 59U);
}

// Every product of the forward has both gradients.
TEST(StepWorkLatentAttention, BackwardIsTwiceTheForward) {
  for (const char* name : {"deepseek-v3", "mixtral-8x7b"}) {
    const Result<Transformer> model = find_preset(name);
    ASSERT_TRUE(model.ok());
    Layout layout{.batch = {.seq_len_tokens = 4096}};
    for (const auto& layer : work_for(*model, layout).layer_kinds) {
      EXPECT_DOUBLE_EQ(totals(layer->backward).products, 2 * totals(layer->forward).products) << name;
    }
  }
}

// 1024 tokens visit 2 of 8 experts on one rank: 256 each, 262,144 elements of an expert, 2,097,152 of all. What the
// scores made fp32 is read and written with four bytes an element, as two of the products' type.
TEST(StepWorkExperts, ScoresWeighTheBiasOfTheOutput) {
  Transformer model = mixture();
  model.ffn_bias = true;
  Layout layout = layout_of(1);
  const WorkList forward = work_for(model, layout).layer_kinds[0]->forward;
  const auto elementwise = [](const WorkList& list) {
    std::vector<std::string> lines;
    for (const WorkItem& item : list) {
      if (item.operation() == nullptr) continue;
      if (const auto* e = std::get_if<ElementwiseShape>(&item.operation()->shape))
        lines.push_back(fmt::format("{} reads {} writes {}", text(item), e->reads, e->writes));
    }
    return lines;
  };
  EXPECT_THAT(elementwise(forward), IsSupersetOf({"8 times weigh_bias multiply 262144 reads 0 writes 2",
                                                  "8 times add_weighed_bias add 262144 reads 3 writes 2",
                                                  "join_experts elementwise 2097152 reads 2 writes 2",
                                                  "cast_joined cast 2097152 reads 2 writes 1"}));
  EXPECT_TRUE(has(work_for(model, layout).layer_kinds[0]->backward, "score_gradient"));
  layout.layer.fused.compiled = true;
  EXPECT_FALSE(has(work_for(model, layout).layer_kinds[0]->forward, "weigh_bias"));
  EXPECT_FALSE(has(work_for(mixture(), layout_of(1)).layer_kinds[0]->forward, "weigh_bias"));
}

}  // namespace
}  // namespace stepcast
