#include "calibrate/protocol_switch.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stepcast::protocol_switch_test {
namespace {

struct Machine {
  Device device;
  Node node;
};

Machine b200() {
  Machine m;
  m.device.vendor = "NVIDIA";
  m.device.architecture = "blackwell";
  m.node.gpus_per_node = 8;
  m.node.intra.kind = LinkKind::nvswitch;
  m.node.intra.bandwidth_per_gpu = BytesPerSecond{900e9};
  return m;
}

CollectiveMeasurements sweep(double octaves) {
  CollectiveMeasurements m;
  m.collective = CollectiveOp::all_gather;
  m.gpus_per_node = m.n_ranks = 8;
  for (double x = 9; x <= 29; x += octaves) m.samples.push_back({std::exp2(x), 10, DType::fp16, 0});
  return m;
}

TEST(ProtocolSwitch, IsWhereTwoEstimatesAreEqual) {
  // 8 B200, all_gather in a ring of 720 GB/s: LL costs 6.6 + 7 x 0.6 us and 7/8 of the message over 282 GB/s, LL128
  // 14 + 7 x 1.9 us over 0.92 x 720 = 662.4 GB/s. Equal at (27.3 - 10.8) us / (0.875 (1 / 282e3 - 1 / 662.4e3)) = 9.26 MB.
  const Machine machine = b200();
  const std::vector<ProtocolSwitch> switches =
      protocol_switches(nccl_fabric(machine.device, machine.node, 8), CollectiveOp::all_gather, 8, 1);
  ASSERT_FALSE(switches.empty());
  EXPECT_EQ(switches[0].before.protocol, NcclProtocol::ll);
  EXPECT_EQ(switches[0].after.protocol, NcclProtocol::ll128);
  EXPECT_NEAR(std::log2(switches[0].message_bytes), std::log2(9.26e6), 0.13);  // one step of the scan
}

TEST(ProtocolSwitch, AsksForSizesBetweenNeighboursThatAreTooFarApart) {
  const Machine machine = b200();
  const std::string command = denser_sizes_command(sweep(1), machine.device, machine.node);
  EXPECT_NE(command.find("all_gather_perf -b 4M -e "), std::string::npos) << command;
  EXPECT_NE(command.find("-f 1.41 -g 8"), std::string::npos) << command;
  EXPECT_EQ(denser_sizes_command(sweep(0.5), machine.device, machine.node), "");
  Machine other = b200();
  other.device.vendor = "AMD";
  EXPECT_EQ(denser_sizes_command(sweep(1), other.device, other.node), "");
}

}  // namespace
}  // namespace stepcast::protocol_switch_test
