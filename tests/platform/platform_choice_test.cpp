#include "stepcast/platform/platform_choice.h"

#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast::test::platform_choice_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

PlatformChoice chosen(const MachineDescription& machine) {
  auto choice = platform_for(machine);
  EXPECT_TRUE(choice.ok()) << choice.error().message();
  return choice.ok() ? std::move(*choice) : PlatformChoice{};
}

TEST(PlatformChoice, NamesComeFirst) {
  const PlatformChoice dgx = chosen({.name = "DGX H100", .gpu = "H100-SXM5-80GB", .gpus_per_node = 8});
  EXPECT_EQ(dgx.platform.name, "dgx-h100");
  EXPECT_THAT(dgx.note, IsEmpty());
}

// Of the platforms with an A100 of 80 GB and 8 per node, several have 1600 Gb/s and one has 800.
TEST(PlatformChoice, TheStatedNetworkDecides) {
  EXPECT_EQ(chosen({.gpu = "A100-SXM4-80GB", .gpus_per_node = 8, .node_bandwidth_Gbps = 800}).platform.name,
            "8xa100-800g");
  EXPECT_EQ(chosen({.gpu = "A100-SXM4-80GB", .gpus_per_node = 8, .node_bandwidth_Gbps = 1600}).platform.name,
            "dgx-a100");
  EXPECT_EQ(chosen({.gpu = "H100-SXM5-80GB", .gpus_per_node = 8, .network_kind = "RoCE"}).platform.name,
            "roce-8xh100");
  EXPECT_EQ(chosen({.gpu = "H100-SXM5-80GB", .gpus_per_node = 8, .network_kind = "EFA"}).platform.name,
            "cloud-8xh100");
}

TEST(PlatformChoice, AVendorsSystemStandsWhereNothingElseDecides) {
  EXPECT_EQ(chosen({.gpu = "H100-SXM5-80GB", .gpus_per_node = 8}).platform.name, "dgx-h100");
  EXPECT_EQ(chosen({.gpu = "H200-SXM", .gpus_per_node = 8}).platform.name, "dgx-h200");
}

// "NVIDIA H100-PCIe-80GB" holds the names H100 and H100-PCIe; no device is called so in full.
TEST(PlatformChoice, TheLongestNameThatAGpuHoldsDecides) {
  EXPECT_EQ(chosen({.gpu = "NVIDIA H100-PCIe-80GB", .gpus_per_node = 8}).platform.name, "8xh100-pcie-80gb");
  EXPECT_EQ(chosen({.gpu = "NVIDIA H100-SXM-80GB", .gpus_per_node = 8}).platform.name, "dgx-h100");
  EXPECT_EQ(chosen({.gpu = "NVIDIA L40-48GB", .gpus_per_node = 8}).platform.name, "8xl40");
  EXPECT_EQ(chosen({.gpu = "NVIDIA L40S-48GB", .gpus_per_node = 8}).platform.name, "8xl40s");
}

TEST(PlatformChoice, TakesNodeAndBandwidthAsDescribed) {
  const PlatformChoice odd = chosen(
      {.name = "no such cluster", .gpu = "H100-SXM5-80GB", .gpus_per_node = 4, .node_bandwidth_Gbps = 500});
  EXPECT_EQ(odd.platform.node.gpus_per_node, 4U);
  EXPECT_NEAR(odd.platform.node.network->bandwidth_per_node().value(), 500e9 / 8, 1);
  for (const CollectiveCurve& curve : odd.platform.curves) EXPECT_EQ(curve.n_nodes, 1U);
  EXPECT_THAT(odd.note, HasSubstr("'no such cluster' is not shipped"));
  EXPECT_THAT(odd.note, HasSubstr("4 GPUs per node as described"));
  EXPECT_THAT(odd.note, HasSubstr("500 Gb/s between nodes as described"));
  // Within 5 % it is the same network.
  EXPECT_THAT(chosen({.name = "dgx-h100", .node_bandwidth_Gbps = 3100}).note, IsEmpty());
}

TEST(PlatformChoice, PartOfANodeKeepsTheLinksBetweenItsGpus) {
  const auto part = [](std::string_view name, std::int64_t gpus) {
    return chosen({.name = std::string{name}, .gpus_per_node = gpus}).platform;
  };
  for (const std::int64_t gpus : {1, 2, 3, 4, 16}) {
    for (const std::string_view name : {"8xl40s", "dgx-1-v100", "gb200-nvl72", "hpc-4xa100"}) {
      const Platform platform = part(name, gpus);
      EXPECT_EQ(platform.node.gpus_per_node, gpus);
      EXPECT_TRUE(platform.check().ok()) << name << " " << gpus;
    }
  }
  EXPECT_EQ(part("8xl40s", 2).node.intra.gpus_per_pcie_domain, 2U);
  // GPUs 0 to 3 of a DGX-1 are all joined, by six of its links.
  EXPECT_EQ(part("dgx-1-v100", 4).node.intra.links.size(), 6U);
  EXPECT_EQ(part("dgx-1-v100", 1).node.intra.kind, LinkKind::pcie);
}

// Files of measurements call machines by their GPU.
TEST(PlatformChoice, NodesAndRacksTakeTheNamesOfMeasuredFiles) {
  for (const auto& [name, platform] :
       {std::pair{"h100_sxm", "dgx-h100"}, std::pair{"h200_sxm", "dgx-h200"},
        std::pair{"b200_sxm", "dgx-b200"}, std::pair{"b300_sxm", "dgx-b300"}, std::pair{"h20_sxm", "8xh20"},
        std::pair{"h800_sxm", "8xh800"}, std::pair{"a100_sxm", "dgx-a100"}, std::pair{"gb200", "gb200-nvl72"},
        std::pair{"gb300", "gb300-nvl72"}}) {
    const auto found = load_platform(name);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->name, platform);
    EXPECT_GT(found->node.gpus_per_node, 1U) << name;
  }
}

TEST(PlatformChoice, RefusesGpusThatNobodyKnows) {
  const auto unknown = platform_for({.gpu = "Z9000"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message(), HasSubstr("Z9000"));
  const auto nothing = platform_for({});
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message(), HasSubstr("no platform or GPU"));
}

}  // namespace
}  // namespace stepcast::test::platform_choice_test
