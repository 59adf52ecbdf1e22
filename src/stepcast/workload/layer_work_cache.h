// The work of layers, written once for all layouts that compute them alike.
//
//   LayerWorkCache cache;
//   STEPCAST_ASSIGN(const StepWork one, step_work(model, layout, cache));
//   layout.degrees.pipeline *= 2;                     // other stages of the same layers
//   STEPCAST_ASSIGN(const StepWork other, step_work(model, layout, cache));
//   one.layer_kinds[0] == other.layer_kinds[0]        // one list for both
//
// A search asks for thousands of layouts that differ in stages, data-parallel ranks, schedule and sharding; of
// layers (LayerKey) it knows some dozens. Not safe to use from several threads at once: one per thread. The
// lists it hands out may be read by any thread and outlive it.
#pragma once

#include <cstddef>
#include <memory>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {
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
  friend Result<StepWork> step_work(const Transformer& model, const Layout& layout, LayerWorkCache& cache);
  // With embedding and head.
  [[nodiscard]] detail::KnownLayers& of(const Transformer& model, const Layout& layout,
                                        const detail::LayerLists& lists);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// step_work(model, layout) with the lists that `cache` has; it keeps those that are new.
[[nodiscard]] Result<StepWork> step_work(const Transformer& model, const Layout& layout,
                                         LayerWorkCache& cache);

}  // namespace stepcast
