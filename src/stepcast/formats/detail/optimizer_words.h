// How other software spells the optimizers of operation/optimizer_rule.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "stepcast/operation/operation.h"

namespace stepcast::detail {

using OptimizerWord = std::pair<std::string_view, OptimizerKind>;

// optimizer.type of DeepSpeed.
inline constexpr OptimizerWord kDeepSpeedOptimizers[] = {
    {"Adam", OptimizerKind::adam},       {"AdamW", OptimizerKind::adamw},
    {"FusedAdam", OptimizerKind::adamw}, {"DeepSpeedCPUAdam", OptimizerKind::adamw},
    {"Lamb", OptimizerKind::lamb},       {"SGD", OptimizerKind::momentum_sgd},
    {"Muon", OptimizerKind::muon}};
// optimizer.name of TorchTitan: classes of PyTorch and of packages beside it.
inline constexpr OptimizerWord kTorchTitanOptimizers[] = {{"Adam", OptimizerKind::adam},
                                                          {"AdamW", OptimizerKind::adamw},
                                                          {"Muon", OptimizerKind::muon},
                                                          {"DistributedShampoo", OptimizerKind::shampoo},
                                                          {"SOAP", OptimizerKind::soap}};

[[nodiscard]] inline std::optional<OptimizerKind> find_optimizer(std::span<const OptimizerWord> words,
                                                                 std::string_view text) {
  for (const auto& [word, kind] : words) {
    if (word == text) return kind;
  }
  return std::nullopt;
}
// "Adam, AdamW, ...".
[[nodiscard]] inline std::string listed(std::span<const OptimizerWord> words) {
  std::string out;
  for (const auto& [word, kind] : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

}  // namespace stepcast::detail
