// Reads vision towers of Hugging Face models from `vision_config`, including the projector to the language model.
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

// Reads the tower of a model. `model_type`: type of the whole model; `text`: its language model. Null, with a
// sentence in `missing`, if the tower is not modelled or its sizes are incomplete. Unknown keys of a tower
// are ignored, because towers have many that do not affect shapes.
[[nodiscard]] Result<std::shared_ptr<const VisionTower>> read_tower(
    std::string_view model_type, ObjectReader& vision, ObjectReader& around, const Transformer& text,
    const VisionSettings& settings, std::string& missing);

// Reads a model other than a language model (ViT, ResNet, encoder-decoders) from its config.json. Nothing:
// another model type.
[[nodiscard]] Result<std::optional<Transformer>> read_network(std::string_view model_type, ObjectReader& keys,
                                                              const std::string& name,
                                                              const VisionSettings& settings);

}  // namespace stepcast::detail
