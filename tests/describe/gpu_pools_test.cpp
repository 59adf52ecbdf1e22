#include "stepcast/describe/gpu_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::gpu_pools_test {
namespace {

using testing::HasSubstr;

TEST(GpuPools, AreCountsOfPlatformsInZones) {
  const auto pools = parse_gpu_pools("64x8xh100-96gb-500w@east+32xmine.json");
  ASSERT_TRUE(pools.ok()) << pools.error().message();
  ASSERT_EQ(pools->size(), 2U);
  EXPECT_EQ((*pools)[0], (GpuPool{64, "8xh100-96gb-500w", "east"}));
  EXPECT_EQ((*pools)[1], (GpuPool{32, "mine.json", ""}));
  EXPECT_TRUE(names_gpu_pools("64xh100"));
  EXPECT_FALSE(names_gpu_pools("64"));
  EXPECT_FALSE(names_gpu_pools("xh100"));
}

TEST(GpuPools, RefuseWhatIsNone) {
  for (const char* text :
       {"", "64", "64x", "64xh100+", "0xh100", "9999999xh100", "64xh100@", "h100x64", "-1xh100"})
    EXPECT_FALSE(parse_gpu_pools(text).ok()) << text;
}

TEST(GpuZones, HaveAPriceABandwidthAndALatency) {
  const auto zone = parse_gpu_zone("east:price=2.5,bandwidth=400Gbps,latency=1.5ms");
  ASSERT_TRUE(zone.ok()) << zone.error().message();
  EXPECT_EQ(zone->name, "east");
  EXPECT_EQ(zone->price_per_gpu_hour, 2.5);
  EXPECT_EQ(zone->bandwidth, BytesPerSecond{50e9});
  EXPECT_EQ(zone->latency, Microseconds{1500});
  for (const char* text : {"east", "east:", "east:price=-1", "east:price=x", "east:bandwidth=10GB",
                           "east:cost=1", "east:latency=3", "east:latency=-3ms", "east:price=1,price=2"})
    EXPECT_FALSE(parse_gpu_zone(text).ok()) << text;
  EXPECT_THAT(parse_gpu_zone("price=2.5").error().message(), HasSubstr("without its zone"));
}

TEST(GpuZones, BelongToPools) {
  const std::vector<GpuPool> pools{{8, "a", "east"}, {8, "b", "west"}};
  const GpuZone east{"east", 2.0, BytesPerSecond{1e9}, {}}, west{"west", 1.0, BytesPerSecond{1e9}, {}};
  EXPECT_TRUE(check_gpu_zones(pools, std::vector{east, west}).ok());
  EXPECT_THAT(check_gpu_zones(pools, std::vector{east}).error().message(), HasSubstr("the zone west"));
  EXPECT_THAT(
      check_gpu_zones(pools, std::vector{east, GpuZone{"west", {}, west.bandwidth, {}}}).error().message(),
      HasSubstr("without a price"));
  EXPECT_THAT(check_gpu_zones(pools, std::vector{east, GpuZone{"west", 1.0, {}, {}}}).error().message(),
              HasSubstr("without a bandwidth"));
  EXPECT_THAT(
      check_gpu_zones(pools, std::vector{east, west, GpuZone{"north", 1.0, {}, {}}}).error().message(),
      HasSubstr("which has no pool"));
  EXPECT_THAT(check_gpu_zones(pools, {}).error().message(), HasSubstr("without a --zone"));
  EXPECT_TRUE(check_gpu_zones(std::vector<GpuPool>{{8, "a", ""}}, {}).ok());
}

}  // namespace
}  // namespace stepcast::gpu_pools_test
