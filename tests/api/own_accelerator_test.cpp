// An accelerator that one file describes (examples/platforms/my-accelerator.json), and what ships of slices of a torus.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"

#include "tests/support/paths.h"

namespace stepcast::own_accelerator_test {
namespace {

PredictRequest on(const std::string& platform, std::int64_t gpus) {
  PredictRequest request;
  request.platform = platform;
  request.job.model = "llama-3-8b";
  request.job.framework = Framework::maxtext;
  request.job.n_gpus = gpus;
  request.job.settings.micro_batch_sequences = 2;
  request.job.settings.global_batch_sequences = 2 * gpus;
  request.job.settings.seq_len_tokens = 4096;
  request.job.settings.recompute = Recompute::full;
  request.open_layout = OpenLayout::as_said;
  return request;
}

double exposed_ms(const Forecast& forecast) { return forecast.critical().exposed_comm_ms; }

TEST(OwnAccelerator, OneFilePredictsInsideASliceAndAcrossTwo) {
  const Session session;
  const std::string file = (test::source_dir() / "examples/platforms/my-accelerator.json").string();
  const auto slice = session.predict(on(file, 64));
  ASSERT_TRUE(slice.ok()) << slice.error().message();
  // 8 x 8.0e9 parameters x 8,192 tokens (forward, again, backward) at 500 TFLOP/s are 1.05 s, and no kernel beats its peak.
  EXPECT_GT(slice->step_time_ms, 1000);
  EXPECT_LT(slice->step_time_ms, 2500);
  EXPECT_GT(slice->throughput.mfu.value_or(0), 0.3);
  const auto two = session.predict(on(file, 128));
  ASSERT_TRUE(two.ok()) << two.error().message();
  // As much work for each; the network between slices is slower than their links.
  EXPECT_GT(exposed_ms(*two), exposed_ms(*slice));
}

TEST(OwnAccelerator, SlicesOfThousandsOfChipsArePriced) {
  const Session session;
  const auto largest = session.predict(on("tpu7x", 2 * 9216));
  ASSERT_TRUE(largest.ok()) << largest.error().message();
  const auto small = session.predict(on("tpu7x", 128));
  ASSERT_TRUE(small.ok()) << small.error().message();
  EXPECT_GE(largest->step_time_ms, small->step_time_ms);
  EXPECT_LT(largest->step_time_ms, 1.5 * small->step_time_ms);
  const auto pod = session.predict(on("tpu-v5p", 8960));
  ASSERT_TRUE(pod.ok()) << pod.error().message();
}

TEST(OwnAccelerator, WhatACompilerDropsAndKeepsIsNotComputedAgain) {
  const Session session;
  PredictRequest request = on("tpu-v6e", 16);
  const auto full = session.predict(request);
  request.job.settings.recompute_keeps = "qkv attention attention_output ffn_up";
  const auto kept = session.predict(request);
  request.job.settings.recompute_keeps.reset();
  request.job.framework = Framework::fsdp;
  const auto eager = session.predict(request);
  ASSERT_TRUE(full.ok() && kept.ok() && eager.ok());
  EXPECT_LT(kept->step_time_ms, full->step_time_ms);
  EXPECT_LT(full->throughput.hardware_flops.value_or(0), eager->throughput.hardware_flops.value_or(0));
}

}  // namespace
}  // namespace stepcast::own_accelerator_test
