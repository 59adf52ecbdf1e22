// Names of optimizers in other software, for the kinds of operation/optimizer_rule.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "stepcast/operation/operation.h"

namespace stepcast::detail {

using OptimizerWord = std::pair<std::string_view, OptimizerKind>;

// Values of optimizer.type in DeepSpeed configs.
inline constexpr OptimizerWord kDeepSpeedOptimizers[] = {
    {"Adam", OptimizerKind::adam},       {"AdamW", OptimizerKind::adamw},
    {"FusedAdam", OptimizerKind::adamw}, {"DeepSpeedCPUAdam", OptimizerKind::adamw},
    {"Lamb", OptimizerKind::lamb},       {"SGD", OptimizerKind::momentum_sgd},
    {"Muon", OptimizerKind::muon}};
// Values of optimizer.name in TorchTitan configs: classes of PyTorch and of additional packages.
inline constexpr OptimizerWord kTorchTitanOptimizers[] = {{"Adam", OptimizerKind::adam},
                                                          {"AdamW", OptimizerKind::adamw},
                                                          {"Muon", OptimizerKind::muon},
                                                          {"DistributedShampoo", OptimizerKind::shampoo},
                                                          {"SOAP", OptimizerKind::soap}};

// The optimizer with this name; nothing if it is unknown. Case matters.
[[nodiscard]] inline std::optional<OptimizerKind> find_optimizer(std::span<const OptimizerWord> words,
                                                                 std::string_view text) {
  for (const auto& [word, kind] : words) {
    if (word == text) return kind;
  }
  return std::nullopt;
}
// All names for error messages: "Adam, AdamW, ...".
[[nodiscard]] inline std::string listed(std::span<const OptimizerWord> words) {
  std::string out;
  for (const auto& [word, kind] : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

}  // namespace stepcast::detail
