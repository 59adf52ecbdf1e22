// Vision towers of models on Hugging Face: from `vision_config`, with the projection in front of the language model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/formats/huggingface.h"
#include "stepcast/workload/network.h"

namespace stepcast::detail {

// `model_type`: of the whole model; `text`: its language model. Nothing, and a sentence in `missing`, of a tower that is
// not modelled or whose sizes are not there. Keys of the tower that change no shape are many and are not looked at.
[[nodiscard]] Result<std::shared_ptr<const VisionTower>> read_tower(
    std::string_view model_type, ObjectReader& vision, ObjectReader& around, const Transformer& text,
    const VisionSettings& settings, std::string& missing);

// A model that is no language model: ViT, ResNet, T5 by their config.json. Nothing: another type.
[[nodiscard]] Result<std::optional<Transformer>> read_network(std::string_view model_type, ObjectReader& keys,
                                                              const std::string& name,
                                                              const VisionSettings& settings);

}  // namespace stepcast::detail
