// Which sharding of its embedding tables makes the step of a recommendation model shortest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "stepcast/plan/sharding_comparison.h"

namespace stepcast {

struct ShardRequest {
  std::string model = "dlrm-multi-gpu";  // a preset or a file
  std::string tables{};                  // a CSV file instead of the model's tables; empty: those
  // A .npz file with the indices of a batch (docs/dlrm.md); empty: the model's pattern.
  std::string indices{};
  // Instead of `tables`: drawn, by the seed of the choices, from a set with published totals: 2021, 2022, 2021-heavy,
  // 2022-heavy (plan/table_sets.h).
  std::string generate{};
  std::string platform = "dgx-h100";  // name of a shipped platform, or a platform file
  std::int64_t n_gpus = 0;
  std::optional<std::int64_t> gpus_per_node{};
  std::optional<std::int64_t> global_batch{};  // samples, instead of the model's
  ShardingsToCompare choices{};
  std::filesystem::path plan{};        // also the best as a TorchRec plan (JSON); an error where none fits
  std::filesystem::path tables_csv{};  // also the tables as a CSV file
};

}  // namespace stepcast
