#include "stepcast/workload/step_work.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "stepcast/base/names.h"
#include "stepcast/workload/detail/end_writer.h"
#include "stepcast/workload/detail/layer_lists.h"
#include "stepcast/workload/detail/narrow_types.h"

namespace stepcast {

namespace {

// With LayerChoices::reference_model, the forward pass of the reference runs before that of the trained
// model.
std::shared_ptr<const LayerWork> with_reference(const Layout& layout, LayerWork work) {
  if (layout.layer.reference_model) {
    const WorkList once = work.forward;
    work.forward.insert(work.forward.end(), once.begin(), once.end());
  }
  return std::make_shared<const LayerWork>(std::move(work));
}

}  // namespace

// Layers, embedding and head of one model and layer key, as far as they were built.
struct detail::KnownLayers {
  std::shared_ptr<const LayerWork> embedding, head;
  std::vector<std::pair<LayerVariant, std::shared_ptr<const LayerWork>>> layers;  // few entries

  [[nodiscard]] const std::shared_ptr<const LayerWork>& layer(const LayerLists& lists,
                                                              const LayerVariant& variant) {
    for (const auto& [known, work] : layers)
      if (known == variant) return work;
    return layers.emplace_back(variant, with_reference(lists.layout(), lists.layer(variant))).second;
  }
};

namespace {

using detail::LayerLists;
using detail::LayerVariant;

// Appends a layer to a chunk, merging it into a run of equal layers.
void add_run(ChunkWork& chunk, std::uint32_t kind, const LayerWork& layer) {
  chunk.dense_parameters += layer.dense_parameters;
  chunk.expert_parameters += layer.expert_parameters;
  chunk.trained_dense_parameters += layer.trained_dense_parameters;
  chunk.trained_expert_parameters += layer.trained_expert_parameters;
  if (!chunk.runs.empty() && chunk.runs.back().kind == kind)
    ++chunk.runs.back().count;
  else
    chunk.runs.push_back({kind, 1});
}

// All inputs of the lists except the layer.
struct ListKey {
  std::size_t model = 0;  // index into the models of the cache
  std::int64_t padded_vocab = 0;
  LayerKey layer;
  friend bool operator==(const ListKey&, const ListKey&) = default;
};

// Hashes the members that differ between layouts of a search; equality compares all.
struct ListKeyHash {
  std::size_t operator()(const ListKey& key) const {
    std::uint64_t state = key.model;
    const auto add = [&](auto value) {
      state = (state ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
      state ^= state >> 32U;
    };
    const LayerKey& layer = key.layer;
    for (const std::int64_t number : {layer.tensor, layer.context, layer.expert, layer.expert_tensor,
                                      layer.micro_batch_sequences, layer.seq_len_tokens}) {
      add(number);
    }
    add(layer.accumulates_gradients);
    add(layer.choices.sequence_parallel);
    add(layer.choices.context_parallel_kind);
    add(layer.choices.attention);
    add(layer.choices.precision.compute);
    add(layer.choices.recompute.kind);
    add(layer.choices.overlap.tensor_parallel);
    return static_cast<std::size_t>(state);
  }
};

// Adds the parameters of embedding and head to a chunk that has them.
void add_ends(const Transformer& model, const Layout& layout, double word_embedding, const StepWork& work,
              ChunkWork& chunk) {
  const auto add = [&](double parameters, double trained) {
    chunk.dense_parameters += parameters;
    chunk.trained_dense_parameters += trained;
  };
  if (chunk.has_embedding) add(work.embedding->dense_parameters, work.embedding->trained_dense_parameters);
  if (!chunk.has_head) return;
  add(work.head->dense_parameters, work.head->trained_dense_parameters);
  // On a separate stage, a tied output matrix is a copy of the embedding; layers that predict further tokens
  // also need one.
  if (embeds_on_last_stage(model) && layout.degrees.pipeline > 1 && !is_v_shaped(layout.pipeline.schedule))
    add(word_embedding, layout.layer.frozen_base ? 0 : word_embedding);
}

}  // namespace

std::string_view to_string(GroupKind group) {
  return name_of<GroupKind::replicate>(
      group,
      {"tensor", "context", "expert", "data", "expert_data", "pipeline", "embedding", "shard", "replicate"},
      "data");
}

Result<StepWork> step_work(const Transformer& model, const Layout& layout) {
  LayerWorkCache cache;
  StepWork work;
  STEPCAST_TRY(step_work(model, layout, cache, work));
  return work;
}

Status step_work(const Transformer& model, const Layout& layout, LayerWorkCache& cache, StepWork& work) {
  STEPCAST_TRY(check(layout, model));
  const LayerLists lists{model, layout};
  const detail::EndWriter ends{lists};
  detail::KnownLayers& known = cache.of(model, layout, lists);

  work.stages = static_cast<std::uint32_t>(layout.degrees.pipeline);
  work.virtual_stages = static_cast<std::uint32_t>(layout.degrees.virtual_stages);
  work.micro_batches = static_cast<std::uint32_t>(layout.micro_batches());
  work.boundary = lists.boundary();
  work.embedding = known.embedding;
  work.head = known.head;

  work.layer_kinds.clear();
  std::vector<LayerVariant> kinds;  // few entries
  const auto kind_of = [&](const LayerVariant& variant) {
    std::uint32_t kind = 0;
    while (kind < kinds.size() && kinds[kind] != variant) ++kind;
    if (kind == kinds.size()) {
      kinds.push_back(variant);
      work.layer_kinds.push_back(known.layer(lists, variant));
    }
    return kind;
  };
  const std::vector<StageChunk> stages = stage_chunks(model, layout);
  work.chunks.resize(stages.size());
  ChunkWork layers;  // layers of the previous chunk, which is `before`
  const StageChunk* before = nullptr;
  for (const StageChunk& stage : stages) {
    const auto add_layer = [&](ChunkWork& to, std::int64_t layer, std::int64_t in_chunk) {
      const std::uint32_t kind = kind_of(lists.variant(layer, in_chunk));
      add_run(to, kind, *work.layer_kinds[kind]);
    };
    // A chunk with equal layers as the previous one is copied. Layers from alike_from() on are all equal.
    const bool again = before != nullptr && before->n_layers == stage.n_layers &&
                       before->first_layer >= lists.alike_from() && stage.first_layer >= lists.alike_from();
    if (!again) {
      layers = {};
      for (std::int64_t i = 0; i < stage.n_layers; ++i) add_layer(layers, stage.first_layer + i, i);
    }
    ChunkWork& chunk = work.chunks[static_cast<std::size_t>(&stage - stages.data())];
    chunk = layers;
    before = &stage;
    // Layers that predict further tokens come after the last layer.
    const std::int64_t further = &stage == &stages.back() ? model.n_multi_token_prediction_layers : 0;
    for (std::int64_t i = 0; i < further; ++i)
      for (const std::int64_t like : layers_of_further_prediction(model))
        add_layer(chunk, like, stage.n_layers + i);
    chunk.has_embedding = &stage == &stages.front();
    chunk.has_head = &stage == &stages.back();
    add_ends(model, layout, ends.word_embedding_parameters(), work, chunk);
  }
  return Ok{};
}

GradientTraffic gradient_traffic(const Layout& layout) {
  GradientTraffic traffic;
  traffic.reduce_bytes_per_parameter = element_size(layout.layer.precision.reduction).value();
  const bool sixteen_bit =
      layout.layer.precision.compute != DType::fp32 && layout.layer.precision.compute != DType::tf32;
  traffic.gather_bytes_per_parameter = sixteen_bit ? 2 : 4;
  if (detail::is_narrow(layout.layer.precision.compute) && layout.layer.precision.fp8.gather_weights)
    traffic.gather_bytes_per_parameter = 1;
  return traffic;
}

struct LayerWorkCache::Impl {
  std::vector<Transformer> models;
  std::unordered_map<ListKey, detail::KnownLayers, ListKeyHash> known;
};

LayerWorkCache::LayerWorkCache() : impl_(std::make_unique<Impl>()) {}
LayerWorkCache::LayerWorkCache(LayerWorkCache&&) noexcept = default;
LayerWorkCache& LayerWorkCache::operator=(LayerWorkCache&&) noexcept = default;
LayerWorkCache::~LayerWorkCache() = default;

std::size_t LayerWorkCache::size() const {
  std::size_t size = 0;
  for (const auto& [key, known] : impl_->known) size += known.layers.size() + 2;
  return size;
}

detail::KnownLayers& LayerWorkCache::of(const Transformer& model, const Layout& layout,
                                        const detail::LayerLists& lists) {
  std::vector<Transformer>& models = impl_->models;
  std::size_t index = 0;
  while (index < models.size() && !(models[index] == model)) ++index;
  if (index == models.size()) models.push_back(model);
  const auto [place, fresh] =
      impl_->known.try_emplace({index, padded_vocab_size(model, layout), layer_key(layout)});
  if (fresh) {
    const detail::EndWriter ends{lists};
    place->second.embedding = with_reference(layout, ends.embedding());
    place->second.head = with_reference(layout, ends.head());
  }
  return place->second;
}

}  // namespace stepcast
