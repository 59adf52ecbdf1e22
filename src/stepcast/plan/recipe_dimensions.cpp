#include "stepcast/plan/recipe_dimensions.h"

#include "stepcast/platform/device_generation.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/modules/attention_module.h"

// The table at the end lists all choices. Each row has its conditions (not set by the user, applicable to the layout) and its
// values, which set the layout and the matching Megatron-LM flags.
namespace stepcast {
namespace {

using S = JobSettings;

// True if none of the given settings was set by the user.
template <auto... Fields>
bool unsaid(const JobSettings& said) {
  return (!(said.*Fields).has_value() && ...);
}

bool is_megatron(const Layout& layout) { return rule_of(layout).search.has_megatron_flags; }

// DeepEP and HybridEP require Hopper or newer GPUs.
bool is_hopper_or_newer(const Device& device) { return generation_of(device).nccl >= NcclGeneration::hopper; }

// Token dispatchers that replace all-to-all collectives. Their kernels send a token once per rank, and once per node over the
// network (--moe-token-dispatcher-type flex).
template <TokenDispatcher Dispatcher>
void move_tokens(Layout& layout, JobSettings& s) {
  layout.layer.dispatcher = Dispatcher;
  s.dispatcher = TokenDispatcher::deepep;  // selected by the word `flex`
  s.flex_dispatcher = Dispatcher;
}
constexpr RecipeChange kDispatchers[] = {
    {"tokens moved by deepep", move_tokens<TokenDispatcher::deepep>},
    {"tokens moved by hybridep", move_tokens<TokenDispatcher::hybridep>},
};

// Alternatives to passing keys and values around a ring. All-to-all of Transformer Engine requires divisible key-value heads;
// latent attention supports neither alternative.
template <ContextParallelKind Kind>
void exchange_context(Layout& layout, JobSettings& s) {
  layout.layer.context_parallel_kind = Kind;
  s.context_parallel_kind = Kind;
}
constexpr RecipeChange kGatheredContext[] = {{"context parallelism by all-gather (--cp-comm-type all_gather)",
                                              exchange_context<ContextParallelKind::all_gather>}};
constexpr RecipeChange kContexts[] = {
    kGatheredContext[0],
    {"context parallelism by all-to-all (--cp-comm-type a2a)",
     exchange_context<ContextParallelKind::all_to_all>},
};
bool may_gather_context(const Layout& layout, const Transformer& model) {
  return is_megatron(layout) && layout.degrees.context > 1 &&
         attention_of(model).traits().splits_context_by_heads;
}
// All-to-all gives each rank whole key-value heads.
bool heads_divide(const Layout& layout, const Transformer& model) {
  return model.kv_heads() % (layout.degrees.tensor * layout.degrees.context) == 0;
}

// fp8 with delayed scaling, the default without a recipe, has the least extra work of all scalings, so no other scaling is
// tried.
constexpr RecipeChange kNarrowGathers[] = {{"weights travel in fp8", [](Layout& layout, JobSettings& s) {
                                              layout.layer.precision.fp8.gather_weights = true;
                                              s.fp8_gather_weights = true;
                                            }}};

constexpr RecipeChange kOverlappedProducts[] = {
    {"tensor-parallel communication overlapped with GEMMs", [](Layout& layout, JobSettings& s) {
       layout.layer.overlap.tensor_parallel = true;
       s.overlap_tensor_parallel = true;
     }}};

constexpr RecipeChange kOverlappedTokens[] = {
    {"token all-to-all overlapped with another micro-batch", [](Layout& layout, JobSettings& s) {
       layout.layer.overlap.expert = layout.layer.overlap.delayed_weight_gradient = true;
       s.overlap_expert = s.delay_weight_gradient = true;
     }}};

// Pipeline stages within nodes and data-parallel ranks across them; the default order is the opposite.
constexpr std::string_view kUsualOrder = "tp-cp-ep-dp-pp", kOtherOrder = "tp-cp-ep-pp-dp";
constexpr RecipeChange kOrders[] = {
    {"adjacent pipeline stages (ranks in the order tp-cp-ep-pp-dp)", [](Layout& layout, JobSettings& s) {
       layout.rank_order = kOtherOrder;
       s.pipeline_before_data = true;
     }}};

// CUDA graphs of Transformer Engine: whole layers of dense models; with experts, only the parts independent of token routing.
// Recomputation cannot be applied from outside to captured modules.
void capture_dense(Layout& layout, JobSettings& s) {
  layout.layer.cuda_graphs = {.attention = true, .ffn = true};
  s.cuda_graph_implementation = "transformer_engine";
  s.cuda_graph_scope = "attn mlp";
}
void capture_experts(Layout& layout, JobSettings& s) {
  layout.layer.cuda_graphs = {.attention = true, .router = true, .expert_dispatch = true};
  s.cuda_graph_implementation = "transformer_engine";
  s.cuda_graph_scope = "attn moe_router moe_preprocess";
}
constexpr RecipeChange kDenseGraphs[] = {{"CUDA graphs of layers", capture_dense}};
constexpr RecipeChange kExpertGraphs[] = {{"CUDA graphs of attention and router", capture_experts}};
bool may_capture(const Layout& layout) {
  return is_megatron(layout) && layout.layer.cuda_graphs == CudaGraphs{} &&
         layout.layer.recompute.kind != Recompute::full && !layout.layer.recompute.modules.experts;
}

constexpr auto kGraphsUnsaid =
    unsaid<&S::cuda_graph_implementation, &S::cuda_graph_scope, &S::cuda_graph_layers>;

constexpr RecipeDimension kDimensions[] = {
    {unsaid<&S::fp8_gather_weights>,
     [](const Layout& l, const Transformer&, const Device&) {
       return is_megatron(l) && l.layer.precision.compute == DType::fp8 &&
              l.sharding.kind != Sharding::none && !l.layer.precision.fp8.gather_weights;
     },
     kNarrowGathers, Room::frees},
    {unsaid<&S::dispatcher, &S::flex_dispatcher>,
     [](const Layout& l, const Transformer&, const Device& d) {
       return is_megatron(l) && l.degrees.expert > 1 && is_hopper_or_newer(d);
     },
     kDispatchers},
    {unsaid<&S::context_parallel_kind>,
     [](const Layout& l, const Transformer& m, const Device&) {
       return may_gather_context(l, m) && heads_divide(l, m);
     },
     kContexts},
    {unsaid<&S::context_parallel_kind>,
     [](const Layout& l, const Transformer& m, const Device&) {
       return may_gather_context(l, m) && !heads_divide(l, m);
     },
     kGatheredContext},
    {unsaid<>,
     [](const Layout& l, const Transformer&, const Device&) {
       return l.degrees.tensor > 1 && l.layer.sequence_parallel && !l.layer.overlap.tensor_parallel;
     },
     kOverlappedProducts},
    {unsaid<>,
     [](const Layout& l, const Transformer&, const Device&) {
       const bool two_batches_at_once = l.degrees.pipeline == 1 || l.degrees.virtual_stages > 1;
       return l.degrees.expert > 1 && two_batches_at_once && !l.layer.overlap.expert;
     },
     kOverlappedTokens},
    {kGraphsUnsaid,
     [](const Layout& l, const Transformer& m, const Device&) { return may_capture(l) && !m.moe; },
     kDenseGraphs, Room::needs},
    {kGraphsUnsaid,
     [](const Layout& l, const Transformer& m, const Device&) { return may_capture(l) && m.moe.has_value(); },
     kExpertGraphs, Room::needs},
    {unsaid<>,
     [](const Layout& l, const Transformer&, const Device&) {
       // Distributed experts would be placed on other stages than the rest of their layer.
       const bool spreads = l.degrees.expert > 1 || l.expert_tensor_degree() != l.degrees.tensor;
       return is_megatron(l) && l.degrees.pipeline > 1 && !spreads && l.rank_order == kUsualOrder;
     },
     kOrders},
};

}  // namespace

std::span<const RecipeDimension> recipe_dimensions() { return kDimensions; }

}  // namespace stepcast
