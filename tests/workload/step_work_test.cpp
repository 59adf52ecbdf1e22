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

#include "stepcast/describe/presets.h"

namespace stepcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One line per item: "qkv gemm 1024x1536x1024", "reduce_ffn_output reduce_scatter tensor 2097152 B".
std::string text(const WorkItem& item) {
  std::string line{item.name};
  if (item.count != 1) line = fmt::format("{} times {}", item.count, line);
  if (const Transfer* t = item.transfer()) {
    line += fmt::format(" {} {} {:.0f} B", to_string(t->op), to_string(t->group), t->message.value());
    return line + (item.beside_next ? " beside" : "");
  }
  const Operation& operation = *item.operation();
  if (const auto* s = std::get_if<GemmShape>(&operation.shape)) {
    line += s->batch == 1 ? std::string{" gemm "} : fmt::format(" gemm {} of ", s->batch);
    line += fmt::format("{}x{}x{}{}", s->m, s->n, s->k, s->bias ? " bias" : "");
  } else if (const auto* a = std::get_if<AttentionShape>(&operation.shape)) {
    line += fmt::format(" attention batch {} q {} k {} heads {}/{} dim {}", a->batch, a->query_length,
                        a->key_length, a->heads, a->key_value_heads, a->head_dim);
  } else if (const auto* n = std::get_if<NormShape>(&operation.shape)) {
    line += fmt::format(" norm {}x{}", n->rows, n->cols);
  } else if (const auto* e = std::get_if<ElementwiseShape>(&operation.shape)) {
    line += fmt::format(" {} {}", to_string(e->function), e->elements);
  } else if (const auto* r = std::get_if<ReductionShape>(&operation.shape)) {
    line += fmt::format(" reduce {}x{}", r->rows, r->cols);
  } else {
    line += fmt::format(" {}", family_of(operation));
  }
  if (item.weight_gradient) line += " (weight)";
  return line;
}

std::vector<std::string> texts(const WorkList& list) {
  std::vector<std::string> lines;
  for (const WorkItem& item : list) lines.push_back(text(item));
  return lines;
}

StepWork work_for(const Transformer& model, const Layout& layout) {
  Result<StepWork> work = step_work(model, layout);
  EXPECT_TRUE(work.ok()) << work.error().message();
  return work.ok() ? std::move(*work) : StepWork{};
}

Transformer gpt() {
  return {.name = "gpt",
          .n_layers = 4,
          .hidden_size = 1024,
          .ffn_hidden_size = 4096,
          .n_heads = 16,
          .vocab_size = 51200,
          .max_position = 512};
}

Transformer llama() {
  Transformer model{.name = "llama",
                    .n_layers = 4,
                    .hidden_size = 1024,
                    .ffn_hidden_size = 2816,
                    .n_heads = 16,
                    .n_kv_heads = 4,
                    .vocab_size = 32768,
                    .max_position = 512};
  model.norm = NormKind::rms_norm;
  model.norm_bias = model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  model.activation = Activation::silu;
  model.gated_ffn = true;
  model.position = PositionEncoding::rotary;
  model.tied_embeddings = false;
  return model;
}

// Two sequences of 512 tokens in a micro-batch.
Layout layout_of(std::int64_t tensor_parallel, bool sequence_parallel = false) {
  Layout layout{.degrees = {.tensor = tensor_parallel},
                .batch = {.micro_batch_sequences = 2, .global_batch_sequences = 8, .seq_len_tokens = 512},
                .layer = {.sequence_parallel = sequence_parallel}};
  return layout;
}

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

// ----------------------------------------------------------------------------------------------- totals

struct Totals {
  double products = 0;   // FLOPs of matrix products with weights
  double attention = 0;  // FLOPs of fused attention
  double transferred_bytes = 0;
  std::map<std::string, int> transfers;
  Totals& operator+=(const Totals& other) {
    products += other.products;
    attention += other.attention;
    transferred_bytes += other.transferred_bytes;
    for (const auto& [name, n] : other.transfers) transfers[name] += n;
    return *this;
  }
};

Totals totals(const WorkList& list, double times = 1) {
  Totals sum;
  for (const WorkItem& item : list) {
    const double count = times * static_cast<double>(item.count);
    if (const Transfer* t = item.transfer()) {
      sum.transferred_bytes += count * t->message.value();
      sum.transfers[fmt::format("{} {}", to_string(t->op), to_string(t->group))] += static_cast<int>(count);
      continue;
    }
    const Operation& operation = *item.operation();
    const double flops = count * work_of(operation).flops.value();
    if (std::holds_alternative<GemmShape>(operation.shape)) sum.products += flops;
    if (std::holds_alternative<AttentionShape>(operation.shape)) sum.attention += flops;
  }
  return sum;
}

// All chunks of one rank per stage, one micro-batch.
Totals totals(const StepWork& work) {
  Totals sum;
  for (const ChunkWork& chunk : work.chunks) {
    if (chunk.has_embedding) {
      sum += totals(work.embedding->forward);
      sum += totals(work.embedding->backward);
    }
    for (const ChunkWork::Run& run : chunk.runs) {
      sum += totals(work.layer_kinds[run.kind]->forward, run.count);
      sum += totals(work.layer_kinds[run.kind]->backward, run.count);
    }
    if (chunk.has_head) {
      sum += totals(work.head->forward);
      sum += totals(work.head->backward);
    }
  }
  return sum;
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

// Sequences of 128 tokens in rows of 512: attention of 8 instead of 2, and a vocabulary layer for 15 % of 1024.
TEST(StepWork, PackedRows) {
  Layout layout = layout_of(1);
  layout.layer.packed_mean_tokens = 128;
  layout.layer.predicted_token_share = 0.15;
  const StepWork work = work_for(gpt(), layout);
  EXPECT_THAT(texts(work.layer_kinds[0]->forward),
              testing::Contains("attention attention batch 8 q 128 k 128 heads 16/16 dim 64"));
  EXPECT_THAT(texts(work.head->forward), testing::Contains("logits gemm 154x51200x1024"));
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

// ---------------------------------------------------------------------------------------------- experts

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

TEST(StepWorkOptimizer, ReadsAndWritesTheStatesOfAdam) {
  Layout layout = layout_of(1);
  const WorkList list = optimizer_work(layout, 1e6, 5e5);
  double parameters = 0;
  for (const WorkItem& item : list) {
    if (item.name != "optimizer_step") continue;
    const auto& s = std::get<OptimizerShape>(item.operation()->shape);
    parameters = static_cast<double>(s.parameters);
    EXPECT_EQ(s.bytes_read_per_parameter, 4 + 4 + 8);  // gradient, fp32 weight, two moments
    EXPECT_EQ(s.bytes_written_per_parameter, 4 + 8);
  }
  EXPECT_EQ(parameters, 1.5e6);
  EXPECT_TRUE(optimizer_work(layout, 0, 0).empty());
  layout.optimizer.gradient_clip = false;
  EXPECT_EQ(optimizer_work(layout, 1e6, 0).size(), list.size() - 2);
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

// 1,000 parameters, bf16 with fp32 states: gradients of 4 B down, weights of 2 B up. The host reads gradient, master and
// two moments and writes all but the gradient and the weight: 4 + 12 + 12 + 2 = 30 B, of which a GPU that has the host to
// itself counts an eighth.
TEST(StepWork, AnUpdateOnTheHost) {
  Layout layout = layout_of(1);
  layout.layer.precision.compute = DType::bf16;
  layout.layer.precision.gradients = DType::fp32;
  layout.optimizer.cpu_offload = true;
  layout.optimizer.gradient_clip = false;
  layout.degrees.data = 8;
  const auto bytes = [&] {
    std::vector<std::pair<std::string, std::int64_t>> all;
    for (const WorkItem& item : optimizer_work(layout, 1000, 0)) {
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

}  // namespace
}  // namespace stepcast
