// Layers, embedding and head of one model and layer key, as far as they were written.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "stepcast/workload/detail/layer_lists.h"
#include "stepcast/workload/step_work.h"

namespace stepcast::detail {

struct KnownLayers {
  std::shared_ptr<const LayerWork> embedding, head;
  std::vector<std::pair<LayerVariant, std::shared_ptr<const LayerWork>>> layers;  // few

  [[nodiscard]] const std::shared_ptr<const LayerWork>& layer(const LayerLists& lists,
                                                              const LayerVariant& variant) {
    for (const auto& [known, work] : layers)
      if (known == variant) return work;
    return layers.emplace_back(variant, std::make_shared<const LayerWork>(lists.layer(variant))).second;
  }
};

}  // namespace stepcast::detail
