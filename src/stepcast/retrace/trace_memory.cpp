#include "stepcast/retrace/trace_memory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace stepcast {
namespace {

// The lifetime of one storage, in positions of the operator order.
struct StorageUse {
  std::int64_t bytes = 0;
  std::size_t first = 0, last = 0;  // positions in the operator order
  std::size_t last_forward = 0;
  bool there_before = false;  // read before it was written
};

// The positions of a recomputed block in the operator order.
struct BlockPlaces {
  std::size_t first = 0, last = 0;  // forward
  std::size_t backward = 0;         // position of its first backward operator
};

// The positions of all blocks with forward and backward in the trace; others are skipped.
std::vector<BlockPlaces> places_of(const ExecutionTrace& trace, std::span<const std::size_t> order,
                                   std::span<const SequenceRange> blocks) {
  std::vector<BlockPlaces> places;
  for (const SequenceRange& block : blocks) {
    BlockPlaces at{order.size(), 0, order.size()};
    for (std::size_t place = 0; place < order.size(); ++place) {
      const EtNode& node = trace.nodes[order[place]];
      if (node.sequence_number < block.first || node.sequence_number >= block.end) continue;
      if (node.forward_thread != 0) {
        at.backward = std::min(at.backward, place);
      } else {
        at.first = std::min(at.first, place);
        at.last = std::max(at.last, place);
      }
    }
    if (at.first < at.last && at.last < at.backward && at.backward < order.size()) places.push_back(at);
  }
  return places;
}

}  // namespace

TraceMemory trace_memory(const ExecutionTrace& trace, std::span<const SequenceRange> recomputed) {
  std::vector<std::size_t> order(trace.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return trace.nodes[a].order < trace.nodes[b].order; });
  std::map<std::int64_t, StorageUse> storages;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const EtNode& node = trace.nodes[order[place]];
    const auto use = [&](const TensorUse& tensor, bool reads) {
      // Tensors without a storage or size cannot be counted.
      if (!tensor.on_gpu || tensor.storage <= 0 || tensor.elements <= 0 || tensor.element_bytes <= 0) return;
      const auto [found, fresh] = storages.try_emplace(tensor.storage);
      StorageUse& storage = found->second;
      if (fresh) {
        storage.first = place;
        storage.there_before = reads;
      }
      storage.last = place;
      if (node.forward_thread == 0) storage.last_forward = place;
      const double bytes =
          (static_cast<double>(tensor.offset) + static_cast<double>(tensor.elements)) * tensor.element_bytes;
      if (bytes > 0 && bytes < 1e15)
        storage.bytes = std::max(storage.bytes, static_cast<std::int64_t>(bytes));
    };
    for (const TensorUse& tensor : trace.inputs(node)) use(tensor, true);
    for (const TensorUse& tensor : trace.outputs(node)) use(tensor, false);
  }
  TraceMemory memory;
  std::set<std::int64_t> weights;
  for (const auto& [id, storage] : storages) {
    if (!storage.there_before) continue;
    // Sizes of storages that existed before the step; gradients are recognised by them.
    weights.insert(storage.bytes);
    memory.persistent = memory.persistent + Bytes{static_cast<double>(storage.bytes)};
  }
  const std::vector<BlockPlaces> blocks = places_of(trace, order, recomputed);
  std::map<std::size_t, double> change;  // [position] bytes allocated there minus bytes freed
  for (const auto& [id, storage] : storages) {
    if (storage.there_before) continue;
    const auto bytes = static_cast<double>(storage.bytes);
    if (weights.contains(storage.bytes)) {
      memory.gradients = memory.gradients + Bytes{bytes};
    } else {
      change[storage.first] += bytes;
      change[storage.last + 1] -= bytes;
      const auto in = std::find_if(blocks.begin(), blocks.end(), [&](const BlockPlaces& block) {
        return storage.first >= block.first && storage.last_forward <= block.last &&
               storage.last >= block.backward;
      });
      // Freed after the last use in the forward, and allocated again at the start of the backward of the block.
      if (in != blocks.end()) {
        change[storage.last_forward + 1] -= bytes;
        change[in->backward] += bytes;
      }
    }
  }
  double now = 0, most = 0;
  for (const auto& [place, bytes] : change) {
    now += bytes;
    most = std::max(most, now);
  }
  memory.activations = Bytes{most};
  return memory;
}

}  // namespace stepcast
