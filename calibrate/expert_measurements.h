// Measured expert layers and all-to-alls of tokens (docs/kernels.md lists the columns).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/workload/expert_load.h"

namespace stepcast {

// An expert layer on the busiest rank of its group: sorting of tokens, up, activation, down, weighted sum.
struct MeasuredExpertLayer {
  std::string gpu;
  DType dtype = DType::bf16;
  std::int64_t tokens = 0;  // of all ranks of the group that see the same tokens, before routing
  std::int64_t hidden_size = 0, expert_ffn_size = 0, top_k = 1, n_experts = 1;
  std::int64_t expert_tensor_parallel = 1, expert_parallel = 1;
  bool gated = true;
  ExpertLoad load;
  double busiest = 1;  // visits of this rank relative to the group mean, from the load
  double time_us = 0;
  std::uint32_t line = 0;
};

// Dispatch and combine of tokens among the GPUs of one or more nodes of eight.
struct MeasuredExchange {
  std::string gpu;
  std::int64_t n_nodes = 1, hidden_size = 0, tokens = 0, top_k = 1, n_experts = 1, sms = 20;
  double dispatch_us = 0, combine_us = 0;
  std::uint32_t line = 0;
};

struct ExpertMeasurements {
  std::vector<MeasuredExpertLayer> layers;
  std::vector<MeasuredExchange> exchanges;
};

// Whether the header of a file is one of these.
[[nodiscard]] bool looks_like_expert_layers(std::string_view text);
[[nodiscard]] bool looks_like_expert_exchanges(std::string_view text);

// Adds the rows of a CSV text of either kind. Errors: an unknown header, a cell that is not a number, top-k above the
// number of experts, more ranks than experts.
[[nodiscard]] Status parse_expert_measurements(std::string_view text, const std::string& name,
                                               ExpertMeasurements& out);
[[nodiscard]] Status read_expert_measurements(const std::filesystem::path& file, ExpertMeasurements& out);
// Reads all files of a folder with a matching header; other files are ignored.
[[nodiscard]] Result<ExpertMeasurements> read_expert_measurements_in(const std::filesystem::path& folder);

}  // namespace stepcast
