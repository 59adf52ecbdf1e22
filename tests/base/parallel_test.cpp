#include "stepcast/base/parallel.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/progress.h"

namespace stepcast::parallel_test {
namespace {

TEST(ParallelFor, CallsEveryIndexOnce) {
  for (const unsigned threads : {0U, 1U, 2U, 7U, 100U}) {
    std::vector<std::atomic<int>> calls(1000);
    ASSERT_TRUE(parallel_for(calls.size(), threads, [&](std::size_t i) -> Status {
                  ++calls[i];
                  return Ok{};
                }).ok());
    for (const auto& n : calls) EXPECT_EQ(n.load(), 1);
  }
  EXPECT_TRUE(parallel_for(0, 4, [](std::size_t) -> Status { return Error("not to be called"); }).ok());
}

TEST(ParallelFor, ReturnsTheErrorOfTheLowestIndex) {
  for (const unsigned threads : {1U, 2U, 8U}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Status status = parallel_for(64, threads, [](std::size_t i) -> Status {
        if (i % 10 != 3) return Ok{};
        if (i == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the others fail first
        return Error("index " + std::to_string(i));
      });
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().message(), "index 3");
    }
  }
}

TEST(ParallelFor, TellsHowManyAreDone) {
  for (const unsigned threads : {1U, 4U}) {
    std::atomic<std::uint64_t> calls{0}, most{0}, total{0};
    const ProgressListener listener = [&](std::uint64_t done, std::uint64_t all) {
      ++calls;
      for (std::uint64_t seen = most; seen < done && !most.compare_exchange_weak(seen, done);) continue;
      total = all;
    };
    const ProgressScope scope{&listener};
    ASSERT_TRUE(parallel_for(20, threads, [](std::size_t) -> Status {
                  return parallel_for(50, 1, [](std::size_t) -> Status { return Ok{}; });  // is silent
                }).ok());
    EXPECT_EQ(calls, 20U);
    EXPECT_EQ(most, 20U);
    EXPECT_EQ(total, 20U);
    ASSERT_TRUE(parallel_for(3, threads, [](std::size_t) -> Status { return Ok{}; }).ok());
    EXPECT_EQ(calls, 20U);
    EXPECT_EQ(current_progress(), &listener);
  }
  EXPECT_EQ(current_progress(), nullptr);
}

TEST(ParallelFor, PassesExceptionsOn) {
  EXPECT_THROW(static_cast<void>(parallel_for(10, 4,
                                              [](std::size_t i) -> Status {
                                                if (i == 5) throw std::bad_alloc{};
                                                return Ok{};
                                              })),
               std::bad_alloc);
}

}  // namespace
}  // namespace stepcast::parallel_test
