// XLA profiles: devices as ranks, their work and steps, damaged files.
#include "stepcast/trace/xla_profile.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/trace/trace_index.h"
#include "stepcast/trace/trace_summary.h"

#include "tests/support/fails_with.h"
#include "tests/support/xplane_text.h"

namespace stepcast::xla_profile_test {
namespace {

using test::FailsWith;
using test::PlaneText;
using test::two_steps;
using test::xplane_file;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kUs = 1'000'000;  // picoseconds

std::vector<RecordedRank> read(const std::string& content) {
  auto ranks = parse_xla_profile(content, "host.xplane.pb");
  EXPECT_TRUE(ranks.ok()) << ranks.error().message();
  return ranks.ok() ? std::move(ranks).value() : std::vector<RecordedRank>{};
}

// "gemm 10+30" for every piece of work, in whole microseconds.
std::vector<std::string> work_of(const RecordedRank& rank) {
  std::vector<std::string> work;
  for (const GpuOp& op : rank.gpu_ops)
    work.push_back(std::string{rank.names.text(op.name)} + " " + std::to_string(op.start.count() / 1000) +
                   "+" + std::to_string(op.duration.count() / 1000));
  return work;
}

// "1 0+100" for every step.
std::vector<std::string> steps_of(const RecordedRank& rank) {
  std::vector<std::string> steps;
  for (const detail::RecordedStep& step : detail::find_steps(rank))
    steps.push_back(std::to_string(step.number) + " " + std::to_string(step.start.count() / 1000) + "+" +
                    std::to_string((step.end - step.start).count() / 1000));
  return steps;
}

// The host with two steps of 90 us. With `launches` of a device, 5 us after the start of each step.
PlaneText host(bool launches, std::uint64_t device = 0) {
  PlaneText plane{"/host:CPU"};
  std::vector<std::string> events;
  for (const std::uint64_t step : {1U, 2U}) {
    const std::uint64_t start = (step - 1) * 100 * kUs;
    events.push_back(
        plane.event("train", start, 90 * kUs, {plane.stat("step_num", step), plane.stat("_r", 1)}));
    for (std::uint64_t i = 1; launches && i <= 3; ++i)
      events.push_back(plane.event("cuLaunchKernel", start + (4 + i) * kUs, kUs / 2,
                                   {plane.stat("correlation_id", 100 * device + 10 * step + i)}));
  }
  events.push_back(plane.event("PjitFunction(step)", kUs, kUs));
  plane.line("python", events, 77);
  return plane;
}

TEST(XlaProfile, HasTheStreamsOfAGpuAsWork) {
  PlaneText gpu = two_steps(0);
  // The same work by other names.
  gpu.line("XLA Ops", {gpu.event("dot.1", 10 * kUs, 30 * kUs)});
  gpu.line("TensorFlow Name Scope", {gpu.event("jit(step)", 0, 200 * kUs)});
  gpu.fact(gpu.stat("core_count", 132)).fact(gpu.stat("memory_size", 80'000'000'000));
  const auto ranks = read(xplane_file({host(false), gpu}));
  ASSERT_EQ(ranks.size(), 1U);
  const RecordedRank& rank = ranks.front();
  EXPECT_EQ(rank.format, ProfileFormat::xplane);
  EXPECT_FALSE(rank.rank) << "the file does not say it";
  const std::string all_reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
  EXPECT_THAT(work_of(rank), ElementsAre("gemm 10+30", "add 40+10", all_reduce + " 50+20", "gemm 110+30",
                                         "add 140+10", all_reduce + " 150+25"));
  EXPECT_EQ(rank.gpu_ops[0].stream, 13);
  EXPECT_EQ(rank.gpu_ops[2].stream, 14);
  EXPECT_EQ(rank.gpu_ops[3].correlation, 21);
  ASSERT_GE(rank.gpu_ops[2].collective, 0);
  EXPECT_EQ(rank.collective_infos[static_cast<std::size_t>(rank.gpu_ops[2].collective)].op,
            CollectiveOp::all_reduce);
  EXPECT_EQ(rank.skipped.at("on lines that repeat the work"), 2U);
  ASSERT_EQ(rank.devices.size(), 1U);
  EXPECT_EQ(rank.devices[0].sm_count, 132);
  EXPECT_EQ(rank.devices[0].memory_bytes, 80'000'000'000);
  EXPECT_EQ(rank.devices[0].name, "") << "the file does not name the GPU";
}

TEST(XlaProfile, HasEachDeviceAsARank) {
  // Device 2 ran nothing.
  const auto ranks = read(xplane_file({two_steps(1), PlaneText{"/device:GPU:2"}, two_steps(0)}));
  ASSERT_EQ(ranks.size(), 2U);
  for (std::int32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(r)].rank, r);
    EXPECT_EQ(ranks[static_cast<std::size_t>(r)].gpu_ops[0].device, r);
  }
}

TEST(XlaProfile, TakesStepsOfTheHostWhereTheyLaunch) {
  const auto ranks = read(xplane_file({host(true, 1), two_steps(0), two_steps(1)}));
  ASSERT_EQ(ranks.size(), 2U);
  // Device 0 has no launches in the file.
  EXPECT_THAT(ranks[0].runtime_calls, ::testing::IsEmpty());
  EXPECT_THAT(steps_of(ranks[0]), ElementsAre("1 0+90", "2 100+90"));
  EXPECT_THAT(ranks[0].notes, ElementsAre(HasSubstr("with the work that runs during them")));
  ASSERT_EQ(ranks[1].runtime_calls.size(), 6U);
  EXPECT_EQ(ranks[1].runtime_calls[0].correlation, 111);
  EXPECT_EQ(ranks[1].names.text(ranks[1].runtime_calls[0].name), "cuLaunchKernel");
  EXPECT_THAT(steps_of(ranks[1]), ElementsAre("1 0+90", "2 100+90"));
  EXPECT_THAT(ranks[1].notes, ElementsAre("steps are annotations \"train\" of the host"));
  ASSERT_EQ(ranks[1].threads.size(), 1U);
  EXPECT_EQ(ranks[1].threads[0].name, "python");
  EXPECT_EQ(ranks[1].skipped.at("of the host"), 1U) << "PjitFunction";
}

TEST(XlaProfile, TakesStepsOfTheDeviceElse) {
  PlaneText gpu = two_steps(0);
  gpu.line("Steps", {gpu.event("7", 10 * kUs, 60 * kUs), gpu.event("8", 110 * kUs, 65 * kUs)});
  gpu.line("XLA Modules", {gpu.event("jit_step(1)", 0, kUs)});
  const auto ranks = read(xplane_file({host(false), gpu}));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_THAT(steps_of(ranks[0]), ElementsAre("7 10+60", "8 110+65"));
  EXPECT_THAT(ranks[0].notes, ElementsAre("steps are the line \"Steps\" of the device"));
}

TEST(XlaProfile, TakesExecutionsOfTheLongestModuleElse) {
  PlaneText gpu = two_steps(0);
  // Three executions of 60 us against one of 5 us. Each lasts to the start of the next, the last to its end.
  gpu.line("XLA Modules",
           {gpu.event("jit_step(12)", 10 * kUs, 60 * kUs), gpu.event("jit_add(3)", 80 * kUs, 5 * kUs),
            gpu.event("jit_step(12)", 110 * kUs, 60 * kUs)});
  const auto ranks = read(xplane_file({gpu}));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_THAT(steps_of(ranks[0]), ElementsAre("0 10+100", "1 110+60"));
  EXPECT_THAT(ranks[0].notes, ElementsAre("steps are executions of \"jit_step\", each up to the next one"));
}

TEST(XlaProfile, HasTheOperationsOfATpuAsWork) {
  PlaneText tpu{"/device:TPU:0"};
  // The loop encloses its two operations, which are 20 + 10 us.
  tpu.line("XLA Ops",
           {tpu.event("while.4", 0, 40 * kUs), tpu.event("fusion.3", 5 * kUs, 20 * kUs),
            tpu.event("all-reduce.7", 25 * kUs, 10 * kUs), tpu.event("all-gather-start.1", 40 * kUs, kUs),
            tpu.event("all-gather-done.1", 41 * kUs, 2 * kUs)});
  tpu.line("Async XLA Ops", {tpu.event("all-gather-start.1", 40 * kUs, 3 * kUs)});
  tpu.fact(tpu.stat("device_type_string", "TPU v5e"));
  PlaneText sparse{"/device:TPU:0 SparseCore 0"};
  sparse.line("XLA Ops", {sparse.event("gather.1", 0, kUs)});
  const auto ranks = read(xplane_file({tpu, sparse}));
  ASSERT_EQ(ranks.size(), 1U);
  const RecordedRank& rank = ranks[0];
  EXPECT_THAT(work_of(rank), ElementsAre("fusion.3 5+20", "all-reduce.7 25+10", "all-gather-start.1 40+1",
                                         "all-gather-done.1 41+2"));
  EXPECT_EQ(rank.skipped.at("encloses other operations"), 1U);
  EXPECT_EQ(rank.devices[0].name, "TPU v5e");
  std::vector<bool> communicates;
  for (const GpuOp& op : rank.gpu_ops) communicates.push_back(op.collective >= 0);
  EXPECT_THAT(communicates, ElementsAre(false, true, false, true));
}

TEST(XlaProfile, NamesCopiesAsCudaDoes) {
  PlaneText gpu{"/device:GPU:0"};
  gpu.line("Stream #15(MemcpyD2H)",
           {gpu.event("MemcpyD2H", 0, kUs,
                      {gpu.stat("memcpy_details", "kind_src:device size:4096 dest:0 async:1")}),
            gpu.event("Memset", 2 * kUs, kUs)});
  const auto ranks = read(xplane_file({gpu}));
  ASSERT_EQ(ranks.size(), 1U);
  ASSERT_EQ(ranks[0].gpu_ops.size(), 2U);
  EXPECT_EQ(ranks[0].gpu_ops[0].kind, GpuOp::Kind::memcpy);
  EXPECT_EQ(ranks[0].gpu_ops[0].bytes, 4096);
  EXPECT_EQ(ranks[0].names.text(ranks[0].gpu_ops[0].name), "Memcpy DtoH");
  EXPECT_EQ(ranks[0].gpu_ops[1].kind, GpuOp::Kind::memset);
  EXPECT_EQ(ranks[0].gpu_ops[1].bytes, -1);
}

TEST(XlaProfile, RoundsBothEndsOfAnEvent) {
  PlaneText gpu{"/device:GPU:0"};
  // 0.4 to 1.6 ns, 1.6 to 2.4 ns: from 0 to 2 and at 2, relative to 1000 ns.
  gpu.line("Stream #1(Compute)", {gpu.event("a", 400, 1200), gpu.event("b", 1600, 800)}, 1, 1000);
  const auto ranks = read(xplane_file({gpu}));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].gpu_ops[0].start.count(), 1000);
  EXPECT_EQ(ranks[0].gpu_ops[0].duration.count(), 2);
  EXPECT_EQ(ranks[0].gpu_ops[1].start.count(), 1002);
  EXPECT_EQ(ranks[0].gpu_ops[1].duration.count(), 0);
}

TEST(XlaProfile, CountsFromTheStartOfTheProfile) {
  PlaneText task{"Task Environment"};
  task.fact(task.stat("profile_start_time", 1'796'122'167'267'360'509));
  const auto ranks = read(xplane_file({two_steps(0), task}));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].gpu_ops[0].start.count(), 1'796'122'167'267'360'509 + 10'000);
}

TEST(XlaProfile, HasRelativeTimesWhereTheStartIsNone) {
  PlaneText task{"Task Environment"};
  task.fact(task.stat("profile_start_time", std::uint64_t{1} << 62));
  const auto ranks = read(xplane_file({two_steps(0), task}));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].gpu_ops[0].start.count(), 10'000);
}

// Without display names, operations of a TPU are whole instructions.
TEST(XlaProfile, TellsTheEndOfACollectiveFromItsOperand) {
  PlaneText tpu{"/device:TPU:0"};
  tpu.line("XLA Ops",
           {tpu.event("%all-gather-start.1 = f32[8] all-gather-start(%p)", 0, kUs),
            tpu.event("%all-gather-done.1 = f32[8] all-gather-done(%all-gather-start.1)", kUs, kUs)});
  const auto ranks = read(xplane_file({tpu}));
  ASSERT_EQ(ranks.size(), 1U);
  ASSERT_EQ(ranks[0].gpu_ops.size(), 2U);
  EXPECT_LT(ranks[0].gpu_ops[0].collective, 0);
  EXPECT_GE(ranks[0].gpu_ops[1].collective, 0);
}

// 250 devices, each of which would get 5,000 steps.
TEST(XlaProfile, RefusesSmallFilesWithManyRanks) {
  std::vector<PlaneText> planes(1, PlaneText{"/host:CPU"});
  std::vector<std::string> steps;
  for (std::uint64_t i = 0; i < 5000; ++i)
    steps.push_back(planes[0].event("train", i * kUs, kUs / 2, {planes[0].stat("step_num", i)}));
  planes[0].line("python", steps, 77);
  for (int i = 0; i < 250; ++i) planes.push_back(two_steps(static_cast<std::uint64_t>(i)));
  test::ProtobufMessage space;
  for (const PlaneText& plane : planes) space.text(1, plane.text());
  EXPECT_THAT(parse_xla_profile(space.text(), "x"),
              FailsWith("found 250 devices and 5001 steps and threads of the host"));
}

TEST(XlaProfile, LeavesOutTimesThatAreNone) {
  PlaneText gpu{"/device:GPU:0"};
  gpu.line("Stream #1(Compute)", {gpu.event("a", 0, kUs), gpu.event("b", std::uint64_t{1} << 63, kUs)});
  const auto ranks = read(xplane_file({gpu}));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].gpu_ops.size(), 1U);
  EXPECT_EQ(ranks[0].skipped.at(std::string{kBadTime}), 1U);
}

TEST(XlaProfile, SaysWhatTheProfilerSaid) {
  const std::string file =
      xplane_file({two_steps(0)}) + test::ProtobufMessage{}.text(3, "12 events dropped").text();
  const auto ranks = read(file);
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_THAT(ranks[0].notes, Contains("the profiler says: 12 events dropped"));
}

TEST(XlaProfile, SummaryInventsNoSizes) {
  const auto ranks = read(xplane_file({two_steps(0)}));
  ASSERT_EQ(ranks.size(), 1U);
  const RankSummary summary = summarize(ranks[0], [](const RecordedRank&) -> Status { return Ok{}; });
  EXPECT_EQ(summary.communication_kernels, 2U);
  EXPECT_EQ(summary.communication_kernels_with_metadata, 0U);
  EXPECT_THAT(summary.notes, Contains(HasSubstr("XLA profiles do not have them")));
}

TEST(XlaProfile, RefusesFilesWithoutDevices) {
  EXPECT_THAT(parse_xla_profile(xplane_file({host(false)}), "x"),
              FailsWith("x: planes: found no plane of a device (a CPU-only profile)"));
  EXPECT_THAT(parse_xla_profile(xplane_file({PlaneText{"/device:GPU:3"}}), "x"),
              FailsWith("no operations on \"/device:GPU:3\""));
}

TEST(XlaProfile, RefusesDamage) {
  const std::string whole = xplane_file({host(true), two_steps(0)});
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto cut = parse_xla_profile(whole.substr(0, n), "x");
    ASSERT_FALSE(cut.ok()) << n;
    ASSERT_FALSE(cut.error().message().empty());
  }
  EXPECT_THAT(parse_xla_profile(whole.substr(0, whole.size() - 1), "x"),
              FailsWith("that does not follow the protobuf format, expected an XLA profile"));
  PlaneText gpu{"/device:GPU:0"};
  gpu.line("Stream #1(Compute)", {test::ProtobufMessage{}.text(2, "not an offset").text()});
  EXPECT_THAT(parse_xla_profile(xplane_file({gpu}), "x"), FailsWith("an event that does not follow"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x81);
    static_cast<void>(parse_xla_profile(changed, "x"));  // any answer, but no crash
  }
}

}  // namespace
}  // namespace stepcast::xla_profile_test
