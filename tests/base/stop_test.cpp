#include "stepcast/base/stop.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "stepcast/base/parallel.h"

namespace stepcast::stop_test {
namespace {

TEST(Stop, NobodyAsksWithoutAScope) {
  EXPECT_FALSE(is_stop_requested());
  EXPECT_TRUE(not_stopped().ok());
  EXPECT_FALSE(current_stop().stop_possible());
}

TEST(Stop, TheInnermostScopeHolds) {
  std::stop_source outer, inner;
  const StopScope outside{outer.get_token()};
  {
    const StopScope inside{inner.get_token()};
    outer.request_stop();
    EXPECT_FALSE(is_stop_requested());
    inner.request_stop();
    EXPECT_TRUE(is_stop_requested());
  }
  EXPECT_TRUE(is_stop_requested());
  EXPECT_EQ(not_stopped().error().message(), "interrupted");
  EXPECT_TRUE(not_stopped().error().is_of_machine());
}

TEST(Stop, OtherThreadsHaveScopesOfTheirOwn) {
  std::stop_source stop;
  stop.request_stop();
  const StopScope scope{stop.get_token()};
  bool there = true;
  std::thread{[&] { there = is_stop_requested(); }}.join();
  EXPECT_FALSE(there);
}

TEST(Stop, ParallelForMakesNoMoreCalls) {
  for (const unsigned threads : {1U, 2U, 8U}) {
    std::stop_source stop;
    const StopScope scope{stop.get_token()};
    std::atomic<int> calls{0};
    const Status status = parallel_for(100000, threads, [&](std::size_t i) -> Status {
      ++calls;
      if (i == 3) stop.request_stop();
      while (i > 3 && !stop.stop_requested()) std::this_thread::yield();  // however late index 3 comes to it
      return Ok{};
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message(), "interrupted");
    EXPECT_LT(calls.load(), 100000);
    if (threads == 1) {
      EXPECT_EQ(calls.load(), 4);  // indices 0 to 3
    }
  }
}

TEST(Stop, ThreadsOfParallelForHearOfIt) {
  std::stop_source stop;
  const StopScope scope{stop.get_token()};
  std::atomic<int> ended{0};
  const Status status = parallel_for(4, 4, [&](std::size_t i) -> Status {
    if (i == 3) stop.request_stop();
    while (!is_stop_requested()) std::this_thread::yield();
    ++ended;
    return Ok{};
  });
  EXPECT_EQ(ended.load(), 4);
  EXPECT_FALSE(status.ok());
}

TEST(Stop, WorkThatPassesItOverIsNoSuccess) {
  std::stop_source stop;
  const StopScope scope{stop.get_token()};
  EXPECT_FALSE(parallel_for(1, 1, [&](std::size_t) -> Status {
                 stop.request_stop();
                 static_cast<void>(not_stopped());
                 return Ok{};
               }).ok());
}

}  // namespace
}  // namespace stepcast::stop_test
