#include "stepcast/trace/detail/repair_times.h"

#include <gtest/gtest.h>

#include "stepcast/trace/foreign_tracer.h"
#include "stepcast/trace/readers.h"

#include "tests/support/trace_builder.h"

namespace stepcast::repair_times_test {
namespace {

RecordedRank with_kernels(double seventh_us) {
  test::TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 10'000);
  for (int i = 0; i < 100; ++i) {
    b.op(main, "aten::mm", 10 + 90.0 * i, 40);
    b.launch(main, 12 + 90.0 * i, 5, 7, "gemm", 20 + 90.0 * i, i == 7 ? seventh_us : 50);
  }
  return b.build();
}

TEST(RepairTimes, WorkThatOutlastsTheWorkBehindItEndsAsThatBegins) {
  RecordedRank rank = with_kernels(3e6);
  detail::repair_times(rank);
  EXPECT_EQ(rank.repaired.gpu_work, 1U);
  EXPECT_EQ(rank.gpu_ops[7].duration, Nanoseconds{90'000});
  EXPECT_GT(rank.repaired.share, kMuchRepaired);
}

TEST(RepairTimes, NothingOfWhatCanBeIsChanged) {
  RecordedRank rank = with_kernels(55);
  detail::repair_times(rank);
  EXPECT_EQ(rank.repaired.events(), 0U);
  EXPECT_EQ(rank.repaired.share, 0);
}

TEST(RepairTimes, WhatBeganInAnOperatorEndsInIt) {
  test::TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1000).step(main, 2, 1000, 1000);
  b.op(main, "aten::linear", 100, 200).op(main, "aten::mm", 150, 9e5).op(main, "aten::add", 1200, 50);
  b.launch(main, 160, 8e5, 7, "gemm", 400, 50);
  RecordedRank rank = b.build();
  detail::repair_times(rank);
  EXPECT_EQ(rank.repaired.cpu_time, 2U);
  EXPECT_EQ(rank.runtime_calls.front().duration, Nanoseconds{140'000});
}

TEST(RepairTimes, StepsDoNotReachIntoTheNext) {
  test::TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1500).step(main, 2, 1000, 1e9);
  b.op(main, "aten::mm", 100, 200).op(main, "aten::mm", 1100, 200);
  b.launch(main, 1110, 5, 7, "gemm", 1200, 50);
  RecordedRank rank = b.build();
  detail::repair_times(rank);
  EXPECT_EQ(rank.repaired.steps, 2U);
  for (const CpuOp& op : rank.cpu_ops)
    if (op.kind == CpuOp::Kind::step) {
      EXPECT_LE(op.end(), rank.cpu_ops.front().start + Nanoseconds{1'300'000});
    }
}

RecordedRank read(const std::string& events) {
  const Result<RecordedRank> rank = parse_kineto("[" + events + "]", "x");
  EXPECT_TRUE(rank.ok()) << rank.error().message();
  return rank.ok() ? *rank : RecordedRank{};
}

TEST(KinetoTimes, MayBeTexts) {
  const RecordedRank rank = read(
      R"J({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": "1694128201000000.250", "dur": "12.5"})J");
  ASSERT_EQ(rank.gpu_ops.size(), 1U);
  EXPECT_EQ(rank.gpu_ops.front().start, Nanoseconds{1'694'128'201'000'000'250});
  EXPECT_EQ(rank.gpu_ops.front().duration, Nanoseconds{12'500});
}

TEST(KinetoTimes, MayBeABeginAndAnEnd) {
  const RecordedRank rank = read(R"J(
    {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 1},
    {"ph": "B", "cat": "cpu_op", "name": "other row", "pid": 1, "tid": 2, "ts": 2},
    {"ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 3, "args": {"External id": 5}},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 4},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
    {"ph": "E", "pid": 1, "tid": 3, "ts": 9})J");
  ASSERT_EQ(rank.cpu_ops.size(), 2U);
  EXPECT_EQ(rank.names.text(rank.cpu_ops[0].name), "outer");
  EXPECT_EQ(rank.cpu_ops[0].duration, Nanoseconds{8'000});
  EXPECT_EQ(rank.cpu_ops[1].duration, Nanoseconds{1'000});
  EXPECT_EQ(rank.cpu_ops[1].external_id, 5);
  EXPECT_EQ(rank.skipped.at("begin or end without duration"), 2U);
}

TEST(KinetoTimes, OfZeroAmongThoseSince1970AreNone) {
  const RecordedRank rank = read(R"J(
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1694128201000000, "dur": 3})J");
  EXPECT_EQ(rank.gpu_ops.size(), 1U);
  EXPECT_EQ(rank.skipped.at(std::string{kBadTime}), 1U);
}

TEST(ForeignTracer, IsToldByItsEvents) {
  const auto called = [](const std::string& events) -> std::string {
    const auto tracer = foreign_tracer(read(events));
    return tracer ? std::string{tracer->called} : "";
  };
  EXPECT_EQ(
      called(
          R"J({"ph": "X", "name": "fusion.1", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "args": {"hlo_op": "fusion.1"}})J"),
      "a trace of an XLA program (JAX or TensorFlow)");
  EXPECT_EQ(
      called(
          R"J({"ph": "X", "cat": "xpu_runtime", "name": "urEnqueue", "pid": 1, "tid": 2, "ts": 1, "dur": 2})J"),
      "a trace of Intel GPUs (XPU)");
  EXPECT_EQ(
      called(
          R"J({"ph": "X", "cat": "mtia_ccp_events", "name": "fc", "pid": 1, "tid": 2, "ts": 1, "dur": 2})J"),
      "a trace of MTIA accelerators");
  EXPECT_EQ(
      called(R"J({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1, "dur": 2})J"),
      "");
}

TEST(ForeignTracer, OutputOfRocprofIsNamed) {
  const auto rank = parse_kineto(R"J({"rocprofiler-sdk-tool": [{"buffer_records": {}}]})J", "x");
  ASSERT_FALSE(rank.ok());
  EXPECT_NE(rank.error().message().find("output of rocprofv3"), std::string::npos) << rank.error().message();
}

}  // namespace
}  // namespace stepcast::repair_times_test
