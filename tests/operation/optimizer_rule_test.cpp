#include "stepcast/operation/optimizer_rule.h"

#include <type_traits>

#include <gtest/gtest.h>

namespace stepcast::optimizer_rule_test {
namespace {

// A row cannot leave out a member: none has a default.
static_assert(!std::is_default_constructible_v<OptimizerRule>);
static_assert(!std::is_default_constructible_v<MatrixRule>);

TEST(OptimizerRule, EveryKindHasARowAndAName) {
  for (const OptimizerRule& rule : kOptimizerRules) {
    EXPECT_EQ(to_string(rule.kind), *rule.name);
    EXPECT_EQ(find_optimizer(*rule.name), *rule.kind);
    EXPECT_GT(*rule.flops_per_parameter, 0);
    // What updates the rest works element by element.
    EXPECT_FALSE(rule_of(rule.rest).matrix->takes_matrices());
    EXPECT_EQ(rule.matrix->takes_matrices(), *rule.rest != *rule.kind);
  }
  EXPECT_FALSE(find_optimizer("shampo"));
}

TEST(OptimizerRule, TablesAreUpdatedElementByElement) {
  EXPECT_EQ(table_optimizer_names(), "sgd, momentum_sgd, adam, adamw, adagrad, lamb");
  EXPECT_EQ(rule_of(OptimizerKind::adagrad).table_state().bytes_per_row, 4);
  // addcmul, sqrt, add and addcdiv, as in the 8-rank DLRM trace.
  EXPECT_EQ(*rule_of(OptimizerKind::adagrad).kernels_unfused, 4);
  EXPECT_FALSE(find_table_optimizer("muon"));
}

}  // namespace
}  // namespace stepcast::optimizer_rule_test
