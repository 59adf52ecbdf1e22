#include "stepcast/workload/optimizer_work.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/step_work.h"

namespace stepcast::optimizer_work_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OptimizerWork, ReadsAndWritesTheStatesOfAdam) {
  Layout layout = Layout{};
  const WorkList list = optimizer_work(layout, {.dense = 1e6, .expert = 5e5});
  double parameters = 0;
  for (const WorkItem& item : list) {
    if (item.name != "optimizer_step") continue;
    const auto& s = std::get<OptimizerShape>(item.operation()->shape);
    parameters = static_cast<double>(s.parameters);
    EXPECT_EQ(s.bytes_read_per_parameter, 4 + 4 + 8);  // gradient, fp32 weight, two moments
    EXPECT_EQ(s.bytes_written_per_parameter, 4 + 8);
  }
  EXPECT_EQ(parameters, 1.5e6);
  EXPECT_TRUE(optimizer_work(layout, {}).empty());
  layout.optimizer.gradient_clip = false;
  EXPECT_EQ(optimizer_work(layout, {.dense = 1e6}).size(), list.size() - 2);
}

// 1,000 parameters, bf16 with fp32 states: gradients of 4 B down, weights of 2 B up. The host reads gradient, master and
// two moments and writes all but the gradient and the weight: 4 + 12 + 12 + 2 = 30 B, of which a GPU that has the host to
// itself counts an eighth.
TEST(OptimizerWork, AnUpdateOnTheHost) {
  Layout layout = Layout{};
  layout.layer.precision.compute = DType::bf16;
  layout.layer.precision.gradients = DType::fp32;
  layout.optimizer.cpu_offload = true;
  layout.optimizer.gradient_clip = false;
  layout.degrees.data = 8;
  const auto bytes = [&] {
    std::vector<std::pair<std::string, std::int64_t>> all;
    for (const WorkItem& item : optimizer_work(layout, {.dense = 1000})) {
      all.emplace_back(item.name, std::get<TransferShape>(item.operation()->shape).bytes);
    }
    return all;
  };
  using Copy = std::pair<std::string, std::int64_t>;
  EXPECT_THAT(bytes(), ElementsAre(Copy{"gradients_to_host", 4000}, Copy{"update_on_host", 30000},
                                   Copy{"weights_from_host", 2000}));
  layout.degrees.data = 1;
  EXPECT_EQ(bytes()[1].second, 3750);
}

// Two stages of two layers with 12 tensors each: an operator for every tensor, and for the log 2 and 3 more; of the last
// stage's layers every one has 8 / 4 experts of 2 tensors.
TEST(OptimizerWork, CountsOperatorsOfTheStageWithMostTensors) {
  Transformer model{.n_layers = 4,
                    .hidden_size = 64,
                    .ffn_hidden_size = 256,
                    .n_heads = 4,
                    .vocab_size = 128,
                    .max_position = 64};
  Layout layout{.degrees = {.pipeline = 2, .data = 4}};
  layout.batch = {.micro_batch_sequences = 1, .global_batch_sequences = 8, .seq_len_tokens = 64};
  const auto operators = [&] {
    const Result<StepWork> work = step_work(model, layout);
    EXPECT_TRUE(work.ok()) << work.error().message();
    return work.ok() ? update_operators(model, layout, *work) : 0;
  };
  EXPECT_EQ(operators(), 2 * 12);
  layout.optimizer.parameter_norm = layout.optimizer.gradient_zeros = true;
  EXPECT_EQ(operators(), 2 * 12 * (1 + 2 + 3));
  model.moe = MixtureOfExperts{
      .n_experts = 8, .experts_per_token = 1, .expert_ffn_hidden_size = 64, .first_dense_layers = 2};
  layout.degrees.expert = 4;
  EXPECT_EQ(operators(), 2 * (12 + 2 * 2) * (1 + 2 + 3));
}

constexpr double kMatrix = 4096.0 * 11008;  // 45,088,768 parameters

// One matrix of 4096 x 11008, bf16 with fp32 states.
TrainedParameters one_matrix() { return {.dense = kMatrix, .matrices = {{4096, 11008, 1, false}}}; }

Layout layout_with(OptimizerKind kind, Sharding sharding = Sharding::none, std::int64_t data = 1) {
  Layout layout;
  layout.optimizer.kind = kind;
  layout.sharding.kind = sharding;
  layout.degrees.data = data;
  return layout;
}

double flops_of(const WorkList& list, std::string_view name) {
  double flops = 0;
  for (const WorkItem& item : list) {
    if (item.name.starts_with(name))
      flops += static_cast<double>(item.count) * work_of(*item.operation()).flops.value();
  }
  return flops;
}

double gathered_bytes(const WorkList& list) {
  double bytes = 0;
  for (const WorkItem& item : list) {
    if (item.transfer() != nullptr) bytes += item.transfer()->message.value();
  }
  return bytes;
}

// Momentum: 4 B of 45,088,768 parameters. An iteration is A = X X' and X = a X + B X of 2 m m n each and B = b A + c A A
// of 2 m m m: 4 * 4096 * 4096 * 11008 + 2 * 4096^3 = 876,173,328,384; five of them.
TEST(OptimizerWork, MuonOfOneMatrix) {
  const Layout layout = layout_with(OptimizerKind::muon);
  EXPECT_EQ(optimizer_state_bytes(layout, one_matrix()), 180'355'072);
  EXPECT_EQ(optimizer_state_bytes(layout_with(OptimizerKind::adam), {.dense = kMatrix}), 360'710'144);
  const WorkList list = optimizer_work(layout, one_matrix());
  EXPECT_EQ(flops_of(list, "orthogonalize"), 4'380'866'641'920);
  EXPECT_EQ(gathered_bytes(list), 0);
  for (const WorkItem& item : list) EXPECT_NE(item.name, "optimizer_step");  // nothing is left for AdamW
  Layout three = layout;
  three.optimizer.newton_schulz_iterations = 3;
  EXPECT_EQ(flops_of(optimizer_work(three, one_matrix()), "orthogonalize"), 3 * 876'173'328'384.0);
}

// Under ZeRO-1 on four ranks the matrix is put together in bf16: 2 B of 45,088,768 parameters. Megatron's dist_muon has
// an owner for it.
TEST(OptimizerWork, MuonGathersMatricesThatRanksShare) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2, Sharding::zero3}) {
    const Layout layout = layout_with(OptimizerKind::muon, sharding, 4);
    const WorkList list = optimizer_work(layout, one_matrix());
    EXPECT_EQ(gathered_bytes(list), 90'177'536);
    EXPECT_EQ(flops_of(list, "orthogonalize"), 4'380'866'641'920);
    EXPECT_EQ(optimizer_state_bytes(layout, one_matrix()), 180'355'072 / 4);
  }
  const Layout owned = layout_with(OptimizerKind::dist_muon, Sharding::zero1, 4);
  EXPECT_EQ(gathered_bytes(optimizer_work(owned, one_matrix())), 0);
  // Eight matrices on four ranks: two each; with rows of all of them everywhere: all.
  TrainedParameters eight{.dense = 8 * kMatrix, .matrices = {{4096, 11008, 8, false}}};
  EXPECT_EQ(flops_of(optimizer_work(owned, eight), "orthogonalize"), 2 * 4'380'866'641'920);
  EXPECT_EQ(
      flops_of(optimizer_work(layout_with(OptimizerKind::muon, Sharding::zero3, 4), eight), "orthogonalize"),
      8 * 4'380'866'641'920);
}

// Two moments, and statistics and eigenbasis of the side of 4096 in fp32: 2 * 4 * 4096^2 = 134,217,728; the side of 11008
// has none. The statistics take 2 * 4096 * 4096 * 11008 = 369,367,187,456 FLOPs, to turn the gradient and to turn the update
// back as many each. The basis: 14/3 * 4096^3 every ten steps.
TEST(OptimizerWork, SoapOfOneMatrix) {
  const Layout layout = layout_with(OptimizerKind::soap);
  EXPECT_EQ(optimizer_state_bytes(layout, one_matrix()), 360'710'144 + 134'217'728);
  const WorkList list = optimizer_work(layout, one_matrix());
  EXPECT_EQ(flops_of(list, "preconditioner_statistics"), 369'367'187'456);
  EXPECT_EQ(flops_of(list, "precondition") - flops_of(list, "preconditioner"), 738'734'374'912);
  EXPECT_NEAR(flops_of(list, "renew"), 14.0 / 3 * 68'719'476'736 / 10, 1);
}

// Blocks of 4096 x 5504: statistics and roots of two of them, 2 * 2 * 4 * (4096^2 + 5504^2).
TEST(OptimizerWork, ShampooOfOneMatrix) {
  const Layout layout = layout_with(OptimizerKind::shampoo);
  EXPECT_EQ(optimizer_state_bytes(layout, one_matrix()), 360'710'144 + 753'139'712);
  const WorkList list = optimizer_work(layout, one_matrix());
  // Both sides of both blocks: 2 * (2 * 4096^2 * 5504 + 2 * 5504^2 * 4096).
  EXPECT_EQ(flops_of(list, "preconditioner_statistics"), 865'704'345'600);
  EXPECT_NEAR(flops_of(list, "renew"), 11 * 2 * (68'719'476'736.0 + 166'738'264'064.0) / 100, 1);
}

// A gated layer of 64 wide and 256 deep, two heads of 32, on two tensor-parallel ranks.
TEST(OptimizerWork, MatricesOfALayer) {
  Transformer model{.n_layers = 3,
                    .hidden_size = 64,
                    .ffn_hidden_size = 256,
                    .n_heads = 2,
                    .vocab_size = 100,
                    .max_position = 128,
                    .gated_ffn = true};
  Layout layout = layout_with(OptimizerKind::muon);
  layout.degrees.tensor = 2;
  layout.batch.seq_len_tokens = 128;
  const auto matrices = [&] {
    TrainedParameters trained;
    const Result<StepWork> work = step_work(model, layout);
    if (work.ok()) add_weight_matrices(model, layout, *work, work->chunks[0], trained);
    std::vector<std::vector<std::int64_t>> out;
    for (const WeightMatrices& m : trained.matrices) out.push_back({m.rows, m.columns, m.count});
    return out;
  };
  using Row = std::vector<std::int64_t>;
  // Output projection and the way down, queries, keys and values, the two ways up.
  EXPECT_THAT(matrices(), ElementsAre(Row{64, 32, 3}, Row{32, 64, 9}, Row{128, 64, 6}, Row{64, 128, 3}));
  layout.software.framework = Framework::megatron;
  EXPECT_THAT(matrices(), ElementsAre(Row{64, 32, 3}, Row{32, 64, 9}, Row{256, 64, 3}, Row{64, 128, 3}));
  layout.optimizer.kind = OptimizerKind::adam;
  EXPECT_TRUE(matrices().empty());
}

TEST(OptimizerWork, RefusesWhatIsNotModelled) {
  const Transformer model{.n_layers = 2,
                          .hidden_size = 64,
                          .ffn_hidden_size = 256,
                          .n_heads = 2,
                          .vocab_size = 100,
                          .max_position = 128};
  Layout layout = layout_with(OptimizerKind::dist_muon, Sharding::zero3);
  layout.batch.seq_len_tokens = 128;
  EXPECT_THAT(check(layout, model).error().message(),
              HasSubstr("dist_muon needs whole matrices on each rank"));
  layout = layout_with(OptimizerKind::muon);
  layout.batch.seq_len_tokens = 128;
  layout.optimizer.cpu_offload = true;
  EXPECT_THAT(check(layout, model).error().message(), HasSubstr("muon on the host"));
}

}  // namespace
}  // namespace stepcast::optimizer_work_test
