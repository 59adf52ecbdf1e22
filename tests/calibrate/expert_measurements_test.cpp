#include "calibrate/expert_measurements.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "calibrate/expert_fit.h"

namespace stepcast::expert_measurements_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLayers =
    "gpu,dtype,n_tokens,hidden_size,expert_ffn_size,top_k,n_experts,expert_tensor_parallel,expert_parallel,"
    "token_distribution,time_us,kernel,source\n";

TEST(ExpertMeasurements, ReadLayers) {
  ExpertMeasurements out;
  const std::string text = std::string{kLayers} +
                           "H100-SXM5-80GB,bf16,512,4096,1536,8,128,2,8,power_law_1.2,90.1,x_nongated,s\n"
                           "H100-SXM5-80GB,nvfp4,512,4096,1536,8,128,1,8,balanced,80,x,s\n";
  ASSERT_TRUE(parse_expert_measurements(text, "a.csv", out).ok());
  ASSERT_EQ(out.layers.size(), 2U);
  EXPECT_FALSE(out.layers[0].gated);
  EXPECT_DOUBLE_EQ(out.layers[0].load.power_law, 1.2);
  EXPECT_GT(out.layers[0].busiest, 1);
  EXPECT_EQ(out.layers[1].dtype, DType::fp4);
  EXPECT_DOUBLE_EQ(out.layers[1].busiest, 1);
}

TEST(ExpertMeasurements, SayWhatIsWrong) {
  const auto error = [](const std::string& row) {
    ExpertMeasurements out;
    const Status status = parse_expert_measurements(kLayers + row, "a.csv", out);
    return status.ok() ? std::string{} : status.error().message();
  };
  EXPECT_THAT(error("H100,bf16,512,4096,1536,9,8,1,1,balanced,9,x,s\n"), HasSubstr("top_k"));
  EXPECT_THAT(error("H100,bf16,512,4096,1536,8,128,1,7,balanced,9,x,s\n"), HasSubstr("n_experts"));
  EXPECT_THAT(error("H100,bf16,512,4096,1536,8,128,1,8,skewed,9,x,s\n"), HasSubstr("token_distribution"));
  EXPECT_THAT(error("H100,bf16,512,4096,1536,8,128,1,8,balanced,0,x,s\n"), HasSubstr("time_us"));
  ExpertMeasurements out;
  EXPECT_FALSE(parse_expert_measurements("a,b\n1,2\n", "a.csv", out).ok());
}

TEST(ExpertFit, FindsTheRatesThatMadeTheTimes) {
  const Result<Platform> platform = load_platform("h100-sxm5-80gb");
  ASSERT_TRUE(platform.ok());
  ExpertRates truth;
  truth.dtype = DType::bf16;
  truth.startup_us = 25;
  truth.arithmetic_share = 0.8;
  truth.memory_share = 0.7;
  const DeviceFigures figures = figures_of(platform->device);
  std::vector<MeasuredExpertLayer> rows;
  for (const std::int64_t tokens : {512, 2048, 8192, 16384}) {
    for (const std::int64_t hidden : {2048, 4096, 7168}) {
      for (const std::int64_t ranks : {1, 8, 32}) {
        MeasuredExpertLayer m;
        m.tokens = tokens;
        m.hidden_size = hidden;
        m.expert_ffn_size = hidden / 4;
        m.top_k = 8;
        m.n_experts = 128;
        m.expert_parallel = ranks;
        m.time_us = predicted_layer_us(truth, figures, m);
        rows.push_back(m);
      }
    }
  }
  std::vector<const MeasuredExpertLayer*> pointers;
  for (const MeasuredExpertLayer& m : rows) pointers.push_back(&m);
  const ExpertRates fitted = fit_expert_rates(pointers, platform->device, DType::bf16);
  double error = 0;
  for (const MeasuredExpertLayer& m : rows) {
    error += std::abs(std::log(predicted_layer_us(fitted, figures, m) / m.time_us));
  }
  EXPECT_LT(error / static_cast<double>(rows.size()), 0.05);
}

TEST(ExchangeFit, FindsTheRatesThatMadeTheTimes) {
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  ExchangeRates truth;
  std::vector<MeasuredExchange> rows;
  for (const std::int64_t tokens : {128, 1024, 8192, 65536}) {
    for (const std::int64_t hidden : {2048, 7168}) {
      for (const std::int64_t sms : {8, 20}) {
        MeasuredExchange m;
        m.tokens = tokens;
        m.hidden_size = hidden;
        m.top_k = 8;
        m.n_experts = 256;
        m.sms = sms;
        m.dispatch_us = predicted_exchange_us(truth, platform->node, m);
        m.combine_us = 1;
        rows.push_back(m);
      }
    }
  }
  std::vector<const MeasuredExchange*> pointers;
  for (const MeasuredExchange& m : rows) pointers.push_back(&m);
  const ExchangeRates fitted = fit_exchange_rates(pointers, platform->device, platform->node, false);
  for (const MeasuredExchange& m : rows) {
    EXPECT_NEAR(predicted_exchange_us(fitted, platform->node, m) / m.dispatch_us, 1, 0.15);
  }
}

// Per SM 20 GB/s inside a node and 5 beyond on what was measured over nodes, a quarter: of 40 GB/s 10.
TEST(ExchangeFit, TakesTheNetworkFromWhatWasMeasuredOverNodes) {
  ExchangeRates over, inside, back;
  over.over_nodes = true;
  over.sm_GBps = 20;
  over.network_sm_GBps = 5;
  over.network_share = 0.8;
  over.far_congestion = 2;
  over.startup_per_node = 0.5;
  inside.sm_GBps = 40;
  inside.network_share = 0.9;
  back.combine = true;
  std::vector<ExchangeRates> all{over, inside, back};
  borrow_network_rates(all);
  EXPECT_EQ(all[0], over);
  EXPECT_NEAR(all[1].network_sm_GBps, 10, 1e-12);
  EXPECT_NEAR(all[1].network_share, 0.8, 1e-12);
  EXPECT_NEAR(all[1].far_congestion, 2, 1e-12);
  EXPECT_NEAR(all[1].startup_per_node, 0.5, 1e-12);
  EXPECT_EQ(all[2], back);  // nothing of its direction
}

}  // namespace
}  // namespace stepcast::expert_measurements_test
