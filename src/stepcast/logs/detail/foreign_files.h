// What a file is that is no log of a training run, by how it begins and what its lines hold.
#pragma once

#include <string_view>

namespace stepcast::detail {

// "an archive (zip, or weights of PyTorch)"; "binary data" where nothing is known.
[[nodiscard]] std::string_view name_of_binary(std::string_view beginning);
// "the output of nvidia-smi"; empty where nothing is known.
[[nodiscard]] std::string_view name_of_text(std::string_view beginning);

}  // namespace stepcast::detail
