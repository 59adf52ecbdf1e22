// What a step asks of a rank: shapes worked by hand, and totals that must come out whatever the layout.
#include "stepcast/workload/step_work.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/formats/presets.h"

#include "tests/support/fails_with.h"
#include "tests/workload/step_work_text.h"

namespace stepcast::step_work_test {
namespace {

using test::gpt;
using test::layout_of;
using test::llama;
using test::text;
using test::texts;
using test::totals;
using test::Totals;
using test::work_for;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// t = 2 x 512 = 1024 tokens, 512 of them on a rank where sequence parallelism spreads them. Of 16 heads of 64
// a rank has 8: 8 x 64 x 3 = 1536 columns of queries, keys and values. Every transfer of all tokens is
// 1024 x 1024 x 2 B = 2 MiB.
TEST(StepWork, ForwardOfAGptLayerOnTwoTensorParallelRanks) {
  const StepWork work = work_for(gpt(), layout_of(2, true));
  ASSERT_EQ(work.layer_kinds.size(), 1U);
  EXPECT_THAT(
      texts(work.layer_kinds[0]->forward),
      ElementsAre(
          "attention_norm norm 512x1024", "gather_attention_input all_gather tensor 2097152 B",
          "qkv gemm 1024x1536x1024 bias", "attention attention batch 2 q 512 k 512 heads 8/8 dim 64",
          "attention_output gemm 1024x1024x512", "reduce_attention_output reduce_scatter tensor 2097152 B",
          "bias_dropout_add residual_add 524288", "ffn_norm norm 512x1024",
          "gather_ffn_input all_gather tensor 2097152 B", "ffn_up gemm 1024x2048x1024",
          "activation gelu 2097152", "ffn_down gemm 1024x1024x2048",
          "reduce_ffn_output reduce_scatter tensor 2097152 B", "bias_dropout_add residual_add 524288"));
}

// Backward of C[m, n] = A[m, k] B[k, n]: dA is m x k from n, dB is n x k from m. A row-split product gathers
// the gradient of its output, a column-split one gathers its input again and scatters the sum of input
// gradients beside the weight gradient.
TEST(StepWork, BackwardOfAGptLayerOnTwoTensorParallelRanks) {
  const StepWork work = work_for(gpt(), layout_of(2, true));
  ASSERT_EQ(work.layer_kinds.size(), 1U);
  EXPECT_THAT(
      texts(work.layer_kinds[0]->backward),
      ElementsAre(
          "gather_output_gradient all_gather tensor 2097152 B", "ffn_down_input_gradient gemm 1024x2048x1024",
          "ffn_down_weight_gradient gemm 1024x2048x1024 (weight)",
          "ffn_down_bias_gradient reduce 1024x1024 (weight)", "activation gelu 2097152",
          "gather_input_again all_gather tensor 2097152 B beside",
          "ffn_up_input_gradient gemm 1024x1024x2048",
          "reduce_input_gradient reduce_scatter tensor 2097152 B beside",
          "ffn_up_weight_gradient gemm 2048x1024x1024 (weight)",
          "ffn_up_bias_gradient reduce 2048x1024 (weight)", "ffn_norm_gradient norm 512x1024",
          "residual_gradient_add residual_add 524288", "gather_output_gradient all_gather tensor 2097152 B",
          "attention_output_input_gradient gemm 1024x512x1024",
          "attention_output_weight_gradient gemm 1024x512x1024 (weight)",
          "attention_output_bias_gradient reduce 1024x1024 (weight)",
          "attention_gradient attention batch 2 q 512 k 512 heads 8/8 dim 64",
          "gather_input_again all_gather tensor 2097152 B beside", "qkv_input_gradient gemm 1024x1024x1536",
          "reduce_input_gradient reduce_scatter tensor 2097152 B beside",
          "qkv_weight_gradient gemm 1536x1024x1024 (weight)", "qkv_bias_gradient reduce 1536x1024 (weight)",
          "attention_norm_gradient norm 512x1024", "residual_gradient_add residual_add 524288"));
}

// Four heads of keys and values for 16 of queries: (16 + 4 + 4) x 64 = 1536 columns. The two matrices of
// the gated part are one product of 2 x 2816 columns.
TEST(StepWork, ForwardOfALlamaLayerWithGroupedQueries) {
  const StepWork work = work_for(llama(), layout_of(1));
  ASSERT_EQ(work.layer_kinds.size(), 1U);
  EXPECT_THAT(
      texts(work.layer_kinds[0]->forward),
      ElementsAre("attention_norm norm 1024x1024", "qkv gemm 1024x1536x1024",
                  // (16 + 4) heads x 64 x 1024 tokens are rotated
                  "rotary rotary 1310720", "attention attention batch 2 q 512 k 512 heads 16/4 dim 64",
                  "attention_output gemm 1024x1024x1024", "bias_dropout_add residual_add 1048576",
                  "ffn_norm norm 1024x1024", "ffn_up gemm 1024x5632x1024",
                  "gated_activation gated_silu 2883584", "ffn_down gemm 1024x1024x2816",
                  "bias_dropout_add residual_add 1048576"));
}

// Of every head: (16 + 4) x 1024 rows of 64. Over all heads: 1024 rows of 16 x 64, and as many of 4 x 64.
TEST(StepWork, NormsOfQueriesAndKeysOfEachHeadOrOverAll) {
  Transformer model = llama();
  model.qk_norm = true;
  const std::vector<std::string> each = texts(work_for(model, layout_of(1)).layer_kinds[0]->forward);
  EXPECT_EQ(each[2], "query_key_norm norm 20480x64");
  model.qk_norm_spans_heads = true;
  const StepWork work = work_for(model, layout_of(1));
  const std::vector<std::string> lines = texts(work.layer_kinds[0]->forward);
  EXPECT_EQ(lines[2], "query_norm norm 1024x1024");
  EXPECT_EQ(lines[3], "key_norm norm 1024x256");
  const std::vector<std::string> back = texts(work.layer_kinds[0]->backward);
  EXPECT_EQ(std::count(back.begin(), back.end(), "query_norm_gradient norm 1024x1024"), 1);
  EXPECT_EQ(std::count(back.begin(), back.end(), "key_norm_gradient norm 1024x256"), 1);
}

TEST(StepWork, GroupedQueriesOnFourTensorParallelRanks) {
  const StepWork work = work_for(llama(), layout_of(4));
  const std::vector<std::string> lines = texts(work.layer_kinds[0]->forward);
  EXPECT_EQ(lines[1], "qkv gemm 1024x384x1024");
  EXPECT_EQ(lines[3], "attention attention batch 2 q 512 k 512 heads 4/1 dim 64");
  EXPECT_EQ(lines[5], "reduce_attention_output all_reduce tensor 2097152 B");
}

TEST(StepWork, UnfusedAttentionWritesItsScores) {
  Layout layout = layout_of(2);
  layout.layer.attention = AttentionMethod::unfused;
  Transformer model = gpt();
  model.attention_dropout = 0.1;
  const std::vector<std::string> lines = texts(work_for(model, layout).layer_kinds[0]->forward);
  const auto qkv = std::find_if(lines.begin(), lines.end(),
                                [](const std::string& line) { return line.starts_with("qkv"); });
  ASSERT_GE(lines.end() - qkv, 6);
  // 2 sequences x 8 heads; 16 x 512 x 512 scores
  EXPECT_THAT(std::vector<std::string>(qkv + 2, qkv + 6),
              ElementsAre("scores gemm 16 of 512x512x64", "softmax causal_softmax",
                          "attention_dropout dropout 4194304", "weighted_values gemm 16 of 512x64x512"));
}

TEST(StepWork, EmbeddingAndHead) {
  const StepWork work = work_for(gpt(), layout_of(2));
  EXPECT_THAT(texts(work.embedding->forward),
              ElementsAre("embedding embedding_lookup", "reduce_embedding all_reduce tensor 2097152 B",
                          "add_positions add 1048576"));
  // 51200 rows are a multiple of 128 x 2 already. Three numbers of 4 B per token are reduced.
  EXPECT_THAT(texts(work.head->forward),
              ElementsAre("final_norm norm 1024x1024", "logits gemm 1024x25600x1024",
                          "cross_entropy cross_entropy", "3 times reduce_loss all_reduce tensor 4096 B"));
  EXPECT_THAT(
      texts(work.head->backward),
      ElementsAre("cross_entropy_gradient cross_entropy", "logits_input_gradient gemm 1024x1024x25600",
                  "reduce_input_gradient all_reduce tensor 2097152 B beside",
                  "logits_weight_gradient gemm 25600x1024x1024 (weight)",
                  "final_norm_gradient norm 1024x1024"));
}

// Parameters that are elements of matrices of linear layers, the output matrix included.
double matrix_parameters(const Transformer& m) {
  const auto h = static_cast<double>(m.hidden_size), d = static_cast<double>(m.qk_head_dim());
  const double attention =
      h * d * static_cast<double>(m.n_heads + 2 * m.kv_heads()) + h * d * static_cast<double>(m.n_heads);
  const double ffn = h * static_cast<double>(m.ffn_hidden_size) * (m.gated_ffn ? 3 : 2);
  return static_cast<double>(m.n_layers) * (attention + ffn) + h * static_cast<double>(m.vocab_size);
}

// Forward: 2 per parameter and token; backward twice that.
TEST(StepWorkTotals, ProductsAreSixPerParameterAndToken) {
  for (const Transformer& model : {gpt(), llama()}) {
    const Totals sum = totals(work_for(model, layout_of(1)));
    const double tokens = 1024;
    EXPECT_NEAR(sum.products / (6 * matrix_parameters(model) * tokens), 1, 1e-12) << model.name;
    // Causal: s (s + 1) / 2 pairs a head, each 2 x 64 multiply-adds forward and 5/2 of that backward.
    const double pairs = 2 * 16 * 512.0 * 513 / 2;
    EXPECT_NEAR(sum.attention / (4 * pairs * 4 * 64 * 3.5), 1, 1e-12) << model.name;
  }
}

TEST(StepWorkTotals, KnownModelsComeOutAtSixPerParameterAndToken) {
  for (const char* name : {"gpt3-175b", "llama-3-70b", "llama-2-7b", "gpt-neox-20b", "opt-13b"}) {
    const Result<Transformer> model = find_preset(name);
    ASSERT_TRUE(model.ok()) << name;
    Layout layout{.batch = {.seq_len_tokens = 2048}};
    layout.software.vocab_divisible_by = 1;
    const Totals sum = totals(work_for(*model, layout));
    EXPECT_NEAR(sum.products / (6 * matrix_parameters(*model) * 2048), 1, 1e-9) << name;
  }
}

TEST(StepWorkTotals, ARankOfATensorParallelGroupDoesItsShare) {
  for (const Transformer& model : {gpt(), llama()}) {
    const Totals whole = totals(work_for(model, layout_of(1)));
    EXPECT_EQ(whole.transferred_bytes, 0);
    for (const std::int64_t t : {2, 4}) {
      for (const bool sequence_parallel : {false, true}) {
        const Totals part = totals(work_for(model, layout_of(t, sequence_parallel)));
        EXPECT_NEAR(part.products * static_cast<double>(t) / whole.products, 1, 1e-12);
        EXPECT_NEAR(part.attention * static_cast<double>(t) / whole.attention, 1, 1e-12);
      }
    }
  }
}

// Without sequence parallelism a layer all-reduces twice forward and twice backward; with it every all-reduce
// is a gather and a scatter, and two inputs are gathered a second time for their weight gradients.
TEST(StepWorkTotals, TensorParallelTransfersOfALayer) {
  const auto of_layer = [](const Layout& layout) {
    const StepWork work = work_for(gpt(), layout);
    Totals sum = totals(work.layer_kinds[0]->forward);
    sum += totals(work.layer_kinds[0]->backward);
    return sum;
  };
  const Totals plain = of_layer(layout_of(2));
  EXPECT_EQ(plain.transfers, (std::map<std::string, int>{{"all_reduce tensor", 4}}));
  EXPECT_EQ(plain.transferred_bytes, 4 * 2097152.0);
  const Totals spread = of_layer(layout_of(2, true));
  EXPECT_EQ(spread.transfers,
            (std::map<std::string, int>{{"all_gather tensor", 6}, {"reduce_scatter tensor", 4}}));
}

// GPT-NeoX with a parallel residual adds both parts first and reduces their sum.
TEST(StepWorkTotals, AParallelResidualReducesOnceForward) {
  Transformer model = gpt();
  model.parallel_residual = true;
  const StepWork work = work_for(model, layout_of(2));
  EXPECT_EQ(totals(work.layer_kinds[0]->forward).transfers,
            (std::map<std::string, int>{{"all_reduce tensor", 1}}));
  EXPECT_EQ(totals(work.layer_kinds[0]->backward).transfers,
            (std::map<std::string, int>{{"all_reduce tensor", 2}}));
}

TEST(StepWorkTotals, OverlappedTransfersMoveTheSameBytes) {
  Layout layout = layout_of(4, true);
  const Totals exposed = totals(work_for(llama(), layout));
  layout.layer.overlap.tensor_parallel = true;
  const Totals overlapped = totals(work_for(llama(), layout));
  EXPECT_DOUBLE_EQ(exposed.transferred_bytes, overlapped.transferred_bytes);
}

// Transformer Engine sums the parts of a row-split product while it is computed: three quarters of 2 MiB beside it.
TEST(StepWork, SumsOfRowSplitProductsArePipelined) {
  Layout layout = layout_of(2, true);
  layout.layer.overlap.tensor_parallel = true;
  const std::vector<std::string> forward = texts(work_for(gpt(), layout).layer_kinds[0]->forward);
  const auto product =
      std::find(forward.begin(), forward.end(), "4 times attention_output gemm 256x1024x512");
  ASSERT_NE(product, forward.end());
  EXPECT_EQ(*(product - 1), "reduce_attention_output reduce_scatter tensor 1572864 B beside");
  EXPECT_EQ(*(product + 1), "reduce_attention_output reduce_scatter tensor 524288 B");
}

// Gathers of what fp8 products read carry one byte an element; sums stay in 16 bit.
TEST(StepWork, ActivationsAreGatheredInTheTypeOfTheProducts) {
  Layout layout = layout_of(2, true);
  layout.layer.precision = precision_for(DType::fp8);
  layout.layer.precision.fp8.gather_activations = true;
  const StepWork work = work_for(llama(), layout);
  for (const WorkList* list : {&work.layer_kinds[0]->forward, &work.layer_kinds[0]->backward}) {
    for (const WorkItem& item : *list) {
      if (const Transfer* t = item.transfer()) {
        EXPECT_EQ(t->message.value(), t->op == CollectiveOp::all_gather ? 1048576 : 2097152) << text(item);
      }
    }
  }
}

// Adapters of rank 8 on attention, two ranks: 4 of 8 rows of the first matrix of qkv (1024 in, 384 + 384 out of
// which a rank has 512 + 2 x 128), and of the output projection 512 in, 1024 out of which a rank has half.
TEST(StepWork, FrozenWeightsHaveNoGradients) {
  Layout layout = layout_of(2, true);
  const StepWork trained = work_for(llama(), layout);
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 8;
  const StepWork work = work_for(llama(), layout);
  const LayerWork& layer = *work.layer_kinds[0];
  EXPECT_EQ(layer.trained_dense_parameters, 8 * (512 + 768 + 512 + 512));
  EXPECT_EQ(layer.dense_parameters - trained.layer_kinds[0]->dense_parameters,
            layer.trained_dense_parameters);
  EXPECT_EQ(layer.trained_expert_parameters, 0);
  EXPECT_TRUE(work.embedding->backward.empty());
  EXPECT_EQ(work.head->trained_dense_parameters, 0);
  for (const WorkItem& item : layer.backward) {
    EXPECT_TRUE(!item.weight_gradient || item.name.starts_with("adapter")) << text(item);
  }
  const std::vector<std::string> forward = texts(layer.forward);
  const auto qkv = std::find(forward.begin(), forward.end(), "qkv gemm 1024x768x1024");
  ASSERT_NE(qkv, forward.end());
  EXPECT_EQ(*(qkv + 1), "adapter_down gemm 1024x4x1024");
  EXPECT_EQ(*(qkv + 3), "adapter_up gemm 1024x768x8");
}

// Of two ranks: 768 x 1024 of queries, keys and values, 1024 x 512 behind them, 2816 x 1024 up, 1024 x 1408 down. In 4 bits
// with a scale of 4 bytes per 64 weights 0.5625 bytes are read of a weight, 2 written: forward, for the gradient of the
// input, and again where a layer is recomputed. The vocabulary layer stays as it is.
TEST(StepWork, DequantisesFrozenWeightsInFrontOfEachProduct) {
  constexpr double kWeights = 768.0 * 1024 + 1024.0 * 512 + 2816.0 * 1024 + 1024.0 * 1408;
  const auto written = [](const WorkList& list) {
    double bytes = 0;
    for (const WorkItem& item : list) {
      if (item.role != ItemRole::dequantise) continue;
      const auto& amount = std::get<AmountShape>(item.operation()->shape);
      EXPECT_DOUBLE_EQ(amount.bytes_read / amount.bytes_written, 0.5625 / 2);
      bytes += static_cast<double>(item.count) * amount.bytes_written;
    }
    return bytes;
  };
  Layout layout = layout_of(2, true);
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 8;
  const double whole = work_for(llama(), layout).layer_kinds[0]->dense_parameters;
  layout.layer.frozen_weights = FrozenWeights::nf4;
  const StepWork work = work_for(llama(), layout);
  const LayerWork& layer = *work.layer_kinds[0];
  const auto qkv = std::ranges::find(layer.forward, ItemRole::qkv, &WorkItem::role);
  ASSERT_NE(qkv, layer.forward.end());
  EXPECT_EQ((qkv - 1)->role, ItemRole::dequantise);
  EXPECT_DOUBLE_EQ(written(layer.forward), 2 * kWeights);
  EXPECT_DOUBLE_EQ(written(layer.backward), 2 * kWeights);
  EXPECT_EQ(written(work.head->forward), 0);
  EXPECT_DOUBLE_EQ(layer.dequantised_bytes, 2 * 2816 * 1024);
  EXPECT_DOUBLE_EQ(whole - layer.dense_parameters, kWeights * (1 - 0.5625 / 2));
  layout.layer.recompute.kind = Recompute::full;
  EXPECT_DOUBLE_EQ(written(work_for(llama(), layout).layer_kinds[0]->backward), 4 * kWeights);
  // Of every second product: those of the output and down.
  layout.layer.recompute.kind = Recompute::selective_ops;
  layout.layer.adapters = {.rank = 8, .qkv = false, .attention_output = false};
  EXPECT_DOUBLE_EQ(written(work_for(llama(), layout).layer_kinds[0]->backward),
                   2 * (kWeights + 1024.0 * 512 + 1024.0 * 1408));
  // PyTorch's layers have queries, keys, values, gate and input as matrices of their own.
  layout.software.framework = Framework::pytorch;
  EXPECT_DOUBLE_EQ(work_for(llama(), layout).layer_kinds[0]->dequantised_bytes, 1024.0 * 1408 * 2);
}

// Each of PEFT's adapters drops of an input of its own: three of 1024 tokens x 1024, and their gradients.
TEST(StepWork, DropoutOfAdapters) {
  Layout layout = layout_of(1);
  layout.software.framework = Framework::pytorch;
  layout.layer.frozen_base = true;
  layout.layer.adapters = {.rank = 8, .attention_output = false, .dropout = true};
  const StepWork work = work_for(llama(), layout);
  EXPECT_THAT(texts(work.layer_kinds[0]->forward),
              ::testing::Contains("3 times adapter_dropout dropout 1048576"));
  EXPECT_THAT(texts(work.layer_kinds[0]->backward),
              ::testing::Contains("3 times adapter_dropout_gradient dropout 1048576"));
}

TEST(StepWork, RefusesWeightsInFourBitsThatAreTrainedOrMultipliedInFewer) {
  Layout layout = layout_of(1);
  layout.layer.frozen_weights = FrozenWeights::nf4_double;
  EXPECT_THAT(step_work(llama(), layout), test::FailsWith("weights in nf4-double cannot be trained"));
  layout.layer.frozen_base = true;
  layout.layer.adapters.rank = 8;
  EXPECT_TRUE(step_work(llama(), layout).ok());
  layout.layer.precision = precision_for(DType::fp8);
  EXPECT_THAT(step_work(llama(), layout), test::FailsWith("GEMMs in fp8"));
}

// Sequences of 128 tokens in rows of 512: attention of 8 instead of 2, and a vocabulary layer for 15 % of 1024.
TEST(StepWork, PackedRows) {
  Layout layout = layout_of(1);
  layout.layer.packed_mean_tokens = 128;
  layout.layer.predicted_token_share = 0.15;
  const StepWork work = work_for(gpt(), layout);
  EXPECT_THAT(texts(work.layer_kinds[0]->forward),
              ::testing::Contains("attention attention batch 8 q 128 k 128 heads 16/16 dim 64"));
  EXPECT_THAT(texts(work.head->forward), ::testing::Contains("logits gemm 154x51200x1024"));
}

// A ring deals out every packed sequence: two ranks attend to 64 tokens of each of 8, and then to half of the other's.
TEST(StepWork, PackedRowsInARing) {
  Layout layout = layout_of(1);
  layout.degrees.context = 2;
  layout.layer.packed_mean_tokens = 128;
  const std::vector<std::string> forward = texts(work_for(gpt(), layout).layer_kinds[0]->forward);
  EXPECT_THAT(forward, ::testing::Contains("attention attention batch 8 q 64 k 64 heads 16/16 dim 64"));
  EXPECT_THAT(forward, ::testing::Contains("attention attention batch 8 q 64 k 32 heads 16/16 dim 64"));
  layout.layer.packed_mean_tokens = 512;
  const std::vector<std::string> whole = texts(work_for(gpt(), layout).layer_kinds[0]->forward);
  layout.layer.packed_mean_tokens = 0;
  EXPECT_EQ(texts(work_for(gpt(), layout).layer_kinds[0]->forward), whole);
}

TEST(StepWork, GraphsCaptureWhatTheirScopeSays) {
  Layout layout = layout_of(2, true);
  layout.layer.cuda_graphs.attention = true;
  const StepWork work = work_for(gpt(), layout);
  std::map<std::string_view, bool> captured;
  for (const WorkItem& item : work.layer_kinds[0]->forward) captured[item.name] = item.captured;
  EXPECT_TRUE(captured["attention_norm"] && captured["qkv"] && captured["attention_output"]);
  EXPECT_FALSE(captured["ffn_norm"] || captured["ffn_down"]);
  layout.layer.cuda_graphs = {.full_iteration = true};
  const StepWork all = work_for(gpt(), layout);
  for (const WorkList* list :
       {&all.layer_kinds[0]->forward, &all.layer_kinds[0]->backward, &all.head->forward}) {
    for (const WorkItem& item : *list) EXPECT_TRUE(item.captured) << text(item);
  }
}

TEST(StepWork, SelectiveRecomputationComputesItsModulesAgain) {
  Layout layout = layout_of(1);
  layout.layer.recompute = {.kind = Recompute::selective, .modules = {.norms = true, .ffn = true}};
  const std::vector<std::string> backward = texts(work_for(gpt(), layout).layer_kinds[0]->backward);
  EXPECT_EQ(backward[0], "attention_norm norm 1024x1024");
  EXPECT_EQ(backward[1], "ffn_norm norm 1024x1024");
  EXPECT_EQ(backward[2], "ffn_up gemm 1024x4096x1024");
}

TEST(StepWorkTotals, FullRecomputationAddsExactlyOneForward) {
  Layout layout = layout_of(2, true);
  layout.degrees.pipeline = 2;
  const StepWork kept = work_for(gpt(), layout);
  layout.layer.recompute.kind = Recompute::full;
  const StepWork again = work_for(gpt(), layout);
  ASSERT_TRUE(again.layer_kinds[0]->recomputed);
  std::vector<std::string> expected = texts(kept.layer_kinds[0]->forward);
  const std::vector<std::string> backward = texts(kept.layer_kinds[0]->backward);
  expected.insert(expected.end(), backward.begin(), backward.end());
  EXPECT_EQ(texts(again.layer_kinds[0]->backward), expected);
  EXPECT_EQ(texts(again.layer_kinds[0]->forward), texts(kept.layer_kinds[0]->forward));
  EXPECT_EQ(texts(again.head->backward), texts(kept.head->backward));
}

TEST(StepWorkTotals, RecomputingEverySecondLayerMakesTwoKindsOfLayers) {
  Layout layout = layout_of(1);
  layout.layer.recompute.kind = Recompute::full;
  layout.layer.recompute.every_n_layers = 2;
  const StepWork work = work_for(gpt(), layout);
  ASSERT_EQ(work.layer_kinds.size(), 2U);
  EXPECT_EQ(work.chunks[0].runs.size(), 4U);
  const double forward = totals(work.layer_kinds[0]->forward).products;
  const double difference =
      totals(work.layer_kinds[1]->backward).products - totals(work.layer_kinds[0]->backward).products;
  EXPECT_DOUBLE_EQ(std::abs(difference), forward);
}

// Of unfused attention alone the core is repeated.
TEST(StepWorkTotals, SelectiveRecomputationRepeatsTheCoreOfAttention) {
  Layout layout = layout_of(1);
  layout.layer.attention = AttentionMethod::unfused;
  const double without = totals(work_for(gpt(), layout).layer_kinds[0]->backward).products;
  layout.layer.recompute.kind = Recompute::selective;
  const double with = totals(work_for(gpt(), layout).layer_kinds[0]->backward).products;
  // scores and weighted values: 2 x 2 x (2 x 16 heads) x 512 x 512 x 64
  EXPECT_DOUBLE_EQ(with - without, 2 * 2 * 32.0 * 512 * 512 * 64);
}

TEST(StepWorkTotals, PipelineStagesHoldAllLayersOnceAndHandOnTheirBoundary) {
  Layout layout = layout_of(2);
  layout.degrees.pipeline = 2;
  layout.degrees.virtual_stages = 2;
  layout.pipeline.schedule = PipelineSchedule::interleaved;
  const StepWork work = work_for(gpt(), layout);
  ASSERT_EQ(work.chunks.size(), 4U);
  std::uint32_t layers = 0;
  for (const ChunkWork& chunk : work.chunks) {
    for (const ChunkWork::Run& run : chunk.runs) layers += run.count;
  }
  EXPECT_EQ(layers, 4U);
  EXPECT_TRUE(work.chunks.front().has_embedding && !work.chunks.front().has_head);
  EXPECT_TRUE(work.chunks.back().has_head && !work.chunks.back().has_embedding);
  // Scatter-gather: each rank sends half of 1024 x 1024 x 2 B.
  EXPECT_EQ(work.boundary.value(), 1048576);
  layout.pipeline.p2p_scatter_gather = false;
  EXPECT_EQ(work_for(gpt(), layout).boundary.value(), 2097152);
}

// 4 layers on 2 stages, 1 and 3: as many runs of layers, and three times the parameters of layers on the second.
TEST(StepWorkTotals, UnevenStagesHoldTheLayersThatAreSaid) {
  Layout layout = layout_of(1);
  layout.degrees.pipeline = 2;
  layout.pipeline.layers_per_stage = {1, 3};
  const StepWork work = work_for(llama(), layout);
  ASSERT_EQ(work.chunks.size(), 2U);
  for (std::size_t c = 0; c < 2; ++c) {
    std::uint32_t layers = 0;
    for (const ChunkWork::Run& run : work.chunks[c].runs) layers += run.count;
    EXPECT_EQ(layers, c == 0 ? 1U : 3U);
  }
  const double layer = work.layer_kinds[0]->dense_parameters;
  EXPECT_DOUBLE_EQ(work.chunks[0].dense_parameters - work.embedding->dense_parameters, layer);
  EXPECT_DOUBLE_EQ(work.chunks[1].dense_parameters - work.head->dense_parameters, 3 * layer);
}

TEST(StepWorkTotals, ParametersOfAllRanksAreThoseOfTheModel) {
  for (const Transformer& model : {gpt(), llama()}) {
    for (const std::int64_t stages : {1, 2, 4}) {
      Layout layout = layout_of(1);
      layout.degrees.pipeline = stages;
      const StepWork work = work_for(model, layout);
      double parameters = 0;
      for (const ChunkWork& chunk : work.chunks) parameters += chunk.dense_parameters;
      double expected = static_cast<double>(parameter_count(model).total());
      // The last stage holds a copy of tied embeddings.
      if (model.tied_embeddings && stages > 1) expected += 51200.0 * 1024;
      EXPECT_DOUBLE_EQ(parameters, expected) << model.name << " on " << stages << " stages";
    }
  }
}

// ------------------------------------------------------------------------------------- context parallelism

// A ring of 4 ranks of 128 tokens: the own part causal, then 3 parts of which half the pairs count; together
// the pairs of all ranks are those of the whole sequence.
TEST(StepWorkContext, RingAttentionDoesItsShareOfThePairs) {
  for (const ContextParallelKind kind :
       {ContextParallelKind::ring, ContextParallelKind::all_to_all, ContextParallelKind::all_gather}) {
    Layout layout = layout_of(1);
    const double whole = totals(work_for(llama(), layout).layer_kinds[0]->forward).attention;
    layout.degrees.context = 4;
    layout.layer.context_parallel_kind = kind;
    const Totals part = totals(work_for(llama(), layout).layer_kinds[0]->forward);
    EXPECT_NEAR(4 * part.attention / whole, 1, 0.01) << to_string(kind);
    EXPECT_GT(part.transferred_bytes, 0) << to_string(kind);
  }
}

// Keys and values of 256 tokens and 4 heads of 64, bf16, to the neighbour three times.
TEST(StepWorkContext, KeysAndValuesGoAroundTheRing) {
  Layout layout = layout_of(1);
  layout.degrees.context = 4;
  const Totals forward = totals(work_for(llama(), layout).layer_kinds[0]->forward);
  EXPECT_EQ(forward.transfers, (std::map<std::string, int>{{"send_receive context", 3}}));
  EXPECT_EQ(forward.transferred_bytes, 3 * (256 * 4 * (64 + 64) * 2.0));
}

// -------------------------------------------------------------------------------------- fp8 and optimizer

struct NarrowWork {
  int products = 0, casts = 0;
  double cast_bytes = 0;
  std::set<DType> types;
};
NarrowWork narrow_work(const Layout& layout) {
  NarrowWork out;
  const StepWork work = work_for(llama(), layout);
  for (const WorkItem& item : work.layer_kinds[0]->forward) {
    if (item.operation() == nullptr) continue;
    if (item.name.starts_with("cast")) {
      ++out.casts;
      out.cast_bytes += work_of(*item.operation()).bytes().value();
    }
    if (std::holds_alternative<GemmShape>(item.operation()->shape)) {
      ++out.products;
      out.types.insert(item.operation()->dtype);
    }
  }
  for (const WorkItem& item : work.head->forward) {
    if (item.name == "logits") {
      EXPECT_EQ(item.operation()->dtype, DType::bf16);
    }
  }
  return out;
}

TEST(StepWorkPrecision, NarrowProductsHoldTheCastAndLeaveLogitsIn16Bit) {
  Layout layout = layout_of(1);
  layout.layer.precision = precision_for(DType::fp8);
  Fp8Recipe& recipe = layout.layer.precision.fp8;
  const NarrowWork delayed = narrow_work(layout);
  EXPECT_EQ(delayed.products, 4);
  EXPECT_EQ(delayed.types, std::set{DType::fp8});
  EXPECT_EQ(delayed.casts, 0);
  // A maximum of every input; weights read twice and written with their transpose, unless they come cast.
  recipe.scaling = Fp8Scaling::dynamic;
  const NarrowWork dynamic = narrow_work(layout);
  EXPECT_EQ(dynamic.casts, 8);
  recipe.gather_weights = true;
  const NarrowWork gathered = narrow_work(layout);
  EXPECT_EQ(gathered.casts, 4);
  EXPECT_LT(gathered.cast_bytes, dynamic.cast_bytes);
  recipe.gather_weights = false;
  recipe.scaling = Fp8Scaling::blockwise;
  const NarrowWork blocks = narrow_work(layout);
  EXPECT_EQ(blocks.types, std::set{DType::fp8_block});
  EXPECT_EQ(blocks.casts, 4);  // of the weights
  layout.layer.precision = precision_for(DType::fp4);
  EXPECT_EQ(narrow_work(layout).types, std::set{DType::fp4});
}

TEST(StepWorkOptimizer, GradientsTravelInTheReductionType) {
  Layout layout = layout_of(1);
  EXPECT_EQ(gradient_traffic(layout).reduce_bytes_per_parameter, 4);
  layout.layer.precision = precision_for(DType::fp16);
  EXPECT_EQ(gradient_traffic(layout).reduce_bytes_per_parameter, 2);
  EXPECT_EQ(gradient_traffic(layout).gather_bytes_per_parameter, 2);
  layout.layer.precision = precision_for(DType::fp32);
  EXPECT_EQ(gradient_traffic(layout).gather_bytes_per_parameter, 4);
}

TEST(StepWork, RefusesWhatTheLayoutCheckRefuses) {
  Layout layout = layout_of(3);
  const Result<StepWork> work = step_work(gpt(), layout);
  ASSERT_FALSE(work.ok());
  EXPECT_THAT(work.error().message(), HasSubstr("not divisible by tensor_parallel 3"));
}

}  // namespace
}  // namespace stepcast::step_work_test
