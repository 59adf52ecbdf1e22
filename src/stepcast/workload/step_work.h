// What one training step asks of every GPU: operations and transfers, in order, with shapes.
//
//   STEPCAST_ASSIGN(const StepWork work, step_work(model, layout));
//   work.layer_kinds[0]->forward         norm, projections, attention, ... of one layer on one rank
//   work.chunks[0].runs                  which layers a stage runs, and how many of each kind
//
// Nothing here has a time. predict/ prices the items, step_program.h makes a Program of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/operation.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Which ranks a transfer joins; workload/placement.h says where they sit.
enum class GroupKind : std::uint8_t {
  tensor,
  context,
  expert,
  data,         // data- and context-parallel ranks: they hold the same weights
  expert_data,  // ranks that hold the same experts
  pipeline,     // two neighbouring stages
  embedding,    // first and last stage, which share tied embeddings
  shard,        // hybrid sharding: ranks that hold one copy of the weights together, and
  replicate,    // ranks that hold the same shard
};
inline constexpr int kGroupKindCount = 9;
// Also the label of the group in a Program.
[[nodiscard]] std::string_view to_string(GroupKind group);

// `message` counts as nccl-tests does: all_reduce = buffer of one rank; all_gather = what every rank has in
// the end; reduce_scatter, all_to_all = what every rank has at first; send_receive = what one rank sends.
struct Transfer {
  CollectiveOp op = CollectiveOp::all_reduce;
  GroupKind group = GroupKind::tensor;
  Bytes message;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// What code has to know of an item beyond its work: which result it gives, or whose gradient it is. Nothing decides by names,
// which are for people.
enum class ItemRole : std::uint8_t {
  other,
  cast,        // of the operand of a narrow product
  dequantise,  // of the frozen weight of the product behind it
  qkv,
  attention,
  attention_output,
  ffn_up,
  ffn_down,
  expert_up,
  expert_down,
  expert_counts,  // tokens of every expert, which the host may wait for
  training,       // nothing that generates has it: loss, balancing of experts, biases of single experts
};

struct WorkItem {
  std::string_view name;  // of static storage: "qkv", "attention", "ffn_up"
  std::variant<Operation, Transfer> what;
  std::int64_t count = 1;      // times, back to back
  bool overlaps_next = false;  // a transfer that runs beside the item behind it
  // A transfer that overlaps all work behind it, until something waits for it.
  bool overlaps_remainder = false;
  bool joins = false;  // waits, as all behind it does, for the transfers beside the rest in front of it
  bool weight_gradient = false;  // nothing of the backward pass waits for it
  bool captured = false;         // in a CUDA graph: launched together with what stands before it
  bool host_waits = false;       // before the host launches this one it waits for all that stands before it
  ItemRole role = ItemRole::other;
  double share = 1;  // of the time of a transfer; the rest of it runs elsewhere, or is another item
  [[nodiscard]] const Operation* operation() const { return std::get_if<Operation>(&what); }
  [[nodiscard]] const Transfer* transfer() const { return std::get_if<Transfer>(&what); }
  friend bool operator==(const WorkItem&, const WorkItem&) = default;
};
using WorkList = std::vector<WorkItem>;

// One layer, the embedding or the head, on one rank for one micro-batch.
struct LayerWork {
  WorkList forward;
  WorkList backward;   // with the second forward where the layer is recomputed
  WorkList held_back;  // weight gradients of a layer, under a schedule that runs them later than the backward
  bool recomputed = false;
  // Of this rank, without sharding over data-parallel ranks. A frozen weight in fewer bits counts as the share that its bytes
  // are of one in the type of the computation.
  double dense_parameters = 0;
  double expert_parameters = 0;
  double dequantised_bytes = 0;  // of the largest frozen weight, while its product runs
  // Of these, what is trained: has gradients and optimizer states. Less where the base is frozen.
  double trained_dense_parameters = 0, trained_expert_parameters = 0;
  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};

// Layers that one pipeline rank runs without a break in the model.
struct ChunkWork {
  struct Run {
    std::uint32_t kind = 0;  // of StepWork::layer_kinds
    std::uint32_t count = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };
  std::vector<Run> runs;
  bool has_embedding = false, has_head = false;
  double dense_parameters = 0;  // of this rank: layers, embedding, head
  double expert_parameters = 0;
  double trained_dense_parameters = 0, trained_expert_parameters = 0;
  friend bool operator==(const ChunkWork&, const ChunkWork&) = default;
};

// Layers are shared with the LayerWorkCache they come from, and so with other layouts.
struct StepWork {
  std::vector<std::shared_ptr<const LayerWork>> layer_kinds;
  std::shared_ptr<const LayerWork> embedding;
  std::shared_ptr<const LayerWork> head;  // final norm, logits, loss
  std::vector<ChunkWork> chunks;          // in the order of the model, on stage_of_chunk()
  std::uint32_t stages = 1, virtual_stages = 1, micro_batches = 1;
  Bytes boundary;  // activations between two stages, of one micro-batch and rank
  friend bool operator==(const StepWork&, const StepWork&) = default;
};

// For a layout that passes check(); returns its error otherwise. Many layouts: step_work.h.
[[nodiscard]] Result<StepWork> step_work(const Transformer& model, const Layout& layout);

// The last of several stages holds a copy of the embedding, and both add up their gradients: it is the output matrix, or
// layers there predict further tokens.
[[nodiscard]] inline bool embeds_on_last_stage(const Transformer& model) {
  return model.tied_embeddings || model.n_multi_token_prediction_layers > 0;
}

// Bytes per parameter of what data-parallel ranks exchange.
struct GradientTraffic {
  double reduce_bytes_per_parameter = 4;  // gradients
  double gather_bytes_per_parameter = 2;  // weights
};
[[nodiscard]] GradientTraffic gradient_traffic(const Layout& layout);

// The work of layers, written once for all layouts that compute them alike.
//
//   LayerWorkCache cache;
//   STEPCAST_TRY(step_work(model, layout, cache, one));
//   layout.degrees.pipeline *= 2;                     // other stages of the same layers
//   STEPCAST_TRY(step_work(model, layout, cache, other));
//   one.layer_kinds[0] == other.layer_kinds[0]        // one list for both
//
// A search asks for thousands of layouts that differ in stages, data-parallel ranks, schedule and sharding; of
// layers (LayerKey) it knows some dozens. Not safe to use from several threads at once: one per thread. The
// lists it hands out may be read by any thread and outlive it.

namespace detail {
class LayerLists;
struct KnownLayers;
}  // namespace detail

class LayerWorkCache {
 public:
  LayerWorkCache();
  LayerWorkCache(LayerWorkCache&&) noexcept;
  LayerWorkCache& operator=(LayerWorkCache&&) noexcept;
  ~LayerWorkCache();

  // Layers, embeddings and heads that were written so far.
  [[nodiscard]] std::size_t size() const;

 private:
  friend Status step_work(const Transformer& model, const Layout& layout, LayerWorkCache& cache,
                          StepWork& work);
  // With embedding and head.
  [[nodiscard]] detail::KnownLayers& of(const Transformer& model, const Layout& layout,
                                        const detail::LayerLists& lists);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// step_work(model, layout) with the lists that `cache` has; it keeps those that are new. `work` may be that of another
// layout, whose memory is used again.
[[nodiscard]] Status step_work(const Transformer& model, const Layout& layout, LayerWorkCache& cache,
                               StepWork& work);

}  // namespace stepcast
