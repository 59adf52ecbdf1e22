#include "calibrate/llm_runs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/software_defaults.h"
#include "stepcast/formats/presets.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/attention_module.h"

#include "calibrate/detail/llm_run_checks.h"
#include "calibrate/run_recipe.h"

namespace stepcast {
namespace {

constexpr std::string_view kNeeded =
    "model hidden_size n_layers n_heads seq_len_tokens gpu n_gpus dtype tensor_parallel "
    "pipeline_parallel data_parallel micro_batch_sequences global_batch_sequences iter_time_ms";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Defaults of a framework for settings that its published rows do not state.
struct UnsaidHabits {
  Framework of = Framework::unknown;
  bool selects_operators = false;       // "selective" recomputation is per operator
  std::int64_t interleaved_stages = 0;  // virtual stages of an interleaved schedule; 0: not known
  std::string_view
      // releases that split a batch into as many micro-batches as there are pipeline ranks; empty: none
      splits_by_ranks_until{};
  bool words_name_kernels = false;  // framework, type and note state compilation, scaling and overlap
  AttentionMethod attention = AttentionMethod::flash, attention_in_fp16 = AttentionMethod::flash;
};
constexpr UnsaidHabits kUnsaid[] = {
    {},
    // The Llama configurations of TorchTitan set `selective_ac_option = "op"`.
    {.of = Framework::torchtitan,
     .selects_operators = true,
     .interleaved_stages = 2,
     .splits_by_ranks_until = "2025",
     .words_name_kernels = true},
    {.of = Framework::libai,
     .attention = AttentionMethod::unfused,
     .attention_in_fp16 = AttentionMethod::unfused},
    {.of = Framework::megatron, .attention_in_fp16 = AttentionMethod::unfused},
};
const UnsaidHabits& unsaid_of(const Layout& layout) {
  const auto* const row = std::ranges::find(kUnsaid, layout.software.framework, &UnsaidHabits::of);
  return row == std::end(kUnsaid) ? kUnsaid[0] : *row;
}

// "memory 82.4 GiB; ..."
std::optional<double> memory_in(std::string_view note) {
  const std::size_t at = note.find("memory ");
  if (at == std::string_view::npos) return std::nullopt;
  const char* begin = note.data() + at + 7;
  double value = 0;
  const auto [end, error] = std::from_chars(begin, note.data() + note.size(), value);
  if (error != std::errc{} || end == begin || value <= 0) return std::nullopt;
  return value;
}

// The month in "llama3_h100_202412" or "2025-06" as "2024-12"; empty if there is none.
std::string date_in(std::string_view note) {
  const auto digit = [&](std::size_t i) { return i < note.size() && note[i] >= '0' && note[i] <= '9'; };
  for (std::size_t i = 0; i + 6 <= note.size(); ++i) {
    if (note.substr(i, 2) != "20" || (i > 0 && digit(i - 1))) continue;
    const std::size_t month = i + (note[i + 4] == '-' ? 5 : 4);
    if (!digit(i + 2) || !digit(i + 3) || !digit(month) || !digit(month + 1) || digit(month + 2)) continue;
    if (note[month] > '1') continue;
    return fmt::format("{}-{}", note.substr(i, 4), note.substr(month, 2));
  }
  return {};
}

// Properties without a column for models that are not presets, by the first word of the column `architecture`.
struct ModelFamily {
  std::string_view word;
  Transformer (*model)();
};
constexpr ModelFamily kFamilies[] = {
    {"bert",
     [] {
       return Transformer{.architecture = Architecture::encoder,
                          .final_norm = false,
                          .embedding_norm = true,
                          .n_token_types = 2,
                          .mlm_head = true};
     }},
    {"llama",
     [] {
       return Transformer{.activation = Activation::silu,
                          .position = PositionEncoding::rotary,
                          .tied_embeddings = false,
                          .qkv_bias = false,
                          .attention_output_bias = false,
                          .ffn_bias = false};
     }},
    {"neox",
     [] {
       return Transformer{.position = PositionEncoding::rotary,
                          .rotary_fraction = 0.25,
                          .parallel_residual = true,
                          .tied_embeddings = false};
     }},
};

// The preset with the name of the model, else its family. Models with gated FFNs and RMS norms are based on Llama.
Transformer base_of(std::string_view name, const std::string& architecture, bool is_modern) {
  if (Result<Transformer> preset = find_preset(name)) return std::move(*preset);
  const std::string_view word = is_modern ? "llama" : std::string_view{architecture};
  for (const ModelFamily& family : kFamilies)
    if (contains(word, family.word)) return family.model();
  return {};
}

Result<Transformer> model_of(const CsvRows& rows, LlmRun& run) {
  const std::string architecture = lower(rows.cell("architecture"));
  const bool rms_norm = contains(lower(rows.cell("norm")), "rms");
  STEPCAST_ASSIGN(const bool gated, rows.truth("gated_ffn", false));
  Transformer m = base_of(rows.cell("model"), architecture, gated || rms_norm);
  m.name = rows.cell("model");
  m.gated_ffn = gated;
  m.norm = rms_norm ? NormKind::rms_norm : NormKind::layer_norm;
  if (rms_norm) m.norm_bias = false;
  STEPCAST_TRY(
      rows.extents({{"hidden_size", &m.hidden_size}, {"n_layers", &m.n_layers}, {"n_heads", &m.n_heads}}));
  STEPCAST_ASSIGN(m.n_kv_heads, rows.extent("n_kv_heads", 1, m.n_heads));
  if (attention_of(m).traits().sets_head_dim) m.n_kv_heads = m.n_heads;
  STEPCAST_TRY(rows.extents({{"head_dim", &m.head_dim, 0, 0},
                             {"vocab_size", &m.vocab_size, 0, 0},
                             {"ffn_hidden_size", &m.ffn_hidden_size, 0, 0},
                             {"seq_len_tokens", &m.max_position}}));
  m.unused_positions = 0;
  m.n_multi_token_prediction_layers = 0;
  if (m.ffn_hidden_size == 0) {
    m.ffn_hidden_size = 4 * m.hidden_size;
    run.assumed.emplace_back("ffn_hidden_size: 4 x hidden_size");
  }
  if (m.vocab_size == 0) {
    m.vocab_size = 50257;
    run.assumed.emplace_back("vocab_size: 50257");
  }
  // GPT and BERT of Megatron and LiBai train with dropout; LLM Foundry and newer models without.
  const bool drops = m.position == PositionEncoding::learned &&
                     (contains(architecture, "gpt") || contains(architecture, "bert"));
  m.hidden_dropout = m.attention_dropout = drops ? 0.1 : 0;

  STEPCAST_ASSIGN(const std::int64_t experts, rows.extent("n_experts", 0, 0));
  if (experts <= 1) {
    m.moe.reset();
    return m;
  }
  MixtureOfExperts moe = m.moe.value_or(MixtureOfExperts{});
  moe.n_experts = experts;
  STEPCAST_TRY(rows.extents({{"moe_top_k", &moe.experts_per_token, 1, 2},
                             {"moe_ffn_hidden_size", &moe.expert_ffn_hidden_size, 0, 0}}));
  if (moe.expert_ffn_hidden_size == 0) moe.expert_ffn_hidden_size = m.ffn_hidden_size;
  STEPCAST_ASSIGN(moe.first_dense_layers, rows.extent("n_dense_layers", 0, 0));
  m.moe = moe;
  return m;
}

Result<DType> compute_type(const CsvRows& rows) {
  const std::string text = lower(rows.cell("dtype"));
  if (text.starts_with("fp8") || text.starts_with("float8")) return DType::fp8;  // "float8 rowwise"
  const DType dtype = parse_dtype(text);
  constexpr DType kComputedIn[] = {DType::fp32, DType::tf32,      DType::fp16, DType::bf16,
                                   DType::fp8,  DType::fp8_block, DType::fp4};
  if (std::ranges::find(kComputedIn, dtype) == std::end(kComputedIn))
    return rows.error("dtype", "an unknown type").expected("fp32, tf32, fp16, bf16, fp8, float8 or fp4");
  return dtype;
}

// Words of a column and their values; the first word found is used.
template <class Value, std::size_t N>
Result<Value> word_of(const CsvRows& rows, std::string_view column,
                      const std::array<std::pair<std::string_view, Value>, N>& words, Value otherwise) {
  const std::string text = lower(rows.cell(column));
  if (text.empty()) return otherwise;
  std::string allowed;
  for (const auto& [word, value] : words) {
    if (contains(text, word)) return value;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", word);
  }
  return rows.error(column, "an unknown word").expected(fmt::format("one of {}, or nothing", allowed));
}

constexpr std::array<std::pair<std::string_view, Sharding>, 12> kShardings{{{"zero1", Sharding::zero1},
                                                                            {"zero-1", Sharding::zero1},
                                                                            {"distributed", Sharding::zero1},
                                                                            {"zero2", Sharding::zero2},
                                                                            {"zero-2", Sharding::zero2},
                                                                            {"zero3", Sharding::zero3},
                                                                            {"zero-3", Sharding::zero3},
                                                                            {"fsdp", Sharding::zero3},
                                                                            {"zero0", Sharding::none},
                                                                            {"none", Sharding::none},
                                                                            {"no", Sharding::none},
                                                                            {"ddp", Sharding::none}}};
constexpr std::array<std::pair<std::string_view, PipelineSchedule>, 7> kSchedules{
    {{"gpipe", PipelineSchedule::gpipe},
     {"interleaved", PipelineSchedule::interleaved},
     {"vpp", PipelineSchedule::interleaved},
     {"zero", PipelineSchedule::zero_bubble_h1},
     {"dual", PipelineSchedule::dual_pipe},
     {"1f1b", PipelineSchedule::one_f_one_b},
     {"none", PipelineSchedule::one_f_one_b}}};
constexpr std::array<std::pair<std::string_view, AttentionMethod>, 3> kAttentions{
    {{"unfused", AttentionMethod::unfused},
     {"flash", AttentionMethod::flash},
     {"fused", AttentionMethod::flash}}};
constexpr std::array<std::string_view, 18> kArchitectures{
    "gpt",   "llama",  "mpt",  "bert",    "moe",     "neox",  "mla",  "deepseek", "opt",
    "bloom", "falcon", "qwen", "mistral", "mixtral", "gemma", "grok", "nemotron", "transformer"};

Status check_architecture(const CsvRows& rows) {
  const std::string text = lower(rows.cell("architecture"));
  if (text.empty()) return Ok{};
  std::string allowed;
  for (const std::string_view word : kArchitectures) {
    if (contains(text, word)) return Ok{};
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", word);
  }
  return rows.error("architecture", "an unknown kind of model").expected(allowed);
}

Result<Recompute> recompute_of(const CsvRows& rows, LlmRun& run) {
  const std::string text = lower(rows.cell("recompute"));
  if (text.empty() || text == "none" || text == "no" || text == "off") return Recompute::none;
  if (text == "full" || text == "uniform" || text == "block") return Recompute::full;
  if (contains(text, "config default")) {
    run.assumed.emplace_back("recompute: TorchTitan's default, per-op selective");
    return Recompute::selective_ops;
  }
  if (contains(text, "op selective")) return Recompute::selective_ops;
  if (contains(text, "selective"))
    return unsaid_of(run.layout).selects_operators ? Recompute::selective_ops : Recompute::selective;
  return rows.error("recompute", "an unknown word")
      .expected("none, selective, per-op selective, full, config default, or nothing");
}

// Distributes layers that the number of stages does not divide, unless the row states the distribution.
void deal_out_layers(LlmRun& run) {
  if (!run.layout.pipeline.layers_per_stage.empty()) return;
  const std::int64_t chunks = run.layout.degrees.pipeline * run.layout.degrees.virtual_stages;
  if (run.embedding_and_loss_as_layers && chunks > 1) {
    run.layout.pipeline.layers_per_stage = layers_counting_embedding_and_output(run.model.n_layers, chunks);
    return;
  }
  // More chunks than layers or than the limit: check() reports the error when the run is predicted.
  constexpr std::int64_t kMostChunks = 100'000;
  if (chunks <= std::min(run.model.n_layers, kMostChunks) && run.model.n_layers % chunks != 0) {
    // As even as possible, like TorchTitan and DeepSpeed.
    for (std::int64_t c = 0; c < chunks; ++c) {
      run.layout.pipeline.layers_per_stage.push_back(run.model.n_layers / chunks +
                                                     (c < run.model.n_layers % chunks ? 1 : 0));
    }
    run.assumed.emplace_back("layers per stage: as even as possible");
  }
}

// Reads the columns for hardware, layout and step time.
Result<LlmRun> measured_run(const CsvRows& rows) {
  LlmRun run{.line = rows.line()};
  run.set = rows.cell("set");
  if (run.set.empty()) run.set = "runs";
  run.platform = rows.cell("platform");
  run.gpu = rows.cell("gpu");
  run.framework = rows.cell("framework");
  run.dtype = rows.cell("dtype");
  run.note = rows.cell("note");
  run.memory_GiB = memory_in(run.note);
  STEPCAST_ASSIGN(run.iter_time_ms, rows.number("iter_time_ms", 0));
  if (run.iter_time_ms <= 0) return rows.error("iter_time_ms").expected("a time above 0 in milliseconds");
  STEPCAST_TRY(rows.extents({{"n_gpus", &run.n_gpus}, {"gpus_per_node", &run.gpus_per_node, 0, 0}}));
  STEPCAST_ASSIGN(const double bandwidth, rows.number("inter_node_bandwidth_Gbps", 0, 0.0));
  if (bandwidth > 0) run.inter_node_bandwidth_Gbps = bandwidth;
  STEPCAST_ASSIGN(run.model, model_of(rows, run));
  return run;
}

Status read_degrees_and_batch(const CsvRows& rows, Layout& layout) {
  STEPCAST_TRY(rows.extents({{"tensor_parallel", &layout.degrees.tensor, 1, 1},
                             {"pipeline_parallel", &layout.degrees.pipeline, 1, 1},
                             {"virtual_stages", &layout.degrees.virtual_stages, 1, 1},
                             {"context_parallel", &layout.degrees.context, 1, 1},
                             {"expert_parallel", &layout.degrees.expert, 1, 1},
                             {"data_parallel", &layout.degrees.data, 1, 1},
                             {"micro_batch_sequences", &layout.batch.micro_batch_sequences, 0, 0}}));
  if (layout.batch.micro_batch_sequences == 0 && !rows.cell("micro_batch_sequences").empty())
    return rows.error("micro_batch_sequences").expected("1 or more, or nothing where it is not known");
  STEPCAST_TRY(rows.extents({{"global_batch_sequences", &layout.batch.global_batch_sequences},
                             {"seq_len_tokens", &layout.batch.seq_len_tokens}}));
  return Ok{};
}

Status read_schedule(const CsvRows& rows, LlmRun& run) {
  Layout& layout = run.layout;
  STEPCAST_ASSIGN(layout.sharding.kind, word_of(rows, "sharding", kShardings, Sharding::none));
  STEPCAST_ASSIGN(layout.pipeline.schedule,
                  word_of(rows, "pipeline_schedule", kSchedules, PipelineSchedule::one_f_one_b));
  if (layout.degrees.virtual_stages > 1 && !splits_backward(layout.pipeline.schedule))
    layout.pipeline.schedule = PipelineSchedule::interleaved;
  if (layout.pipeline.schedule != PipelineSchedule::interleaved || layout.degrees.virtual_stages > 1 ||
      layout.degrees.pipeline == 1) {
    return Ok{};
  }
  if (const std::int64_t stages = unsaid_of(layout).interleaved_stages; stages > 0) {
    layout.degrees.virtual_stages = stages;
    run.assumed.push_back(fmt::format("virtual_stages: {}, the framework's default", stages));
  } else {
    layout.pipeline.schedule = PipelineSchedule::one_f_one_b;
    run.assumed.emplace_back("interleaved schedule without its virtual stages: 1F1B");
  }
  return Ok{};
}

Status read_layers(const CsvRows& rows, DType compute, LlmRun& run) {
  Layout& layout = run.layout;
  STEPCAST_ASSIGN(layout.layer.recompute.kind, recompute_of(rows, run));
  if (layout.layer.recompute.kind == Recompute::selective_ops && rows.cell("recompute") == "selective")
    run.assumed.emplace_back("selective recomputation: per operator, as in the configurations of TorchTitan");
  STEPCAST_ASSIGN(layout.layer.attention, word_of(rows, "attention", kAttentions, AttentionMethod::flash));
  if (!rows.cell("attention").empty()) return Ok{};
  const UnsaidHabits& unsaid = unsaid_of(layout);
  layout.layer.attention = compute == DType::fp16 ? unsaid.attention_in_fp16 : unsaid.attention;
  run.assumed.emplace_back(fmt::format("attention: {}", to_string(layout.layer.attention)));
  return Ok{};
}

// Applies the words of the framework, the type and the note to the layers.
void apply_words(const LlmRun& run, DType compute, Layout& layout) {
  const std::string framework = lower(run.framework), dtype = lower(run.dtype), note = lower(run.note);
  if (unsaid_of(layout).words_name_kernels) {
    if (!contains(framework, "compile")) layout.layer.fused = rule_of(Framework::pytorch).fused;
    layout.layer.overlap.tensor_parallel = contains(note, "async tp");
    if (compute == DType::fp8) {
      layout.layer.precision.fp8.scaling = contains(dtype, "row") ? Fp8Scaling::rowwise : Fp8Scaling::dynamic;
      layout.layer.precision.fp8.gather_weights = true;
      layout.layer.precision.fp8.gather_activations = !contains(dtype, "row");
    }
  }
  if (contains(framework, "foundry")) {
    // LLM Foundry published its tables in 2023. The default of Composer differs from `pre` of PyTorch.
    if (layout.software.date.empty()) layout.software.date = "2023";
    layout.layer.attention_unpads = true;
    layout.sharding.backward_prefetch = Prefetch::post;
  }
  if (contains(note, "precision pure")) layout.layer.precision.reduction = DType::bf16;
  if (contains(framework, "megatron-deepspeed"))
    layout.layer.overlap.sequence_parallel_weight_gradient = false;
}

// A pipeline without a stated micro-batch, or with one as large as the whole share of a rank, runs single sequences.
void fill_in_micro_batch(LlmRun& run) {
  Layout& layout = run.layout;
  const std::int64_t per_rank =
      layout.batch.global_batch_sequences / std::max<std::int64_t>(1, layout.degrees.data);
  if (layout.batch.micro_batch_sequences == 0) {
    layout.batch.micro_batch_sequences = 1;
    run.assumed.emplace_back("micro_batch_sequences: 1");
  } else if (const std::string_view until = unsaid_of(layout).splits_by_ranks_until;
             !until.empty() && layout.degrees.pipeline > 1 &&
             layout.batch.micro_batch_sequences == per_rank && per_rank > 1) {
    const bool by_ranks = !layout.software.is_of(until) && per_rank % layout.degrees.pipeline == 0;
    layout.batch.micro_batch_sequences = by_ranks ? per_rank / layout.degrees.pipeline : 1;
    run.assumed.push_back(
        fmt::format("micro-batches of a pipeline that the source does not state: {} of {} sequences",
                    per_rank / layout.batch.micro_batch_sequences, layout.batch.micro_batch_sequences));
  }
}

Result<LlmRun> run_of(const CsvRows& rows) {
  STEPCAST_ASSIGN(LlmRun run, measured_run(rows));
  Layout& layout = run.layout;
  STEPCAST_TRY(read_degrees_and_batch(rows, layout));
  STEPCAST_TRY(detail::check_run(rows, run));
  STEPCAST_ASSIGN(layout.layer.sequence_parallel, rows.truth("sequence_parallel", false));
  if (layout.degrees.tensor == 1) layout.layer.sequence_parallel = false;
  STEPCAST_ASSIGN(const DType compute, compute_type(rows));
  // A list of all components of a submission does not name a framework.
  const bool is_list = run.framework.find_first_of(",;") != std::string::npos;
  set_software_defaults(layout, is_list ? Framework::unknown : parse_framework(run.framework), compute);
  layout.software.date = date_in(run.note);
  STEPCAST_TRY(check_architecture(rows));
  STEPCAST_TRY(read_schedule(rows, run));
  STEPCAST_TRY(read_layers(rows, compute, run));
  apply_words(run, compute, layout);
  fill_in_micro_batch(run);
  STEPCAST_TRY(apply_recipe_columns(rows, run));
  apply_note_phrases(run.note, run);
  run.apart = layout.degrees.context >= 4 || contains(lower(run.dtype), "row");
  return run;
}

// `rows_missing`: some runs could not be read, so recipes without a run are expected.
Status apply_recipes(const RunRecipes& recipes, bool rows_missing, std::vector<LlmRun>& runs) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(recipes.text, recipes.name));
  STEPCAST_TRY(rows.check_names());
  if (!rows.has("run_line")) {
    return Error::at(recipes.name, "the header", "lacks the column run_line")
        .expected("in each row the line of the run that it belongs to");
  }
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    STEPCAST_ASSIGN(const std::int64_t line, rows.extent("run_line"));
    const auto run = std::lower_bound(runs.begin(), runs.end(), line,
                                      [](const LlmRun& r, std::int64_t at) { return r.line < at; });
    if (run == runs.end() || run->line != line) {
      if (rows_missing) continue;
      return rows.error("run_line", "no run is in that line");
    }
    STEPCAST_TRY(apply_recipe_columns(rows, *run));
    apply_note_phrases(rows.cell("note"), *run);
  }
}

// The path of NAME_recipes.csv in the folder of NAME_runs.csv.
std::filesystem::path recipes_beside(const std::filesystem::path& path) {
  constexpr std::string_view kRuns = "_runs.csv";
  std::string name = path.filename().string();
  const std::size_t at = name.rfind(kRuns);
  if (at == std::string::npos) return {};
  name.replace(at, kRuns.size(), "_recipes.csv");
  return path.parent_path() / name;
}

}  // namespace

bool looks_like_llm_runs(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  return contains(header, "tensor_parallel") && contains(header, "iter_time_ms");
}

Result<std::vector<LlmRun>> parse_llm_runs(std::string_view text, const std::string& name,
                                           const RunRecipes* recipes, std::vector<std::string>* left_out) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  std::string_view lacking;
  if (any_word(kNeeded, [&](std::string_view column) { return !rows.has(lacking = column); }))
    return Error::at(name, "the header", fmt::format("lacks the column {}", lacking))
        .expected("the columns of llm_runs.csv (docs/iterations.md)");
  std::vector<LlmRun> runs;
  std::optional<Error> first_problem;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    Result<LlmRun> run = run_of(rows);
    if (run) {
      runs.push_back(*std::move(run));
    } else if (left_out == nullptr) {
      return std::move(run).error();
    } else {
      left_out->push_back(run.error().message());
      if (!first_problem) first_problem = std::move(run).error();
    }
  }
  if (runs.empty()) {
    if (first_problem) return *std::move(first_problem);
    return Error::at(name, "behind the header", "no row").expected("one measured step a line");
  }
  if (recipes != nullptr) STEPCAST_TRY(apply_recipes(*recipes, first_problem.has_value(), runs));
  for (LlmRun& run : runs) deal_out_layers(run);
  return runs;
}

Result<std::vector<LlmRun>> read_llm_runs(const std::filesystem::path& path,
                                          std::vector<std::string>* left_out) {
  STEPCAST_ASSIGN(const std::string text, read_file(path));
  const std::filesystem::path beside = recipes_beside(path);
  std::error_code ignored;
  if (beside.empty() || !std::filesystem::is_regular_file(beside, ignored))
    return parse_llm_runs(text, path.string(), nullptr, left_out);
  STEPCAST_ASSIGN(std::string recipes, read_file(beside));
  const RunRecipes table{std::move(recipes), beside.string()};
  return parse_llm_runs(text, path.string(), &table, left_out);
}

}  // namespace stepcast
