// What experts add to a step: tokens that are conserved, products that count active parameters, exchanges by library.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"
#include "stepcast/workload/step_work.h"

#include "tests/workload/step_work_text.h"

namespace stepcast::step_work_experts_test {
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
    // There and back; the score of each visit; the counts of 8 experts from every rank.
    const double tokens = 2.0 * (1024 * 2) * 1024 * 2, scores = 1024 * 2 * 4,
                 counts = 8 * 8.0 * static_cast<double>(ep);
    EXPECT_DOUBLE_EQ(sum.transferred_bytes, ep == 1 ? 0 : tokens + scores + counts) << "ep " << ep;
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
  constexpr double kCounts = 8 * 8 * 4;
  EXPECT_DOUBLE_EQ(uneven.transferred_bytes - kCounts, 1.5 * (even.transferred_bytes - kCounts));
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

std::size_t place_of(const WorkList& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &WorkItem::name);
  EXPECT_NE(found, list.end()) << name;
  return static_cast<std::size_t>(found - list.begin());
}

// Shares of the exchanges of a layer: beside computation, and what they slow it down by.
std::map<std::string_view, std::pair<double, double>> shares(const LayerWork& layer) {
  std::map<std::string_view, std::pair<double, double>> sums;
  for (const WorkList* list : {&layer.forward, &layer.backward}) {
    for (const WorkItem& item : *list) {
      if (item.transfer() == nullptr) continue;
      (item.overlaps_remainder ? sums[item.name].first : sums[item.name].second) += item.share;
    }
  }
  return sums;
}

Layout on_four_ranks() {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.batch.global_batch_sequences = 8;
  return layout;
}

// Every exchange runs once, whole: 0.85 beside the computation of another micro-batch, which the SMs that it takes make
// 0.15 of it longer. Gradients travel in the forward pass, tokens in the backward pass.
TEST(StepWorkExperts, ExchangeRunsBesideAnotherMicroBatch) {
  for (const bool delayed : {false, true}) {
    Layout layout = on_four_ranks();
    layout.layer.overlap.expert = true;
    layout.layer.overlap.delayed_weight_gradient = delayed;
    const LayerWork layer = *work_for(mixture(), layout).layer_kinds[0];
    const auto sums = shares(layer);
    ASSERT_EQ(sums.size(), 4U);
    for (const auto& [name, sum] : sums) EXPECT_NEAR(sum.first + sum.second, 1, 1e-12) << name;
    const WorkList& forward = layer.forward;
    EXPECT_EQ(place_of(forward, "dispatch_gradients_of_other_batch"), 0U);
    const std::size_t back = place_of(forward, "return_gradients_of_other_batch");
    EXPECT_TRUE(forward[back].joins && back < place_of(forward, "expert_up"));
    const WorkList& backward = layer.backward;
    EXPECT_LT(place_of(backward, "dispatch_tokens_of_other_batch"),
              place_of(backward, "expert_down_input_gradient"));
    const std::size_t combine = place_of(backward, "combine_tokens_of_other_batch");
    EXPECT_TRUE(backward[combine].joins);
    EXPECT_GT(combine, place_of(backward, "expert_up_weight_gradient"));
    EXPECT_LT(combine, place_of(backward, "attention_output_input_gradient"));
    EXPECT_FALSE(has(forward, "dispatch_tokens") || has(backward, "dispatch_gradients"));
  }
}

// Kernels of a library leave more of an exchange beside the products than collectives, those that take fewer SMs most.
TEST(StepWorkExperts, DispatchersLeaveDifferentSharesExposed) {
  const auto exposed = [](TokenDispatcher dispatcher) {
    Layout layout = on_four_ranks();
    layout.layer.overlap.expert = true;
    layout.layer.dispatcher = dispatcher;
    return shares(*work_for(mixture(), layout).layer_kinds[0]).at("combine_tokens_of_other_batch").second;
  };
  EXPECT_NEAR(exposed(TokenDispatcher::deepep), 0.15, 1e-12);    // 20 of 132
  EXPECT_NEAR(exposed(TokenDispatcher::hybridep), 0.24, 1e-12);  // 32 of 132
  EXPECT_NEAR(exposed(TokenDispatcher::all_to_all), 0.5, 1e-12);
}

// Half of what leaves the gradients of experts runs beside their weight gradients, a third of what comes next beside those
// of the attention; everything is computed all the same.
TEST(StepWorkExperts, DelayedWeightGradientsHideExchanges) {
  Layout layout = on_four_ranks();
  layout.layer.overlap.expert = true;
  const LayerWork usual = *work_for(mixture(), layout).layer_kinds[0];
  layout.layer.overlap.delayed_weight_gradient = true;
  const LayerWork delayed = *work_for(mixture(), layout).layer_kinds[0];
  EXPECT_DOUBLE_EQ(totals(delayed.backward).products, totals(usual.backward).products);
  const WorkList& list = delayed.backward;
  const std::vector<std::string_view> order = {
      "expert_down_input_gradient",      "expert_up_input_gradient",
      "return_gradients_of_other_batch", "expert_down_weight_gradient",
      "expert_up_weight_gradient",       "combine_tokens_of_other_batch",
      "attention_output_input_gradient", "qkv_input_gradient",
      "attention_norm_gradient",         "dispatch_gradients_of_other_batch",
      "attention_output_weight_gradient"};
  for (std::size_t i = 1; i < order.size(); ++i) {
    EXPECT_LT(place_of(list, order[i - 1]), place_of(list, order[i])) << order[i];
  }
  const auto share_in = [](const WorkList& where, std::string_view name) {
    double sum = 0;
    for (const WorkItem& item : where) sum += item.name == name ? item.share : 0;
    return sum;
  };
  EXPECT_NEAR(share_in(list, "return_gradients_of_other_batch"), 0.5, 1e-12);
  EXPECT_NEAR(share_in(list, "dispatch_gradients_of_other_batch"), 1.0 / 3, 1e-12);
  EXPECT_EQ(share_in(usual.backward, "return_gradients_of_other_batch"), 0);
}

// Whole layers that are computed again have no other micro-batch beside them.
TEST(StepWorkExperts, RecomputedLayersExchangeTheirOwnTokens) {
  Layout layout = on_four_ranks();
  layout.layer.overlap.expert = true;
  layout.layer.recompute.kind = Recompute::full;
  const LayerWork layer = *work_for(mixture(), layout).layer_kinds[0];
  EXPECT_TRUE(has(layer.forward, "dispatch_tokens") && has(layer.backward, "dispatch_tokens"));
}

// Up and activation of the shared experts run beside the dispatch, their second product beside the combine; both wait for
// the tokens behind it.
TEST(StepWorkExperts, SharedExpertsRunBesideTheExchange) {
  Transformer model = mixture();
  model.moe->n_shared_experts = 1;
  model.moe->shared_ffn_hidden_size = 1024;
  Layout layout = on_four_ranks();
  const LayerWork behind = *work_for(model, layout).layer_kinds[0];
  layout.layer.overlap.shared_experts = true;
  const LayerWork beside = *work_for(model, layout).layer_kinds[0];
  EXPECT_DOUBLE_EQ(totals(beside.forward).products, totals(behind.forward).products);
  EXPECT_DOUBLE_EQ(totals(beside.backward).products, totals(behind.backward).products);
  const WorkList& list = beside.forward;
  const std::vector<std::string_view> order = {"dispatch_tokens", "ffn_up",   "dispatch_on_host", "expert_up",
                                               "combine_tokens",  "ffn_down", "combine_on_host"};
  for (std::size_t i = 1; i < order.size(); ++i) {
    EXPECT_LT(place_of(list, order[i - 1]), place_of(list, order[i])) << order[i];
  }
  EXPECT_TRUE(list[place_of(list, "dispatch_on_host")].joins);
}

TEST(StepWorkExperts, CapacityLimitsTheBusiestRank) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  layout.layer.expert_imbalance = 2;
  const Totals all = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  layout.layer.expert_capacity_factor = 1;
  const Totals dropped = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  constexpr double kCounts = 8 * 8 * 4;
  EXPECT_DOUBLE_EQ(all.transferred_bytes - kCounts, 2 * (dropped.transferred_bytes - kCounts));
}

TEST(StepWorkExperts, PaddedExpertsAreAlwaysFull) {
  Layout layout = layout_of(1);
  layout.degrees.data = layout.degrees.expert = 4;
  const Totals even = totals(work_for(mixture(), layout).layer_kinds[0]->forward);
  layout.layer.expert_capacity_factor = 1.5;
  EXPECT_DOUBLE_EQ(totals(work_for(mixture(), layout).layer_kinds[0]->forward).transferred_bytes,
                   even.transferred_bytes);
  layout.layer.expert_pads_to_capacity = true;
  constexpr double kCounts = 8 * 8 * 4;  // of experts that may be less than full
  EXPECT_DOUBLE_EQ(totals(work_for(mixture(), layout).layer_kinds[0]->forward).transferred_bytes,
                   1.5 * (even.transferred_bytes - kCounts));
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

// What predicts a further token has logits and a loss of its own, and projects 2 x 7168 to 7168; the last of several
// stages holds a copy of the embedding for it.
TEST(StepWorkLatentAttention, FurtherTokensHaveTheirLoss) {
  Result<Transformer> model = find_preset("deepseek-v3");
  ASSERT_TRUE(model.ok());
  Layout layout{.batch = {.seq_len_tokens = 4096}};
  const StepWork work = work_for(*model, layout);
  const std::vector<std::string> head = texts(work.head->forward);
  EXPECT_THAT(head, IsSupersetOf({"2 times logits gemm 4096x129280x7168",
                                  "next_token_projection gemm 4096x7168x14336"}));
  EXPECT_DOUBLE_EQ(totals(work.head->backward).products, 2 * totals(work.head->forward).products);
  const double with = work.head->dense_parameters;
  layout.degrees.pipeline = 61;
  const double last = work_for(*model, layout).chunks.back().dense_parameters;
  model->n_multi_token_prediction_layers = 0;
  const StepWork without = work_for(*model, layout);
  EXPECT_DOUBLE_EQ(with - without.head->dense_parameters, 2.0 * 7168 * 7168 + 3 * 7168);
  const double layer = without.layer_kinds.back()->dense_parameters, embedding = 129280.0 * 7168;
  EXPECT_DOUBLE_EQ(last - without.chunks.back().dense_parameters,
                   layer + embedding + 2.0 * 7168 * 7168 + 3 * 7168);
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
}  // namespace stepcast::step_work_experts_test
