#include "stepcast/operation/detail/shape_traits.h"

#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::shape_traits_test {
namespace {

// A value that is not the one of `member`.
template <class Value>
Value another(Value value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return !value;
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<Value>(static_cast<int>(value) + 1);
  } else {
    return value + 3;
  }
}

template <class Shape>
void expect_every_field_tells_apart() {
  const Shape shape{};
  detail::for_each_field(shape, [&](const auto& field) {
    Shape changed = shape;
    changed.*field.member = another(shape.*field.member);
    const Operation before{shape, DType::fp16}, after{changed, DType::fp16};
    EXPECT_NE(before, after) << field.name;
    EXPECT_NE(hash_of(before), hash_of(after)) << field.name;
  });
}

template <class... Shapes>
void expect_of_all(const std::variant<Shapes...>& /*any*/) {
  (expect_every_field_tells_apart<Shapes>(), ...);
}

TEST(ShapeFields, TellOperationsApart) { expect_of_all(decltype(Operation::shape){}); }

TEST(ShapeFields, NameTheFirstThatIsTooSmall) {
  EXPECT_EQ(shape_problem({GemmShape{.m = 4, .n = -1, .k = -2}, DType::fp16}), "n = -1 (must be at least 0)");
  EXPECT_EQ(shape_problem({OptimizerShape{.parameters = 5, .tensors = 0}, DType::fp32}),
            "tensors = 0 (must be at least 1)");
  EXPECT_EQ(shape_problem({AttentionShape{.batch = 1,
                                          .query_length = 8,
                                          .key_length = 8,
                                          .heads = 6,
                                          .key_value_heads = 4,
                                          .head_dim = 64},
                           DType::fp16}),
            "key_value_heads = 4 (must divide heads = 6)");
  EXPECT_EQ(
      shape_problem(
          {LookupShape{.tables = 1, .rows = 9, .dim = 4, .bags = 2, .distinct_fraction = 1.5F}, DType::fp32}),
      "distinct_fraction = 1.5 (must be at most 1)");
}

}  // namespace
}  // namespace stepcast::shape_traits_test
