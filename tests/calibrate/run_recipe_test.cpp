#include "calibrate/run_recipe.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::run_recipe_test {
namespace {

constexpr const char* kRuns =
    "model,hidden_size,n_layers,n_heads,seq_len_tokens,gpu,n_gpus,dtype,framework,tensor_parallel,"
    "pipeline_parallel,data_parallel,sequence_parallel,micro_batch_sequences,global_batch_sequences,iter_"
    "time_ms,"
    "note\n"
    "a,2048,30,16,2048,H100-SXM5-80GB,64,fp8,NeMo,2,8,4,1,1,64,1000,DP overlap\n"
    "b,2048,32,16,2048,H100-SXM5-80GB,64,fp8,NeMo,2,8,4,1,1,64,1000,\n";

Result<std::vector<LlmRun>> with_recipe(const std::string& columns, const std::string& cells) {
  const RunRecipes recipes{"run_line," + columns + "\n3," + cells + "\n", "recipes.csv"};
  return parse_llm_runs(kRuns, "runs.csv", &recipes);
}

LlmRun second(const std::string& columns, const std::string& cells) {
  Result<std::vector<LlmRun>> runs = with_recipe(columns, cells);
  EXPECT_TRUE(runs.ok()) << runs.error().message();
  return runs.ok() ? std::move(runs->back()) : LlmRun{};
}

TEST(RunRecipe, SetsTheLayoutOfItsRow) {
  const LlmRun run = second(
      "recompute,cuda_graph,moe_dispatcher,ep_overlap,tp_overlap,offload,fp8_recipe,fp8_param_gather,grad_"
      "dtype",
      "selective:layernorm+moe_act,transformer_engine:attn,flex:hybridep,1,0,activations:40 "
      "layers,mxfp8,1,fp32");
  const LayerChoices& layer = run.layout.layer;
  EXPECT_EQ(layer.recompute.kind, Recompute::selective);
  EXPECT_TRUE(layer.recompute.modules.norms && layer.recompute.modules.expert_activation);
  EXPECT_FALSE(layer.recompute.modules.core_attention);
  EXPECT_EQ(layer.cuda_graphs, CudaGraphs{.attention = true});
  EXPECT_EQ(layer.dispatcher, TokenDispatcher::hybridep);
  EXPECT_TRUE(layer.overlap.expert);
  EXPECT_FALSE(layer.overlap.tensor_parallel);
  EXPECT_TRUE(layer.activation_offload);
  EXPECT_EQ(layer.activation_offload_layers, 40);
  EXPECT_EQ(layer.precision.fp8.scaling, Fp8Scaling::mxfp8);
  EXPECT_TRUE(layer.precision.fp8.gather_weights);
  EXPECT_EQ(layer.precision.gradients, DType::fp32);
}

TEST(RunRecipe, EmptyCellsSetNothing) {
  EXPECT_EQ(second("recompute,cuda_graph,tp_overlap,offload,grad_dtype", ",,,,").layout,
            parse_llm_runs(kRuns, "runs.csv")->back().layout);
}

TEST(RunRecipe, KindOfContextParallelismIsAColumn) {
  EXPECT_EQ(second("cp_comm_type", "a2a").layout.layer.context_parallel_kind,
            ContextParallelKind::all_to_all);
  EXPECT_EQ(second("cp_comm_type", "p2p").layout.layer.context_parallel_kind, ContextParallelKind::ring);
  EXPECT_THAT(with_recipe("cp_comm_type", "carrier pigeon"), test::FailsWith("cp_comm_type"));
}

TEST(RunRecipe, LayoutStringsDecideTheVirtualStages) {
  const LlmRun run = second("pipeline_layout", "Et|(ttt|)*8(t|)*6tL");
  EXPECT_EQ(run.layout.degrees.virtual_stages, 2);
  EXPECT_EQ(run.layout.pipeline.layers_per_stage.size(), 16U);
  EXPECT_EQ(run.layout.pipeline.layers_per_stage[1], 3);
  EXPECT_EQ(run.layout.pipeline.schedule, PipelineSchedule::interleaved);
}

TEST(RunRecipe, FrozenWeightsAndPackedRows) {
  const LlmRun run = second("lora_rank,packed_mean_tokens,optimizer", "8,500,sgd");
  EXPECT_TRUE(run.layout.layer.frozen_base);
  EXPECT_EQ(run.layout.layer.adapters.rank, 8);
  EXPECT_EQ(run.layout.layer.packed_mean_tokens, 500);
  EXPECT_EQ(run.layout.optimizer.kind, OptimizerKind::sgd);
}

TEST(RunRecipe, WholeLayersAreRecomputed) {
  EXPECT_EQ(second("recompute", "full").layout.layer.recompute.kind, Recompute::full);
}

// In narrow types the base is kept in them alone, and so is what activations need.
TEST(RunRecipe, FrozenWeightsOfNarrowProducts) {
  LlmRun run = parse_llm_runs(kRuns, "runs.csv")->back();
  run.layout.layer.precision.compute = DType::fp4;
  run.layout.layer.precision.fp8.gather_weights = false;
  apply_note_phrases("LoRA rank 16", run);
  EXPECT_TRUE(run.layout.layer.precision.fp8.gather_weights);
  EXPECT_TRUE(run.layout.layer.narrow_activation_inputs);
  run.layout.layer.precision.compute = DType::bf16;
  run.layout.layer.narrow_activation_inputs = false;
  apply_note_phrases("LoRA rank 16", run);
  EXPECT_FALSE(run.layout.layer.narrow_activation_inputs);
}

TEST(RunRecipe, NamesFileLineAndColumnOfWhatCannotBe) {
  EXPECT_THAT(with_recipe("recompute", "selective:norms"),
              test::FailsWith("recipes.csv: line 2, column recompute"));
  EXPECT_THAT(with_recipe("cuda_graph", "triton:attn"), test::FailsWith("cuda_graph"));
  EXPECT_THAT(with_recipe("grad_dtype", "int8"), test::FailsWith("grad_dtype"));
  EXPECT_THAT(with_recipe("offload", "activations:all"), test::FailsWith("offload"));
  const RunRecipes of_nobody{"run_line\n9\n", "recipes.csv"};
  EXPECT_THAT(parse_llm_runs(kRuns, "runs.csv", &of_nobody), test::FailsWith("no run is in that line"));
  const RunRecipes without_lines{"tp_overlap\n1\n", "recipes.csv"};
  EXPECT_THAT(parse_llm_runs(kRuns, "runs.csv", &without_lines), test::FailsWith("run_line"));
}

// Every phrase does something to a run that nothing else was said of.
TEST(RunRecipe, EveryPhraseOfANoteIsUnderstood) {
  const std::vector<LlmRun> runs = *parse_llm_runs(kRuns, "runs.csv");
  for (const NotePhrase& phrase : note_phrases()) {
    LlmRun run = runs.back();
    run.layout.layer.overlap.tensor_parallel = false;
    run.layout.sharding.overlap_gradient_reduce = run.layout.sharding.overlap_parameter_gather = false;
    run.layout.layer.precision.fp8.attention = phrase.words.starts_with("16-bit");
    const LlmRun before = run;
    apply_note_phrases("v4.1 somebody; " + std::string{phrase.words} + "; layout from config", run);
    EXPECT_TRUE(!(run.layout == before.layout) ||
                run.embedding_and_loss_as_layers != before.embedding_and_loss_as_layers)
        << phrase.words;
  }
}

TEST(RunRecipe, PhrasesOfFineTuning) {
  LlmRun run = parse_llm_runs(kRuns, "runs.csv")->back();
  apply_note_phrases(
      "LoRA rank 16 on attention: base weights frozen; two sequences packed in each row of 2048", run);
  EXPECT_TRUE(run.layout.layer.frozen_base);
  EXPECT_EQ(run.layout.layer.adapters, Adapters{.rank = 16});
  EXPECT_EQ(run.layout.layer.packed_mean_tokens, 1024);
  EXPECT_EQ(run.layout.layer.predicted_token_share, 1);  // no encoder
}

TEST(RunRecipe, SomeLayersAreRecomputed) {
  LlmRun run = parse_llm_runs(kRuns, "runs.csv")->back();
  run.layout.degrees.pipeline = run.layout.degrees.virtual_stages = 1;
  apply_note_phrases("full recompute of 21 of 80 layers", run);
  EXPECT_EQ(run.layout.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(run.layout.layer.recompute.layers_per_stage, 21);
}

// 30 layers, embedding and loss on 8 stages: 4 units each.
TEST(RunRecipe, EmbeddingAndLossCountAsLayers) {
  LlmRun run = parse_llm_runs(kRuns, "runs.csv")->front();
  EXPECT_EQ(run.layout.pipeline.layers_per_stage, (std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 3, 3}));
  const RunRecipes recipes{"run_line,note\n2,4 layers (embedding and loss counted as one layer each)\n",
                           "r.csv"};
  run = parse_llm_runs(kRuns, "runs.csv", &recipes)->front();
  EXPECT_EQ(run.layout.pipeline.layers_per_stage, (std::vector<std::int64_t>{3, 4, 4, 4, 4, 4, 4, 3}));
}

}  // namespace
}  // namespace stepcast::run_recipe_test
