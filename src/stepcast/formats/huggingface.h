// Hugging Face config.json -> Transformer.
//
//   STEPCAST_ASSIGN(const Transformer model, read_huggingface_config("config.json"));
//
// The key `model_type` chooses the family. Every key of the file must be understood: it shapes the model, or
// it is known not to (token ids, generation, initialisation...), or the file is refused by the name of the
// key. Keys that are missing have the defaults of the transformers library.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// `name` stands for the text in errors and names the model. `ignored_keys` are read as if they were not there,
// "outer.inner" for one in an object; one that is not there is an error. `notes` takes sentences on what was passed over:
// towers beside the language model, a quantized checkpoint, parts without measured kernels.
[[nodiscard]] Result<Transformer> parse_huggingface_config(std::string_view text, const std::string& name,
                                                           std::span<const std::string> ignored_keys = {},
                                                           std::vector<std::string>* notes = nullptr,
                                                           const VisionSettings& vision = {});

// A config.json, or the folder that holds one. The model is named after the folder.
[[nodiscard]] Result<Transformer> read_huggingface_config(const std::filesystem::path& path,
                                                          std::span<const std::string> ignored_keys = {},
                                                          std::vector<std::string>* notes = nullptr,
                                                          const VisionSettings& vision = {});

// Values of model_type that are understood.
[[nodiscard]] std::vector<std::string> huggingface_model_types();

}  // namespace stepcast
