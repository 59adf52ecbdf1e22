#include <stdexcept>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/detail/open_layout.h"
#include "stepcast/base/units.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/workload/memory.h"

#include "tests/support/fails_with.h"

namespace stepcast::largest_batch_test {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kMemory{80 * kGiB};

// Tensor parallel 2, 4 data-parallel ranks that share the optimizer.
Job asked() {
  Job job;
  job.model = "llama-3-8b";
  job.n_gpus = 8;
  job.settings.tensor = 2;
  job.settings.distributed_optimizer = true;
  job.settings.seq_len_tokens = 4096;
  return job;
}

ResolvedJob resolved(const Job& job) {
  Result<ResolvedJob> result = resolve(job);
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

bool fits(const ResolvedJob& job, std::int64_t micro_batch, std::int64_t batch) {
  Layout layout = job.layout;
  layout.batch.micro_batch_sequences = micro_batch;
  layout.batch.global_batch_sequences = batch;
  return memory_forecast(job.model, layout, kMemory)->verdict != MemoryVerdict::does_not_fit;
}

TEST(LargestBatch, IsTheLargestDivisorThatFits) {
  Job job = asked();
  job.settings.global_batch_sequences = 4 * 60;
  ResolvedJob r = resolved(job);
  ASSERT_TRUE(detail::take_largest_batch(LargestBatch::micro, job.settings, kMemory, r).ok());
  const std::int64_t best = r.layout.batch.micro_batch_sequences;
  EXPECT_EQ(r.layout.batch.global_batch_sequences, 240);
  EXPECT_EQ(60 % best, 0);
  EXPECT_TRUE(fits(r, best, 240));
  for (std::int64_t next = best + 1; next <= 60; ++next)
    EXPECT_FALSE(60 % next == 0 && fits(r, next, 240)) << next;
  EXPECT_THAT(r.notes.back(), HasSubstr("largest micro-batch that fits: "));
  EXPECT_THAT(r.notes.back(), HasSubstr(" too much (weights "));
}

TEST(LargestBatch, AddsUpNoGradientsWhereTheBatchIsWanted) {
  const Job job = asked();
  ResolvedJob r = resolved(job);
  ASSERT_TRUE(detail::take_largest_batch(LargestBatch::global, job.settings, kMemory, r).ok());
  const std::int64_t best = r.layout.batch.micro_batch_sequences;
  EXPECT_EQ(r.layout.batch.global_batch_sequences, 4 * best);
  for (std::int64_t fewer = 1; fewer <= best; ++fewer) EXPECT_TRUE(fits(r, fewer, 4 * fewer)) << fewer;
  EXPECT_FALSE(fits(r, best + 1, 4 * (best + 1)));
}

// What is found by halving is what a scan finds.
TEST(LargestBatch, IsWhatAScanFinds) {
  const auto first_too_large = [](const ResolvedJob& job, std::int64_t ranks) {
    std::int64_t sequences = 1;
    while (fits(job, sequences, ranks * sequences)) ++sequences;
    return sequences;
  };
  for (const std::int64_t pipeline : {1, 2, 4}) {
    for (const bool recomputes : {false, true}) {
      Job job = asked();
      job.settings.pipeline = pipeline;
      job.settings.seq_len_tokens = 512;
      if (recomputes) job.settings.recompute = Recompute::full;
      ResolvedJob r = resolved(job);
      const std::int64_t expected = first_too_large(r, 4) - 1;
      ASSERT_TRUE(detail::take_largest_batch(LargestBatch::micro, job.settings, kMemory, r).ok());
      EXPECT_EQ(r.layout.batch.micro_batch_sequences, expected) << pipeline << recomputes;
    }
  }
}

TEST(LargestBatch, SaysWhatCannotBe) {
  Job job = asked();
  ResolvedJob r = resolved(job);
  EXPECT_THAT(detail::take_largest_batch(LargestBatch::micro, job.settings, Bytes{kGiB}, r),
              test::FailsWith("no micro-batch fits, found 1 takes"));
  job.settings.micro_batch_sequences = 2;
  EXPECT_THAT(detail::take_largest_batch(LargestBatch::global, job.settings, kMemory, r),
              test::FailsWith("--gbs max with a micro-batch"));
}

}  // namespace
}  // namespace stepcast::largest_batch_test
