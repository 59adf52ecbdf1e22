#include "stepcast/cost/related_systems.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stepcast/cost/collective_model.h"
#include "stepcast/cost/nccl_choice.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::related_systems_test {
namespace {

Platform node_of(const std::string& architecture, double GBps) {
  Platform platform;
  platform.device.name = "X";
  platform.device.vendor = "NVIDIA";
  platform.device.architecture = architecture;
  platform.node.gpus_per_node = 8;
  platform.node.intra.kind = LinkKind::nvswitch;
  platform.node.intra.bandwidth_per_gpu = BytesPerSecond{GBps * 1e9};
  return platform;
}

RelatedShape shape(const std::string& architecture, double ln_ratio) {
  RelatedShape s;
  s.architecture = architecture;
  s.links = LinkKind::nvswitch;
  s.op = CollectiveOp::all_reduce;
  s.n_ranks = 8;
  s.ln_ratio.fill(ln_ratio);
  return s;
}

TEST(RelatedSystems, FamiliesAndTheBareEstimateShareTheMean) {
  RelatedSystems related;
  related.shapes = {shape("ampere", 0.3), shape("hopper", -0.06)};
  const auto ln_ratio = [&](const Platform& p, double bytes) {
    const NcclFabric fabric = nccl_fabric(p.device, p.node, 8);
    return related.curve(p.device, p.node, CollectiveOp::all_reduce, 8)->ln_time_us(std::log2(bytes)) -
           std::log(nccl_estimate(fabric, CollectiveOp::all_reduce, 8, 1, bytes).time_us);
  };
  // Two other families of weight 1 and the bare estimate of weight 0.5: (0.3 - 0.06 + 0) / 2.5.
  EXPECT_NEAR(ln_ratio(node_of("blackwell", 900), 0x1p10), 0.096, 1e-6);
  // Its own family has weight 16: (16 x 0.3 - 0.06 + 0) / 17.5.
  EXPECT_NEAR(ln_ratio(node_of("ampere", 300), 0x1p10), 4.74 / 17.5, 1e-6);
  EXPECT_TRUE(related.has_family(node_of("ampere", 300).device, node_of("ampere", 300).node));
  const Platform unknown = node_of("blackwell", 900);
  EXPECT_FALSE(related.curve(unknown.device, unknown.node, CollectiveOp::all_gather, 8).has_value());
}

TEST(RelatedSystems, SwitchesThatAddUpSayNothingOfRings) {
  RelatedSystems related;
  related.shapes = {shape("hopper", 0.4)};
  related.shapes[0].nvls_from = 12;  // 2^12 ns on the links: 1 MB over 240 GB/s
  const Platform ampere = node_of("ampere", 300);
  const auto ln_ratio = [&](double bytes) {
    const NcclFabric fabric = nccl_fabric(ampere.device, ampere.node, 8);
    return related.curve(ampere.device, ampere.node, CollectiveOp::all_reduce, 8)
               ->ln_time_us(std::log2(bytes)) -
           std::log(nccl_estimate(fabric, CollectiveOp::all_reduce, 8, 1, bytes).time_us);
  };
  // Rings on both below: (0.4 + 0) / 1.5. Beyond, a tenth of the share: 0.1 x 0.4 / 0.6.
  EXPECT_NEAR(ln_ratio(0x1p10), 0.4 / 1.5, 1e-6);
  EXPECT_NEAR(ln_ratio(0x1p28), 0.04 / 0.6, 1e-6);
  // Where their rings were measured these speak, with the whole share: 0.1 / 1.5.
  related.shapes.push_back(shape("hopper", 0.1));
  related.shapes[1].op = CollectiveOp::all_gather;
  EXPECT_NEAR(ln_ratio(0x1p10), 0.4 / 1.5, 1e-6);
  EXPECT_NEAR(ln_ratio(0x1p28), 0.1 / 1.5, 1e-6);
}

TEST(RelatedSystems, APairTakesAStartUpAndTheTimeOnItsLinks) {
  RelatedSystems related;
  related.shapes = {shape("ampere", 0.2), shape("ampere", 0.1)};
  related.shapes[0].op = CollectiveOp::all_to_all;
  related.shapes[1].op = CollectiveOp::all_gather;
  for (RelatedShape& s : related.shapes) s.n_ranks = 2;
  const Platform p = node_of("ampere", 300);
  const auto us = [&](CollectiveOp op, double bytes) {
    return std::exp(related.curve(p.device, p.node, op, 2)->ln_time_us(std::log2(bytes)));
  };
  // 1 GiB over 240 GB/s, longer by exp(16 x 0.1 / 16.5), and as many microseconds as an all_to_all of 256 B.
  const double transfer_us = 0x1p30 / 240e3 * std::exp(1.6 / 16.5);
  EXPECT_NEAR(us(CollectiveOp::send_receive, 0x1p30), transfer_us + us(CollectiveOp::all_to_all, 256), 0.01);
  related.shapes.pop_back();
  EXPECT_FALSE(related.curve(p.device, p.node, CollectiveOp::send, 2).has_value());
}

TEST(RelatedSystems, ReadsWhatItWrites) {
  RelatedSystems related;
  related.shapes = {shape("ampere", 0.25)};
  related.shapes[0].nvls_from = 11.5;
  related.with_family.p10.fill(-0.1);
  related.without_family.p90.fill(0.4);
  const auto back = RelatedSystems::read(related.write());
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->write(), related.write());
  EXPECT_EQ(back->shapes[0].ln_ratio, related.shapes[0].ln_ratio);
}

TEST(RelatedSystems, SaysWhatCannotBeRead) {
  const auto message_of = [](const std::string& json) {
    const auto value = parse_json(json, "x.json");
    const auto related = RelatedSystems::read(*value);
    return related.ok() ? std::string{} : related.error().message();
  };
  EXPECT_NE(message_of("{}").find("`shapes` is not a list"), std::string::npos);
  EXPECT_NE(message_of(R"({"shapes": [{"architecture": "a", "links": "rope"}]})").find("collective"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"shapes": [{"architecture": "a", "links": "rope", "collective": "all_reduce"}]})")
                .find("nvlink_mesh"),
            std::string::npos);
  RelatedSystems far;
  far.shapes = {shape("ampere", 300)};
  EXPECT_NE(message_of(compact_json(far.write())).find("`ln_ratio`, found 300"), std::string::npos)
      << message_of(compact_json(far.write()));
  EXPECT_NE(message_of(R"({"shapes": []})").find("`with_family` is missing"), std::string::npos);
  EXPECT_NE(message_of(R"({"shapes": [{"architecture": "a", "links": "pcie", "collective": "all_reduce",
                          "n_ranks": 1, "n_machines": 1}]})")
                .find("2 to 65536 ranks"),
            std::string::npos);
}

TEST(RelatedSystems, ShippedPlatformsWithoutCurvesAnswerFromThem) {
  const auto platform = load_platform("8xl40s");
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  const auto resolved = CollectiveModel{*platform}.resolve({.op = CollectiveOp::all_gather, .n_ranks = 8});
  ASSERT_TRUE(resolved.ok());
  EXPECT_NE(resolved->how.find("from measured nodes"), std::string::npos) << resolved->how;
  // Nobody answers at the bound of the links: 7/8 of 256 MiB at the nominal rate.
  const double bound_us = 0.875 * 0x1p28 / platform->node.intra.bandwidth_per_gpu.value() * 1e6;
  EXPECT_GT(resolved->curve.at(Bytes{0x1p28}).time.value(), bound_us);
}

TEST(CollectiveModel, FarBeyondMeasuredRanksGrowsAsNcclEstimates) {
  const auto platform = load_platform("gb200-nvl72");
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  const CollectiveModel model{*platform};
  const auto time_us = [&](std::uint32_t ranks, double bytes) {
    return model.resolve({.op = CollectiveOp::all_reduce, .n_ranks = ranks})
        ->curve.at(Bytes{bytes})
        .time.value();
  };
  // Measured on 2 and 4 GPUs: 8 are scaled, 64 follow NCCL's estimate from there.
  const NcclFabric fabric = nccl_fabric(platform->device, platform->node, 64);
  const auto estimated = [&](std::uint32_t ranks, double bytes) {
    return nccl_estimate(fabric, CollectiveOp::all_reduce, ranks, 1, bytes).time_us;
  };
  // (Between, switch points of the two lie apart and the curve is kept from falling.)
  for (const double bytes : {0x1p10, 0x1p30}) {
    EXPECT_NEAR(time_us(64, bytes) / time_us(8, bytes), estimated(64, bytes) / estimated(8, bytes), 0.03);
  }
}

}  // namespace
}  // namespace stepcast::related_systems_test
