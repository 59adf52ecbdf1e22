#include "calibrate/collective_measurements.h"

#include <string>

#include <gtest/gtest.h>

namespace stepcast::collective_measurements_test {
namespace {

using Text = std::string;

const Text kRanks =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   10 on     node1 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  1 Group  0 Pid   11 on     node1 device  1 [0x0b] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  2 Group  0 Pid   12 on     node2 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  3 Group  0 Pid   13 on     node2 device  1 [0x0b] NVIDIA A100-SXM4-80GB\n";
const Text kNewHeader =
    "#                                                              out-of-place                       "
    "in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n";
const Text kNewRow =
    "   1048576  262144  float  sum  -1   52.43   20.00   30.00   0   52.00   20.16   30.25   0\n";
const Text kOldHeader =
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  "
    "error\n"
    "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
const Text kOldRow =
    "   1048576  262144  float  sum   52.43   20.00   30.00  1e-06   52.00   20.16   30.25  1e-06\n";

MeasuredCollectives read(const Text& text, const Text& name = "all_reduce_perf.log",
                         const MeasurementContext& c = {}) {
  auto r = parse_collective_measurements(text, name, c);
  EXPECT_TRUE(r.ok()) << r.error().message();
  return r.ok() ? std::move(r).value() : MeasuredCollectives{};
}

// The one sentence that the input causes.
Text refused(const Text& text, const Text& name = "all_reduce_perf.log", const MeasurementContext& c = {}) {
  const auto r = parse_collective_measurements(text, name, c);
  EXPECT_FALSE(r.ok());
  Text message = r.ok() ? Text{} : r.error().message();
  EXPECT_EQ(message.find('\n'), Text::npos);
  return message;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// What launchers put before lines is no part of them (base/line_prefix.h); a log that breaks off keeps its other rows.
TEST(NcclTestsText, BehindPrefixesOfLaunchers) {
  const Text log = kRanks + kNewHeader + kNewRow + kNewRow;
  const Text plain_name = read(log).curves.at(0).name();
  for (const Text prefix :
       {"0: ", "[1,0]<stdout>:", "2026-01-02T03:04:05.123456789Z ",
        "Jan 02 03:04:05 node1 srun[12]: ", "[pod/nccl-0/test] ", "worker-0  | ", "\x1b[32m"}) {
    Text prefixed = prefix;
    for (const char c : log.substr(0, log.size() - 1)) prefixed += c == '\n' ? "\n" + prefix : Text{c};
    const auto m = read(prefixed + "\n");
    ASSERT_EQ(m.curves.size(), 1U) << prefix;
    EXPECT_EQ(m.curves[0].name(), plain_name) << prefix;
    EXPECT_EQ(m.curves[0].samples.size(), 2U) << prefix;
    EXPECT_EQ(m.curves[0].samples[1].time_us, 52.43) << prefix;
  }
  const auto torn = read(log.substr(0, log.size() - 60));
  EXPECT_EQ(torn.curves.at(0).samples.size(), 1U);
  ASSERT_EQ(torn.unused.size(), 1U);
  EXPECT_EQ(torn.unused[0].n, 1U);
}

TEST(NcclTestsText, NewColumns) {
  const auto m = read(kRanks + kNewHeader + kNewRow);
  ASSERT_EQ(m.curves.size(), 1U);
  const CollectiveMeasurements& c = m.curves[0];
  EXPECT_EQ(c.collective, CollectiveOp::all_reduce);
  EXPECT_EQ(c.n_nodes, 2U);
  EXPECT_EQ(c.gpus_per_node, 2U);
  EXPECT_EQ(c.n_ranks, 4U);
  EXPECT_EQ(c.gpu, "NVIDIA A100-SXM4-80GB");
  ASSERT_EQ(c.samples.size(), 1U);
  EXPECT_DOUBLE_EQ(c.samples[0].message_bytes, 1048576);
  EXPECT_DOUBLE_EQ(c.samples[0].time_us, 52.43);  // out-of-place
  EXPECT_EQ(c.samples[0].dtype, DType::fp32);
  EXPECT_EQ(c.name(), "all_reduce/2x2");
}

TEST(NcclTestsText, OldColumns) {
  const auto m = read(kRanks + kOldHeader + kOldRow);
  ASSERT_EQ(m.curves.size(), 1U);
  EXPECT_DOUBLE_EQ(m.curves[0].samples[0].time_us, 52.43);
}

TEST(NcclTestsText, SeveralCollectivesInOneLog) {
  const Text gather_row =
      "   1048576  65536  float  none  -1   52.43   20.00   15.00   0   52.00   20.16   15.12   0\n";
  const auto m = read("$ mpirun ./build/all_reduce_perf -b 8\n" + kRanks + kNewHeader + kNewRow +
                          "# Avg bus bandwidth    : 1.0\n$ mpirun ./build/all_gather_perf -b 8\n" + kRanks +
                          kNewHeader + gather_row,
                      "job.log");
  ASSERT_EQ(m.curves.size(), 2U);
  EXPECT_EQ(m.curves[0].collective, CollectiveOp::all_reduce);
  EXPECT_EQ(m.curves[1].collective, CollectiveOp::all_gather);
  EXPECT_EQ(m.curves[1].n_ranks, 4U);
}

TEST(NcclTestsText, ContextWinsOverTheLog) {
  const auto m =
      read(kRanks + kNewHeader + kNewRow, "x.log",
           {.collective = CollectiveOp::broadcast, .n_ranks = 4, .gpus_per_node = 2, .platform = "mine"});
  EXPECT_EQ(m.curves[0].name(), "mine/broadcast/2x2");
}

TEST(NcclTestsText, OtherRanksThanTheLogLists) {
  EXPECT_HAS(refused(kRanks + kNewHeader + kNewRow, "x.log", {.n_ranks = 8}), "found 4 ranks, expected 8");
  EXPECT_EQ(
      read(kNewHeader + kNewRow, "all_reduce_perf.log", {.n_ranks = 8, .gpus_per_node = 8}).curves[0].n_ranks,
      8U);
}

TEST(NcclTestsText, AnAllReduceIsKnownByItsBusBandwidth) {
  const auto m = read(kRanks + kNewHeader + kNewRow, "x.log");  // 30 / 20 = 2 x 3/4
  EXPECT_EQ(m.curves[0].collective, CollectiveOp::all_reduce);
}

TEST(NcclTestsText, WindowsLineEnds) {
  Text text;
  for (const char c : kRanks + kNewHeader + kNewRow) text += c == '\n' ? Text{"\r\n"} : Text{c};
  EXPECT_EQ(read(text).curves.size(), 1U);
}

TEST(NcclTestsText, BadInputs) {
  EXPECT_HAS(refused(kRanks + kNewRow), "header");
  EXPECT_HAS(refused(kNewHeader + kNewRow), "how many ranks");
  const Text wrong =
      "   1048576  262144  float  sum  -1   52.43   20.00   30.00   3   52.00   20.16   30.25   0\n";
  EXPECT_HAS(refused(kRanks + kNewHeader + wrong), "#wrong");
  const Text zero =
      "   1048576  262144  float  sum  -1   0.00   20.00   30.00   0   52.00   20.16   30.25   0\n";
  EXPECT_HAS(refused(kRanks + kNewHeader + zero), "time");
  const Text nan =
      "   1048576  262144  float  sum  -1   nan   20.00   30.00   0   52.00   20.16   30.25   0\n";
  EXPECT_HAS(refused(kRanks + kNewHeader + nan), "nan");
  // 1048576 B in 52.43 "us" that are ms: 20 GB/s does not fit.
  const Text mixed =
      "   1048576  262144  float  sum  -1   0.05243   20.00   30.00   0   52.00   20.16   30.25   0\n";
  EXPECT_HAS(refused(kRanks + kNewHeader + mixed), "units");
  Text ms = kNewHeader;
  ms.replace(ms.find("(us)"), 4, "(ms)");
  EXPECT_HAS(refused(kRanks + ms + kNewRow), "(ms)");
  EXPECT_HAS(refused(kRanks + kNewHeader), "no row");
  EXPECT_HAS(refused(""), "empty");
  EXPECT_HAS(refused("what is this\n"), "format");
  EXPECT_HAS(refused(kRanks + kNewHeader + "   1048576  262144  float\n"), "columns");
  // The size may be named last; a row that ends before it is no row.
  EXPECT_HAS(refused(kRanks + "# type time algbw busbw size\n   1048576  20.0  52.4  91.8\n"),
             "found 4 columns, expected 5");
  EXPECT_HAS(refused(kRanks + kNewHeader + kNewRow, "x.log", {.n_ranks = 4, .gpus_per_node = 3}),
             "4 ranks on nodes of 3");
}

TEST(NcclTestsText, ErrorsNameTheLine) {
  const Text nan =
      "   1048576  262144  float  sum  -1   nan   20.00   30.00   0   52.00   20.16   30.25   0\n";
  EXPECT_HAS(refused(kRanks + kNewHeader + kNewRow + nan), "line 11");
}

TEST(NcclTestsJson, ReadsResults) {
  const auto m =
      read(R"({"args": ["./all_gather_perf", "-b", "8"], "devices": [{"hostname": "a", "device_name": "H100"},
      {"hostname": "a", "device_name": "H100"}],
      "results": [{"size": 0, "out_of_place": {"time": 1}},
                  {"size": 4096, "type": "half", "out_of_place": {"time": 9.5, "nwrong": 0}, "in_place": {"time": 9}}]})",
           "log.json");
  ASSERT_EQ(m.curves.size(), 1U);
  EXPECT_EQ(m.curves[0].collective, CollectiveOp::all_gather);
  EXPECT_EQ(m.curves[0].n_ranks, 2U);
  EXPECT_DOUBLE_EQ(m.curves[0].samples[0].time_us, 9.5);
  EXPECT_EQ(m.curves[0].samples[0].dtype, DType::fp16);
  ASSERT_EQ(m.unused.size(), 1U);
}

TEST(NcclTestsJson, BadInputs) {
  EXPECT_HAS(refused("{}"), "results");
  EXPECT_HAS(refused("{\"results\": [{\"size\": 8, \"time\": 1}]}"), "ranks");
  const MeasurementContext two{.n_ranks = 2, .gpus_per_node = 2};
  EXPECT_HAS(
      refused(R"({"results": [{"size": 8, "out_of_place": {"time": 0}}]})", "all_reduce_perf.json", two),
      "time");
  EXPECT_HAS(refused(R"({"results": [{"size": 8, "out_of_place": {"time": 3, "nwrong": 2}}]})",
                     "all_reduce_perf.json", two),
             "wrong");
  EXPECT_HAS(refused(R"({"results": [{"time": 3}]})", "all_reduce_perf.json", two), "size");
  EXPECT_HAS(refused(R"({"results": )", "all_reduce_perf.json", two), "all_reduce_perf.json");
}

TEST(ParamLog, ReadsBothSpellings) {
  const auto m = read(
      "MPI environment: {'world_size': 8, 'local_size': 4, 'global_rank': 0}\n"
      "\tCOMMS-RES-all_to_all-float32\tsize "
      "(B)\tnum-elements\tLatency(us):p50\tp75\tp95\tMin\tMax\talgBW(GB/s)\tbusBW(GB/s)\n"
      "\tCOMMS-RES-all_to_all-float32\t65536\t16384\t31.2\t32\t33\t30\t40\t2.10\t1.84\n");
  ASSERT_EQ(m.curves.size(), 1U);
  EXPECT_EQ(m.curves[0].collective, CollectiveOp::all_to_all);
  EXPECT_EQ(m.curves[0].n_nodes, 2U);
  EXPECT_DOUBLE_EQ(m.curves[0].samples[0].time_us, 31.2);
  const auto bare = read(
      "comms.py --collective all_reduce\nworld_size: 2 local_size: 2\n"
      "COMMS-RES size nElementsPerRank Latency(us):p50 p75 p95 Min Max algBW(GB/s) busBW(GB/s)\n"
      "COMMS-RES 1024 256 11.5 12 13 11 14 0.09 0.09\n");
  EXPECT_EQ(bare.curves[0].collective, CollectiveOp::all_reduce);
}

TEST(ParamLog, BadInputs) {
  const Text header = "COMMS-RES size nElements Latency(us):p50\n";
  EXPECT_HAS(refused("COMMS-RES 1024 256 11.5\n"), "header");
  EXPECT_HAS(refused(header + "COMMS-RES 1024 256 11.5\n"), "ranks");
  EXPECT_HAS(refused("world_size: 2 local_size: 2\n" + header + "COMMS-RES 1024 256 0\n"), "time");
  EXPECT_HAS(refused("world_size: 2 local_size: 2\n" + header + "COMMS-RES 1024 256 nan\n"), "nan");
  EXPECT_HAS(refused("COMMS-RES size nElements Latency(ms):p50\n"), "(ms)");
  EXPECT_HAS(refused(header), "no COMMS-RES row");
}

TEST(CollectiveCsv, ReadsPlatformsAndQuotedCells) {
  const auto m = read(
      "platform,gpu,interconnect,n_nodes,gpus_per_node,n_ranks,collective,dtype,message_bytes,time_us,busbw_"
      "GBps,source\n"
      "b,G,\"NVLink (4 GPUs, one node)\",1,2,2,p2p,fp16,4194304,59.2,70,s1\n"
      "a,G,x,1,1,1,all_reduce,fp16,1024,5,0,s1\n"
      "a,G,x,2,8,16,all_reduce,fp16,1024,35,0,s1\n"
      "a,G,x,2,8,16,all_reduce,,2048,36,0,s2\n",
      "data.csv");
  ASSERT_EQ(m.curves.size(), 2U);
  EXPECT_EQ(m.curves[0].name(), "a/all_reduce/2x8");
  EXPECT_EQ(m.curves[0].sources.size(), 2U);
  EXPECT_EQ(m.curves[1].name(), "b/sendrecv/2");
  EXPECT_EQ(m.curves[1].interconnect, "NVLink (4 GPUs, one node)");
  ASSERT_EQ(m.unused.size(), 1U);  // the one-rank row
}

TEST(CollectiveCsv, BadInputs) {
  const Text header = "collective,n_ranks,message_bytes,time_us\n";
  EXPECT_HAS(refused("collective,n_ranks,message_bytes\nall_reduce,2,8\n"), "time_us");
  EXPECT_HAS(refused(header), "no row");
  EXPECT_HAS(refused(header + "all_reduce,2,8,0\n"), "line 2");
  EXPECT_HAS(refused(header + "all_reduce,2,8,NaN\n"), "NaN");
  EXPECT_HAS(refused(""), "empty");
  EXPECT_HAS(refused(header + "all_reduce,2,-8,3\n"), "message_bytes");
  EXPECT_HAS(refused(header + "all_reduce,two,8,3\n"), "n_ranks");
  EXPECT_HAS(refused(header + "teleport,2,8,3\n"), "teleport");
  EXPECT_HAS(refused(header + "all_reduce,2,8\n"), "cells");
  EXPECT_HAS(
      refused("collective,n_nodes,gpus_per_node,n_ranks,message_bytes,time_us\nall_reduce,2,4,4,8,3\n"),
      "2 x 4");
}

TEST(MeasuredCollectives, JoinsEqualGroups) {
  MeasuredCollectives all = read(kRanks + kNewHeader + kNewRow);
  all.add(read(kRanks + kOldHeader + kOldRow));
  ASSERT_EQ(all.curves.size(), 1U);
  EXPECT_EQ(all.curves[0].samples.size(), 2U);
}

}  // namespace
}  // namespace stepcast::collective_measurements_test
