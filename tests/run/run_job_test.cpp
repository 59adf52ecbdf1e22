#include "stepcast/run/run_job.h"

#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::run_job_test {
namespace {

ResolvedJob job_of(const std::string& model, std::int64_t tensor, std::int64_t pipeline) {
  Job job;
  job.model = model;
  job.n_gpus = 256;
  job.settings.tensor = tensor;
  job.settings.pipeline = pipeline;
  job.settings.global_batch_sequences = 256;
  const Result<ResolvedJob> resolved = resolve(job);
  EXPECT_TRUE(resolved.ok()) << resolved.error().message();
  return resolved.ok() ? *resolved : ResolvedJob{};
}

RunJob run_job(const ResolvedJob& job) {
  const Result<Platform> platform = load_platform("dgx-h100");
  EXPECT_TRUE(platform.ok());
  const Result<RunJob> run = run_job_of(job.model, job.layout, *platform, 5);
  EXPECT_TRUE(run.ok()) << run.error().message();
  return run.ok() ? *run : RunJob{};
}

// 2 bytes of weights, 4 of master weights and 8 of Adam's moments for each parameter, whatever the layout. The word embedding
// is padded, norms and learned positions are on every tensor-parallel rank: less than two in a thousand.
TEST(RunJob, WritesFourteenBytesPerParameter) {
  for (const char* model : {"llama-3-70b", "bloom-176b", "gpt3-175b"}) {
    for (const auto& [tensor, pipeline] : {std::pair{8, 1}, {8, 2}, {4, 2}}) {
      const ResolvedJob job = job_of(model, tensor, pipeline);
      const RunJob run = run_job(job);
      const auto parameters = static_cast<double>(parameter_count(job.model).total());
      EXPECT_NEAR(run.checkpoint_bytes / (14 * parameters), 1, 2e-3)
          << model << " " << tensor << " " << pipeline;
      EXPECT_EQ(run.n_gpus, 256);
      EXPECT_EQ(run.gpus_per_node, 8);
      EXPECT_EQ(run.replicas * tensor * pipeline, 256);
      EXPECT_EQ(run.step_s, 5);
    }
  }
}

TEST(RunJob, OfExpertsCountsEachOnce) {
  ResolvedJob job = job_of("mixtral-8x7b", 2, 2);
  job.layout.degrees.expert = 4;
  const auto parameters = static_cast<double>(parameter_count(job.model).total());
  EXPECT_NEAR(run_job(job).checkpoint_bytes / (14 * parameters), 1, 1e-3);
}

TEST(RunJob, WritesOneCopyOfShardedWeights) {
  ResolvedJob job = job_of("llama-3-8b", 1, 1);
  const auto parameters = static_cast<double>(parameter_count(job.model).total());
  job.layout.sharding.kind = Sharding::zero3;
  EXPECT_NEAR(run_job(job).checkpoint_bytes / (12 * parameters), 1, 1e-3);
  EXPECT_EQ(run_job(job).writers, 256);
  job.layout.sharding.kind = Sharding::none;
  EXPECT_EQ(run_job(job).writers, 1);
  job.layout.optimizer.kind = OptimizerKind::sgd;
  EXPECT_NEAR(run_job(job).checkpoint_bytes / (6 * parameters), 1, 1e-3);
}

}  // namespace
}  // namespace stepcast::run_job_test
