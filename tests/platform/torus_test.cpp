#include "stepcast/platform/torus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_choice.h"

namespace stepcast::torus_test {
namespace {

using ::testing::ElementsAre;

IntraNode torus_of(std::vector<std::uint32_t> axes, std::uint32_t ring_chips) {
  IntraNode torus;
  torus.kind = LinkKind::torus;
  torus.axes = std::move(axes);
  torus.ring_chips = ring_chips;
  return torus;
}

TEST(TorusBox, TakesWholeAxesAndClosesThoseThatCan) {
  const IntraNode cube = torus_of({4, 4, 4}, 4);
  const TorusBox line = torus_box(cube, 4);
  // One ring of four: two links a chip; through its middle two links carry 2 x 2 of 4 chips' pairs each way.
  EXPECT_EQ(line.links, 2);
  EXPECT_DOUBLE_EQ(line.cut_load, 2.0 * 2 / (4 * 2));
  EXPECT_EQ(line.hops, 2);
  EXPECT_EQ(torus_box(cube, 16).links, 4);
  const TorusBox all = torus_box(cube, 64);
  EXPECT_THAT(all.sides, ElementsAre(4, 4, 4));
  EXPECT_EQ(all.links, 6);
  EXPECT_EQ(all.hops, 6);
}

TEST(TorusBox, PartsOfAnAxisAreLines) {
  const IntraNode pod = torus_of({16, 16}, 16);
  // 2 x 16: one axis closes. A slice of 32 is cut as 4 x 8, where none does.
  EXPECT_EQ(torus_box(pod, 32).links, 3);
  EXPECT_THAT(slice_axes(pod, 32), ElementsAre(4, 8));
  EXPECT_EQ(torus_box(torus_of({4, 8}, 16), 32).links, 2);
  EXPECT_EQ(torus_box(pod, 256).links, 4);
  // 7 x 13 fits no other way.
  EXPECT_THAT(torus_box(pod, 91).sides, ::testing::UnorderedElementsAre(7, 13));
  // More in a line than an axis has.
  EXPECT_THAT(torus_box(pod, 17).sides, ElementsAre(17, 1));
}

TEST(TorusBox, SmallerSlicesKeepTheirLinksAndTheirShareOfTheNetwork) {
  const auto choice = platform_for({.name = "tpu7x", .gpus_per_node = 128});
  ASSERT_TRUE(choice.ok()) << choice.error().message();
  const Node& node = choice->platform.node;
  EXPECT_THAT(node.intra.axes, ElementsAre(4, 4, 4));
  EXPECT_EQ(node.intra.devices_per_chip, 2U);
  EXPECT_EQ(node.network->nics_per_node, 64U);
  EXPECT_TRUE(choice->platform.check().ok());
  // An odd number leaves chips half empty: each device has all links of its chip.
  const auto odd = platform_for({.name = "tpu7x", .gpus_per_node = 3});
  ASSERT_TRUE(odd.ok()) << odd.error().message();
  EXPECT_EQ(odd->platform.node.intra.devices_per_chip, std::nullopt);
  EXPECT_DOUBLE_EQ(odd->platform.node.intra.bandwidth_per_gpu.value(), 600e9);
}

}  // namespace
}  // namespace stepcast::torus_test
