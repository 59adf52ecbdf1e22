#include "stepcast/cost/host_overheads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::host_overheads_test {
namespace {

using test::FailsWith;

OverheadRecord record(OverheadType type, std::string op, double mean_us) {
  OverheadRecord r;
  r.type = type;
  r.op = std::move(op);
  r.mean_us = mean_us;
  r.n = 10;
  return r;
}

Platform host_of_four_records() {
  Platform p;
  p.set(record(OverheadType::t2, "aten::addmm", 20));
  p.set(record(OverheadType::t2, "autograd::engine::evaluate_function: AddmmBackward", 50));
  p.set(record(OverheadType::t2, "(backward)", 40));
  p.set(record(OverheadType::t2, "", 25));
  return p;
}

TEST(HostOverheads, AnOperatorHasItsOwnTime) {
  const auto host = HostOverheads::of(host_of_four_records());
  ASSERT_TRUE(host.ok());
  const HostOverhead addmm = host->time(OverheadType::t2, "aten::addmm");
  EXPECT_EQ(addmm.mean_us, 20);
  EXPECT_EQ(addmm.n, 10U);
  EXPECT_EQ(addmm.ground, OverheadTimeSource::own);
  EXPECT_EQ(addmm.estimate().source, EstimateSource::fitted);
}

// Ten occurrences of each: (7 + 20 + 6 + 4 + 11) x 10 us over 10 launches and 10 copies. Families are parts of all.
TEST(HostOverheads, ALaunchCostsAllHostTimeOverLaunchesAndCopies) {
  Platform p;
  EXPECT_EQ(HostOverheads::of(p)->us_per_launch(), 0);
  p.set(record(OverheadType::t1, "", 7));
  p.set(record(OverheadType::t2, "", 20));
  p.set(record(OverheadType::t2, "(backward)", 40));
  p.set(record(OverheadType::t3, "", 6));
  p.set(record(OverheadType::t4, "", 4));
  p.set(record(OverheadType::t5, "", 11));
  EXPECT_EQ(HostOverheads::of(p)->us_per_launch(), 0);
  p.set(record(OverheadType::t4, "(launch)", 5));
  p.set(record(OverheadType::t4, "(copy)", 6));
  p.set(record(OverheadType::t4, "(other call)", 1));
  EXPECT_DOUBLE_EQ(HostOverheads::of(p)->us_per_launch(), 24);
}

TEST(HostOverheads, TheNumberOfABackwardIsNotPartOfItsName) {
  const auto host = HostOverheads::of(host_of_four_records());
  ASSERT_TRUE(host.ok());
  const HostOverhead backward =
      host->time(OverheadType::t2, "autograd::engine::evaluate_function: AddmmBackward0");
  EXPECT_EQ(backward.mean_us, 50);
  EXPECT_EQ(backward.ground, OverheadTimeSource::own);
}

TEST(HostOverheads, AnUnseenOperatorTakesItsFamilyAndThenAll) {
  const auto host = HostOverheads::of(host_of_four_records());
  ASSERT_TRUE(host.ok());
  const HostOverhead backward = host->time(OverheadType::t2, "torch::autograd::AccumulateGrad");
  EXPECT_EQ(backward.mean_us, 40);
  EXPECT_EQ(backward.ground, OverheadTimeSource::family);
  const HostOverhead unseen = host->time(OverheadType::t2, "my::operator");
  EXPECT_EQ(unseen.mean_us, 25);
  EXPECT_EQ(unseen.ground, OverheadTimeSource::all);
  EXPECT_EQ(unseen.estimate().source, EstimateSource::assumed);
}

TEST(HostOverheads, WithoutAnyRecordOfThatKindThereIsNoTime) {
  const auto host = HostOverheads::of(host_of_four_records());
  ASSERT_TRUE(host.ok());
  EXPECT_FALSE(host->empty());
  const HostOverhead t3 = host->time(OverheadType::t3, "aten::addmm");
  EXPECT_EQ(t3.mean_us, 0);
  EXPECT_EQ(t3.ground, OverheadTimeSource::none);
  EXPECT_TRUE(HostOverheads{}.empty());
}

TEST(HostOverheads, TheBandHoldsTheMean) {
  // Half of the occurrences take no time: the median and p10 are 0, and one outlier moves the mean past p90.
  Platform p;
  OverheadRecord skewed = record(OverheadType::t3, "x", 9);
  skewed.p10_us = 0;
  skewed.p50_us = 0;
  skewed.p90_us = 6;
  p.set(skewed);
  const auto host = HostOverheads::of(p);
  ASSERT_TRUE(host.ok());
  const Estimate estimate = host->time(OverheadType::t3, "x").estimate();
  EXPECT_EQ(estimate.time.value(), 9);
  EXPECT_EQ(estimate.p10.value(), 0);
  EXPECT_EQ(estimate.p90.value(), 9);
}

TEST(HostOverheads, TheCostOfTheProfilerIsTakenOffPerEvent) {
  Platform p;
  OverheadRecord t2 = record(OverheadType::t2, "x", 20);
  t2.p90_us = 30;
  t2.profiler_events = 3;
  p.set(t2);
  OverheadRecord short_one = record(OverheadType::t3, "x", 2);
  short_one.profiler_events = 3;
  p.set(short_one);
  p.set(record(OverheadType::t1, "", 7));  // does not say how many events it holds
  const auto host = HostOverheads::of(p, {.profiler_cost_us = 1.5});
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host->time(OverheadType::t2, "x").mean_us, 15.5);  // 20 - 3 x 1.5
  EXPECT_EQ(host->time(OverheadType::t2, "x").p90_us, 25.5);
  EXPECT_EQ(host->time(OverheadType::t3, "x").mean_us, 0);  // 2 - 4.5, not below 0
  EXPECT_EQ(host->time(OverheadType::t1, "x").mean_us, 7);
}

TEST(HostOverheads, FamiliesOfOperatorsAndCalls) {
  const auto of_op = [](std::string_view op) { return overhead_family(OverheadType::t5, op); };
  EXPECT_EQ(of_op("aten::addmm"), "(operator)");
  EXPECT_EQ(of_op("my::operator"), "(operator)");
  EXPECT_EQ(of_op("aten::view"), "(view)");
  EXPECT_EQ(of_op("autograd::engine::evaluate_function: ViewBackward0"), "(backward)");
  EXPECT_EQ(of_op("torch::autograd::AccumulateGrad"), "(backward)");
  EXPECT_EQ(of_op("record_param_comms"), "(communication)");
  EXPECT_EQ(of_op("c10d::allreduce_"), "(communication)");
  const auto of_call = [](std::string_view call) { return overhead_family(OverheadType::t4, call); };
  EXPECT_EQ(of_call("hipExtModuleLaunchKernel"), "(launch)");
  EXPECT_EQ(of_call("cudaMemcpyAsync"), "(copy)");
  EXPECT_EQ(of_call("cudaStreamSynchronize"), "(synchronization)");
  EXPECT_EQ(of_call("hipFree"), "(set-up)");
  EXPECT_EQ(of_call("cuModuleLoadData"), "(set-up)");
  EXPECT_EQ(of_call("cudaEventQuery"), "(other call)");
}

TEST(HostOverheads, LaunchesComeBackAsTheyWereWritten) {
  LaunchTable table;
  table["aten::addmm"] = {{"cudaLaunchKernel"}, 1.25, 40};
  table["aten::_to_copy"] = {{"cudaMemcpyAsync", "cudaStreamSynchronize"}, 1.5, 7};
  table["aten::view"] = {{}, 0, 12};
  Platform p;
  p.set(ModelRecord{
      std::string{kHostLaunchesKind}, std::string{kHostLaunchesKind}, "", write_launches(table), {}});
  const auto host = HostOverheads::of(p);
  ASSERT_TRUE(host.ok()) << host.error().message();
  for (const auto& [op, launches] : table) {
    ASSERT_NE(host->launches(op), nullptr) << op;
    EXPECT_EQ(*host->launches(op), launches) << op;
  }
  EXPECT_EQ(host->launches("aten::mm"), nullptr);
}

TEST(HostOverheads, RefusesLaunchesThatAreNone) {
  const auto of = [](std::string_view parameters) {
    const auto parsed = parse_json(parameters, "x");
    Platform p;
    p.set(
        ModelRecord{std::string{kHostLaunchesKind}, std::string{kHostLaunchesKind}, "", parsed.value(), {}});
    return HostOverheads::of(p);
  };
  EXPECT_THAT(of("[]"), FailsWith("host_launches"));
  EXPECT_THAT(of(R"({"x": 3})"), FailsWith("`x`: found no object"));
  EXPECT_THAT(of(R"({"x": {"calls": 3, "mean_calls": 1, "n": 1}})"), FailsWith("`calls` is not a list"));
  EXPECT_THAT(of(R"({"x": {"calls": [1], "mean_calls": 1, "n": 1}})"), FailsWith("`calls` is not a list"));
  EXPECT_THAT(of(R"({"x": {"calls": [], "n": 1}})"), FailsWith("`mean_calls` is missing"));
  EXPECT_THAT(of(R"({"x": {"calls": [], "mean_calls": -1, "n": 1}})"), FailsWith("`mean_calls`"));
  EXPECT_THAT(of(R"({"x": {"calls": [], "mean_calls": 1, "n": 1.5}})"), FailsWith("`n` is not a count"));
}

}  // namespace
}  // namespace stepcast::host_overheads_test
