// Reads Hugging Face's config.json into a Transformer.
//
//   STEPCAST_ASSIGN(const Transformer model, read_huggingface_config("config.json"));
//
// The key `model_type` selects the family. Every key of the file must be known: it shapes the model, or it is
// known not to (token ids, generation, initialisation, ...). Other keys are errors that name the key. Missing
// keys have the defaults of the transformers library.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// `name` denotes the text in errors and is the name of the model. `ignored_keys` ("outer.inner" for one in an
// object) are treated as missing; they must exist. `notes` receives sentences about parts that were left out:
// towers, quantised checkpoints, parts without measured kernels.
[[nodiscard]] Result<Transformer> parse_huggingface_config(std::string_view text, const std::string& name,
                                                           std::span<const std::string> ignored_keys = {},
                                                           std::vector<std::string>* notes = nullptr,
                                                           const VisionSettings& vision = {});

// Reads a config.json, or a folder with one. The model has the name of the folder.
[[nodiscard]] Result<Transformer> read_huggingface_config(const std::filesystem::path& path,
                                                          std::span<const std::string> ignored_keys = {},
                                                          std::vector<std::string>* notes = nullptr,
                                                          const VisionSettings& vision = {});

// All values of model_type that can be read.
[[nodiscard]] std::vector<std::string> huggingface_model_types();

}  // namespace stepcast
