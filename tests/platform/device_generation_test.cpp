#include "stepcast/platform/device_generation.h"

#include <gtest/gtest.h>

namespace stepcast::device_generation_test {
namespace {

Device of(std::string architecture) {
  Device device;
  device.architecture = std::move(architecture);
  return device;
}

TEST(DeviceGeneration, HasARowForEveryArchitectureOfThePlatforms) {
  for (const char* name : {"pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna",
                           "cdna2", "cdna3", "cdna4"}) {
    EXPECT_EQ(generation_of(of(name)).architecture, name);
  }
  EXPECT_EQ(generation_of(of("Hopper")).nccl, NcclGeneration::hopper);
  EXPECT_TRUE(generation_of(of("rubin")).architecture.empty());
  EXPECT_FALSE(generation_of(of("volta")).bf16_units);
  EXPECT_TRUE(generation_of(of("volta")).int8_dots);
  EXPECT_TRUE(generation_of(of("blackwell")).asynchronous_products);
}

}  // namespace
}  // namespace stepcast::device_generation_test
