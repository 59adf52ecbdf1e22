#include "calibrate/run_recipe.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/operation/optimizer_rule.h"
#include "stepcast/workload/layer_words.h"

namespace stepcast {
namespace {

// Share of the tokens of an encoder that is masked (Devlin et al. 2019, section 3.1).
constexpr double kMaskedShare = 0.15;

// Splits "selective:layernorm+moe_act" into the part before the colon and the part after it.
std::pair<std::string_view, std::string_view> split(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

void pack(LlmRun& run, double mean_tokens) {
  run.layout.layer.packed_mean_tokens = mean_tokens;
  if (run.model.mlm_head) run.layout.layer.predicted_token_share = kMaskedShare;
  run.layout.sharding.overlap_gradient_reduce = true;
  run.layout.layer.fused = FusedKernels{};  // software that packs rows has kernels for them
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

void freeze_with_adapters(LlmRun& run, std::int64_t rank) {
  run.layout.layer.frozen_base = true;
  run.layout.layer.adapters.rank = rank;
  // Runs of MLPerf in narrow types keep the base weights only in them (`fp8_params`), and saved activations in 8 bits
  // (`activation_func_fp8_input_store`). Otherwise Llama 2 70B would not fit on single GPUs.
  Precision& precision = run.layout.layer.precision;
  if (precision.compute != DType::fp8 && precision.compute != DType::fp4) return;
  precision.fp8.gather_weights = run.layout.layer.narrow_activation_inputs = true;
}

Status read_recompute(const CsvRows& rows, LlmRun& run) {
  const auto [kind, modules] = split(rows.cell("recompute"));
  Recomputation& recompute = run.layout.layer.recompute;
  if (kind == "none") recompute.kind = Recompute::none;
  if (kind == "full") recompute.kind = Recompute::full;
  if (kind != "selective" || modules.empty()) return Ok{};
  Result<RecomputedModules> parsed = parse_recomputed_modules(modules);
  if (!parsed) return rows.error("recompute", parsed.error().message());
  recompute.kind = Recompute::selective;
  recompute.modules = *parsed;
  return Ok{};
}

Status read_cuda_graph(const CsvRows& rows, LlmRun& run) {
  const std::string_view cell = rows.cell("cuda_graph");
  if (cell.empty()) return Ok{};
  auto [implementation, scope] = split(cell);
  if (scope.empty()) std::swap(implementation, scope);
  if (scope == "0" || scope == "1") scope = scope == "1" ? "full_iteration" : "none";
  Result<CudaGraphs> parsed = parse_cuda_graphs(implementation, scope);
  if (!parsed) return rows.error("cuda_graph", parsed.error().message());
  run.layout.layer.cuda_graphs = *parsed;
  return Ok{};
}

Status read_fp8_recipe(const CsvRows& rows, LlmRun& run) {
  const std::string_view name = rows.cell("fp8_recipe");
  Fp8Recipe& recipe = run.layout.layer.precision.fp8;
  if (name.starts_with("tensorwise")) recipe.scaling = Fp8Scaling::dynamic;
  if (name.starts_with("delayed")) recipe.scaling = Fp8Scaling::delayed;
  if (name.starts_with("rowwise")) recipe.scaling = Fp8Scaling::rowwise;
  if (name.starts_with("blockwise")) recipe.scaling = Fp8Scaling::blockwise;
  if (name.starts_with("mxfp8")) recipe.scaling = Fp8Scaling::mxfp8;
  STEPCAST_ASSIGN(recipe.gather_weights, rows.truth("fp8_param_gather", recipe.gather_weights));
  return Ok{};
}

Status read_types(const CsvRows& rows, LlmRun& run) {
  STEPCAST_TRY(read_fp8_recipe(rows, run));
  const std::string_view gradients = rows.cell("grad_dtype");
  if (gradients.empty()) return Ok{};
  const DType dtype = parse_dtype(gradients);
  if (dtype != DType::bf16 && dtype != DType::fp16 && dtype != DType::fp32)
    return rows.error("grad_dtype", "an unknown type").expected("fp32, bf16 or fp16");
  run.layout.layer.precision.gradients = run.layout.layer.precision.reduction = dtype;
  return Ok{};
}

Status read_experts(const CsvRows& rows, LlmRun& run) {
  LayerChoices& layer = run.layout.layer;
  const auto [dispatcher, flex] = split(rows.cell("moe_dispatcher"));
  if (dispatcher == "alltoall") layer.dispatcher = TokenDispatcher::all_to_all;
  if (dispatcher == "allgather") layer.dispatcher = TokenDispatcher::all_gather;
  if (dispatcher == "flex")
    layer.dispatcher = flex == "hybridep" ? TokenDispatcher::hybridep : TokenDispatcher::deepep;
  STEPCAST_ASSIGN(layer.overlap.expert, rows.truth("ep_overlap", layer.overlap.expert));
  STEPCAST_ASSIGN(run.layout.degrees.expert_tensor,
                  rows.extent("expert_tensor_parallel", 0, run.layout.degrees.expert_tensor));
  STEPCAST_ASSIGN(run.model.n_multi_token_prediction_layers,
                  rows.extent("mtp_layers", 0, run.model.n_multi_token_prediction_layers));
  return Ok{};
}

// Megatron-LM's `--cp-comm-type`.
Status read_context_parallelism(const CsvRows& rows, LlmRun& run) {
  const std::string_view word = rows.cell("cp_comm_type");
  ContextParallelKind& kind = run.layout.layer.context_parallel_kind;
  if (word == "p2p") kind = ContextParallelKind::ring;
  if (word == "a2a") kind = ContextParallelKind::all_to_all;
  if (word == "all_gather") kind = ContextParallelKind::all_gather;
  if (word.empty() || word == "p2p" || word == "a2a" || word == "all_gather") return Ok{};
  return rows.error("cp_comm_type", "an unknown word").expected("p2p, a2a or all_gather");
}

// "activations:40 layers".
Status read_offload(const CsvRows& rows, LlmRun& run) {
  const auto [what, layers] = split(rows.cell("offload"));
  if (what != "activations") return Ok{};
  LayerChoices& layer = run.layout.layer;
  layer.activation_offload = true;
  const auto read =
      std::from_chars(layers.data(), layers.data() + layers.size(), layer.activation_offload_layers);
  if (read.ec != std::errc{} || layer.activation_offload_layers < 1)
    return rows.error("offload").expected("none, or activations:N layers");
  return Ok{};
}

Status read_stages(const CsvRows& rows, LlmRun& run) {
  const std::string_view cell = rows.cell("pipeline_layout");
  if (!cell.empty()) {
    Result<std::vector<std::int64_t>> stages = parse_pipeline_layout(cell);
    if (!stages) return rows.error("pipeline_layout", stages.error().message());
    run.layout.pipeline.layers_per_stage = std::move(*stages);
    const auto n_chunks = static_cast<std::int64_t>(run.layout.pipeline.layers_per_stage.size());
    run.layout.degrees.virtual_stages = std::max<std::int64_t>(1, n_chunks / run.layout.degrees.pipeline);
    if (run.layout.degrees.virtual_stages > 1) {
      run.layout.pipeline.schedule = PipelineSchedule::interleaved;
      run.layout.pipeline.overlap = true;
    }
  }
  STEPCAST_ASSIGN(run.embedding_and_loss_as_layers,
                  rows.truth("embedding_loss_as_layers", run.embedding_and_loss_as_layers));
  return Ok{};
}

Status read_fine_tuning(const CsvRows& rows, LlmRun& run) {
  LayerChoices& layer = run.layout.layer;
  STEPCAST_ASSIGN(const std::int64_t rank, rows.extent("lora_rank", 0, 0));
  if (rank > 0) freeze_with_adapters(run, rank);
  STEPCAST_ASSIGN(layer.frozen_base, rows.truth("frozen_base", layer.frozen_base));
  STEPCAST_ASSIGN(const double packed, rows.number("packed_mean_tokens", 0, 0.0));
  if (packed > 0) pack(run, packed);
  const std::string optimizer = lower(rows.cell("optimizer"));
  run.layout.optimizer.kind = find_optimizer(optimizer).value_or(run.layout.optimizer.kind);
  return Ok{};
}

}  // namespace

Status apply_recipe_columns(const CsvRows& rows, LlmRun& run) {
  STEPCAST_TRY(read_recompute(rows, run));
  STEPCAST_TRY(read_cuda_graph(rows, run));
  STEPCAST_TRY(read_types(rows, run));
  STEPCAST_TRY(read_experts(rows, run));
  STEPCAST_TRY(read_context_parallelism(rows, run));
  STEPCAST_TRY(read_offload(rows, run));
  STEPCAST_TRY(read_stages(rows, run));
  STEPCAST_TRY(read_fine_tuning(rows, run));
  bool& overlap = run.layout.layer.overlap.tensor_parallel;
  STEPCAST_ASSIGN(overlap, rows.truth("tp_overlap", overlap));
  overlap = overlap && run.layout.layer.sequence_parallel;
  // Settings that Megatron Core would refuse come from the recipe of another layout and are switched off.
  LayerOverlap& beside = run.layout.layer.overlap;
  const Degrees& degrees = run.layout.degrees;
  if (degrees.expert > 1 && degrees.pipeline > 1 && degrees.virtual_stages == 1) beside.expert = false;
  beside.delayed_weight_gradient = beside.delayed_weight_gradient && beside.expert;
  const std::string_view date = rows.cell("framework_date");
  if (!date.empty()) run.layout.software.date = date;
  if (rows.cell("recipe_match").starts_with("differs"))
    run.assumed.emplace_back(fmt::format("recipe of another layout ({})", rows.cell("recipe_match")));
  return Ok{};
}

std::span<const NotePhrase> note_phrases() {
  using Text = std::string_view;
  static constexpr NotePhrase kPhrases[] = {
      // Rounds of MLPerf Training, with the month of their software freeze.
      {"v3.0 ", [](LlmRun& r, Text) { r.layout.software.date = "2023-04"; }},
      {"v3.1 ", [](LlmRun& r, Text) { r.layout.software.date = "2023-09"; }},
      {"v4.0 ", [](LlmRun& r, Text) { r.layout.software.date = "2024-04"; }},
      {"v4.1 ", [](LlmRun& r, Text) { r.layout.software.date = "2024-09"; }},
      {"v5.0 ", [](LlmRun& r, Text) { r.layout.software.date = "2025-04"; }},
      {"v5.1 ", [](LlmRun& r, Text) { r.layout.software.date = "2025-08"; }},
      {"TP overlap",
       [](LlmRun& r, Text) { r.layout.layer.overlap.tensor_parallel = r.layout.layer.sequence_parallel; }},
      {"p2p overlap", [](LlmRun& r, Text) { r.layout.pipeline.overlap = r.layout.degrees.pipeline > 1; }},
      {"DP overlap",
       [](LlmRun& r, Text) {
         r.layout.sharding.overlap_gradient_reduce = true;
         r.layout.sharding.overlap_parameter_gather = true;
       }},
      {"embedding and loss count as pipeline layers",
       [](LlmRun& r, Text) { r.embedding_and_loss_as_layers = true; }},
      // "LoRA rank 16 on attention: base weights frozen"; without a rank, the default of NVIDIA's recipes.
      {"LoRA",
       [](LlmRun& r, Text rest) {
         constexpr Text kRank = " rank ";
         std::int64_t rank = 16;
         if (rest.starts_with(kRank))
           (void)std::from_chars(rest.data() + kRank.size(), rest.data() + rest.size(), rank);
         freeze_with_adapters(r, rank);
       }},
      // "full recompute of 21 of 80 layers"; without a number, all layers.
      {"full recompute",
       [](LlmRun& r, Text rest) {
         constexpr Text kOf = " of ";
         Recomputation& recompute = r.layout.layer.recompute;
         recompute.kind = Recompute::full;
         std::int64_t layers = 0;
         if (rest.starts_with(kOf))
           (void)std::from_chars(rest.data() + kOf.size(), rest.data() + rest.size(), layers);
         const std::int64_t chunks = r.layout.degrees.pipeline * r.layout.degrees.virtual_stages;
         if (layers > 0) recompute.layers_per_stage = std::max<std::int64_t>(1, layers / chunks);
       }},
      {"fp8 attention", [](LlmRun& r, Text) { r.layout.layer.precision.fp8.attention = true; }},
      {"16-bit attention", [](LlmRun& r, Text) { r.layout.layer.precision.fp8.attention = false; }},
      {"two sequences packed in each row",
       [](LlmRun& r, Text) { pack(r, static_cast<double>(r.layout.batch.seq_len_tokens) / 2); }},
      {"cuda graph", [](LlmRun& r, Text) { r.layout.layer.cuda_graphs.full_iteration = true; }},
      // As in NVIDIA's recipes: tokens beyond the capacity of an expert are dropped, and experts are padded to it.
      {"tokendrop",
       [](LlmRun& r, Text) {
         if (!r.model.moe) return;
         r.layout.layer.expert_capacity_factor = 1;
         r.layout.layer.expert_pads_to_capacity = true;
       }},
      // "release 26.04.01", the month of a container.
      {"release ",
       [](LlmRun& r, Text rest) { r.layout.software.version = std::string{without_blanks(rest)}; }},
      {"delay_wgrad=1",
       [](LlmRun& r, Text) {
         r.layout.layer.overlap.delayed_weight_gradient = r.layout.layer.overlap.expert;
       }},
  };
  return kPhrases;
}

void apply_note_phrases(std::string_view note, LlmRun& run) {
  while (!note.empty()) {
    const std::size_t end = std::min(note.find(';'), note.size());
    const std::string_view phrase = without_blanks(note.substr(0, end));
    note.remove_prefix(std::min(end + 1, note.size()));
    for (const NotePhrase& known : note_phrases()) {
      if (!phrase.starts_with(known.words)) continue;
      known.apply(run, phrase.substr(known.words.size()));
      break;
    }
    constexpr std::string_view kCounted = "(embedding and loss counted as one layer each)";
    if (phrase.ends_with(kCounted)) run.embedding_and_loss_as_layers = true;
  }
}

}  // namespace stepcast
