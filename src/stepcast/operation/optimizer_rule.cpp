#include "stepcast/operation/optimizer_rule.h"

#include <vector>

#include "stepcast/base/text.h"

namespace stepcast {

std::string_view to_string(OptimizerKind kind) { return rule_of(kind).name; }

// Also std::nullopt: a known optimizer that cannot update embedding tables.
std::optional<OptimizerKind> find_table_optimizer(std::string_view name) {
  const std::optional<OptimizerKind> kind = find_optimizer(name);
  return kind && rule_of(*kind).updates_tables() ? kind : std::nullopt;
}

std::string table_optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRule& rule : kOptimizerRules)
    if (rule.updates_tables()) names.emplace_back(*rule.name);
  return join(names);
}

}  // namespace stepcast
