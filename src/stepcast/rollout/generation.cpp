#include "stepcast/rollout/generation.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/placement.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
// Generation is priced as prefill of all prompts and decoding in slices of the length distribution: in each slice, the
// sequences that are still running generate one token per iteration.
namespace {

// Prompt tokens per prefill pass: max_num_batched_tokens of vLLM on GPUs with at least 70 GiB.
constexpr std::int64_t kChunkTokens = 8192;
// Number of slices of the answer lengths.
constexpr int kSlices = 40;
// Share of running sequences below which the step waits only for its longest answers.
constexpr double kTailShare = 0.1;
constexpr double kCacheElementBytes = 2;  // keys and values in bf16

// True for attention, which decoding prices separately.
bool is_attention(const WorkItem& item) {
  return item.operation() != nullptr && std::holds_alternative<AttentionShape>(item.operation()->shape);
}

// True for work of a training step that an engine does not have: loss, host work, balancing of experts, and separate bias
// kernels per expert, which engines fuse into their GEMMs.
bool trains_only(const WorkItem& item) {
  if (item.role == ItemRole::training) return true;
  const Operation* operation = item.operation();
  if (operation == nullptr) return false;
  if (std::holds_alternative<CrossEntropyShape>(operation->shape)) return true;
  const auto* amount = std::get_if<AmountShape>(&operation->shape);
  return amount != nullptr && amount->kernel_class == KernelClass::none;
}

bool is_expert_product(ItemRole role) { return role == ItemRole::expert_up || role == ItemRole::expert_down; }

}  // namespace

double touched_experts(double n_experts, double per_token, double tokens) {
  if (n_experts <= 0) return 0;
  return n_experts * (1 - std::pow(1 - std::min(1.0, per_token / n_experts), tokens));
}

Layout Generation::layout_of(std::int64_t sequences, std::int64_t tokens) const {
  Layout layout;
  layout.degrees.tensor = layout_.tensor;
  layout.batch = {sequences, sequences, tokens};
  layout.layer.precision = precision_for(layout_.dtype);
  layout.layer.cuda_graphs = graphs_of_layers();
  layout.layer.cuda_graphs.full_iteration = true;
  layout.software.framework = Framework::megatron;
  return with_software_choices(std::move(layout), prices_->platform().device);
}

Result<Generation> Generation::create(const Transformer& model, const EngineLayout& layout,
                                      StepPricer& prices) {
  if (model.architecture != Architecture::decoder)
    return Error::at("", "--model").found(model.name).expected("a decoder: this model cannot generate");
  Generation engine{model, layout, prices};
  engine.model_.n_multi_token_prediction_layers = 0;
  if (layout.pipeline > model.n_layers) {
    return Error::at("", "--generation-pp")
        .found(fmt::format("{}", layout.pipeline))
        .expected(fmt::format("at most the {} layers of {}", model.n_layers, model.name));
  }
  STEPCAST_ASSIGN(const StepWork work, step_work(engine.model_, engine.layout_of(1, 1)));
  double parameters = 0;
  for (const ChunkWork& chunk : work.chunks) parameters += chunk.dense_parameters + chunk.expert_parameters;
  // Parameters of one tensor-parallel rank, divided evenly among the stages.
  engine.weight_bytes_ = parameters / as_double(layout.pipeline) * element_size(layout.dtype).value();
  engine.count_cache();
  engine.model_.tower.reset();  // the vision tower processes an image once, not with every token
  return engine;
}

void Generation::count_cache() {
  for (std::int64_t layer = 0; layer < model_.n_layers; ++layer) {
    const Transformer one = model_.layer_kinds.empty() ? model_ : layer_model(model_, model_.kind(layer));
    if (!one.attends()) continue;  // its state has a constant size
    const double heads = as_double((one.n_heads + layout_.tensor - 1) / layout_.tensor);
    const CachedKeys keys = attention_of(one).cache(one, layout_.tensor);
    const double window =
        as_double(model_.layer_kinds.empty() ? model_.window_tokens(layer) : one.sliding_window_tokens);
    const CachedLayers found{keys.elements * kCacheElementBytes, 2 * heads * keys.head_width, window, 1};
    // Equal layers are merged and counted.
    const auto same = std::find_if(cache_.begin(), cache_.end(), [&](const CachedLayers& c) {
      return c.bytes_per_token == found.bytes_per_token && c.window == window;
    });
    same == cache_.end() ? cache_.push_back(found) : void(same->count += 1);
  }
}

double Generation::cache_bytes(double tokens) const {
  double bytes = 0;
  for (const CachedLayers& layers : cache_) {
    const double seen = layers.window > 0 ? std::min(tokens, layers.window) : tokens;
    bytes += layers.count * layers.bytes_per_token * seen;
  }
  return bytes / as_double(layout_.pipeline);
}

double Generation::attention_us(double sequences, double context) {
  double us = 0;
  for (const CachedLayers& layers : cache_) {
    const double seen = layers.window > 0 ? std::min(context, layers.window) : context;
    const Operation read{AmountShape{.flops = sequences * seen * layers.flops_per_token,
                                     .bytes_read = sequences * seen * layers.bytes_per_token,
                                     .matrix = true,
                                     .kernel_class = KernelClass::attention},
                         DType::bf16};
    us += layers.count * prices_->price(read).time.value();
  }
  return us;
}

Result<double> Generation::list_us(const WorkList& list, const Placement& placement, double tokens,
                                   bool decodes) {
  double us = 0;
  bool experts = false, sums = false;
  for (const WorkItem& item : list) {
    if (trains_only(item) || (decodes && is_attention(item))) continue;
    if (const Transfer* transfer = item.transfer()) {
      // All ranks of an engine have all tokens, so a layer of experts needs one all-reduce instead of all-to-alls.
      if (model_.moe && (transfer->op != CollectiveOp::all_reduce || sums)) continue;
      sums = true;
      STEPCAST_ASSIGN(const Estimate time, prices_->price(*transfer, placement));
      us += time.time.value() * as_double(item.count);
      continue;
    }
    Operation operation = *item.operation();
    auto* product = std::get_if<GemmShape>(&operation.shape);
    if (product != nullptr && is_expert_product(item.role) && product->batch > 1) {
      experts = true;
      const MixtureOfExperts& moe = *model_.moe;
      const double per_token = as_double(moe.experts_per_token);
      // One batched GEMM over the visited experts, each with its mean number of tokens.
      const double touched = touched_experts(as_double(moe.n_experts), per_token, tokens);
      product->batch = std::max<std::int64_t>(1, std::llround(touched));
      product->m = std::max<std::int64_t>(1, std::llround(tokens * per_token / touched));
    }
    us += prices_->price(operation).time.value() * as_double(item.count);
  }
  if (experts) {
    const Bytes message{tokens * as_double(model_.hidden_size) * 2};
    STEPCAST_ASSIGN(const Estimate sum, prices_->price(CollectiveOp::all_reduce, message, placement.tensor));
    us += sum.time.value();
  }
  return us;
}

Result<double> Generation::forward_us(std::int64_t sequences, std::int64_t tokens) {
  const Layout layout = layout_of(sequences, tokens);
  STEPCAST_ASSIGN(const StepWork work, step_work(model_, layout));
  const Node& node = prices_->platform().node;
  STEPCAST_ASSIGN(const Placement placement, place(layout, node.gpus_per_node, node.segment));
  const double all_tokens = as_double(sequences * tokens);
  const bool decodes = tokens == 1;
  STEPCAST_ASSIGN(double us, list_us(work.embedding->forward, placement, all_tokens, decodes));
  STEPCAST_ASSIGN(const double head, list_us(work.head->forward, placement, as_double(sequences), decodes));
  if (decodes) us += head;
  std::vector<double> of_kind;
  for (const auto& layer : work.layer_kinds) {
    STEPCAST_ASSIGN(const double one, list_us(layer->forward, placement, all_tokens, decodes));
    of_kind.push_back(one);
  }
  for (const ChunkWork& chunk : work.chunks)
    for (const ChunkWork::Run& run : chunk.runs) us += of_kind[run.kind] * run.count;
  return us;
}

// Iteration times are nearly linear between powers of two, so few batch sizes are priced.
Result<double> Generation::products_us(double sequences) {
  const auto at = [&](std::int64_t n) -> Result<double> {
    if (const auto known = priced_.find(n); known != priced_.end()) return known->second;
    STEPCAST_ASSIGN(const double us, forward_us(n, 1));
    return priced_[n] = us;
  };
  std::int64_t below = 1;
  while (as_double(2 * below) <= sequences) below *= 2;
  STEPCAST_ASSIGN(const double low, at(below));
  if (sequences <= as_double(below)) return low;
  STEPCAST_ASSIGN(const double high, at(2 * below));
  return low + (high - low) * (sequences - as_double(below)) / as_double(below);
}

// The batch is divided into as many parts as pipeline stages, so that every stage is always busy.
Result<double> Generation::iteration_us(double sequences, double context) {
  const double stages = as_double(layout_.pipeline);
  const double part = std::max(1.0, sequences / stages);
  STEPCAST_ASSIGN(double us, products_us(part));
  us += attention_us(part, context);
  if (layout_.pipeline == 1) return us;
  // Activations sent from stage to stage, in 16 bits.
  const Bytes boundary{part * as_double(model_.hidden_size) * 2 / as_double(layout_.tensor)};
  const Node& node = prices_->platform().node;
  GroupPlacement pair;
  pair.n_ranks = 2;
  pair.n_nodes = layout_.gpus() > node.gpus_per_node ? 2 : 1;
  pair.ranks_per_node = pair.min_ranks_per_node = pair.n_nodes == 1 ? 2 : 1;
  pair.groups_per_node = std::min<std::int64_t>(layout_.tensor, node.gpus_per_node);
  STEPCAST_ASSIGN(const Estimate hop, prices_->price(CollectiveOp::send_receive, boundary, pair));
  return us + stages * hop.time.value();
}

Result<GenerationTime> Generation::generate(const GenerationLoad& load) {
  const Lengths& lengths = *load.lengths;
  GenerationTime out;
  const double layers = as_double(model_.n_layers);
  // Prefill: prompts are processed in passes of up to kChunkTokens tokens.
  const std::int64_t chunk = std::clamp<std::int64_t>(std::llround(load.prompt_tokens), 1, kChunkTokens);
  const std::int64_t at_once = std::max<std::int64_t>(1, kChunkTokens / chunk);
  STEPCAST_ASSIGN(const double chunk_us, forward_us(at_once, chunk));
  out.prefill_s = 1e-6 * chunk_us * load.prompts * load.prompt_tokens / as_double(at_once * chunk);

  const double running = std::min(load.sequences * std::max(1.0, load.batches_in_flight), load.at_once);
  const double answer = lengths.mean() - load.prompt_tokens;
  // Off-policy: new sequences replace finished ones, so the batch size is constant.
  if (load.batches_in_flight > 0) {
    const double iterations = answer * load.sequences / running;
    STEPCAST_ASSIGN(const double us, iteration_us(running, load.prompt_tokens + answer / 2));
    out.decode_s = 1e-6 * us * iterations;
    out.decode_layers = layers * iterations;
    return out;
  }
  if (load.sequences > running) {  // waiting sequences start as others end
    const double iterations = answer * (load.sequences - running) / running;
    STEPCAST_ASSIGN(const double us, iteration_us(running, load.prompt_tokens + answer / 2));
    out.decode_s += 1e-6 * us * iterations;
    out.decode_layers += layers * iterations;
  }
  // On-policy tail: in each slice of lengths, the longer sequences still run. `any`: probability that some engine still has one.
  const double width = (lengths.max() - load.prompt_tokens) / kSlices;
  for (int slice = 0; slice < kSlices; ++slice) {
    const double tokens = load.prompt_tokens + width * (slice + 0.5);
    const double share = lengths.survival(tokens);
    const double any = 1 - std::pow(1 - share, load.all_sequences);
    if (any < 1e-6) break;
    STEPCAST_ASSIGN(const double us, iteration_us(std::max(1.0, running * share), tokens));
    const bool is_tail = share < kTailShare;
    (is_tail ? out.tail_s : out.decode_s) += 1e-6 * us * width * any;
    (is_tail ? out.tail_layers : out.decode_layers) += layers * width * any;
  }
  return out;
}

}  // namespace stepcast
