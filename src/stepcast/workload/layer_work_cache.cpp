#include "stepcast/workload/layer_work_cache.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "stepcast/workload/detail/known_layers.h"

namespace stepcast {
namespace {

// All that lists are made from, whatever layer is asked for.
struct ListKey {
  std::size_t model = 0;  // of those that the cache knows
  std::int64_t padded_vocab = 0;
  LayerKey layer;
  friend bool operator==(const ListKey&, const ListKey&) = default;
};

// Of what the layouts of a search differ in; equality looks at the rest.
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

}  // namespace

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
    place->second.embedding = std::make_shared<const LayerWork>(lists.embedding());
    place->second.head = std::make_shared<const LayerWork>(lists.head());
  }
  return place->second;
}

}  // namespace stepcast
