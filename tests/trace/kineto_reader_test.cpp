// Hand-written traces, one quirk each.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/trace/readers.h"

namespace stepcast::kineto_reader_test {
namespace {

RecordedRank read(std::string_view json) {
  auto rank = parse_kineto(json, "t.json");
  EXPECT_TRUE(rank.ok()) << rank.error().message();
  return rank.ok() ? *std::move(rank) : RecordedRank{};
}

// A trace of the given events with the given members behind them.
RecordedRank read_events(const std::string& events, const std::string& more = "") {
  return read("{\"schemaVersion\": 1, \"traceEvents\": [" + events + "]" + more + "}");
}

std::string message_of(std::string_view json) {
  const auto rank = parse_kineto(json, "t.json");
  return rank.ok() ? "no error" : rank.error().message();
}

using Skips = std::map<std::string, std::uint64_t>;

TEST(KinetoReader, ReadsOneEventOfEverySort) {
  const RecordedRank rank =
      read_events(R"J(
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 6, "ts": 100.500, "dur": 20.25,
     "args": {"External id": 7, "Record function id": 70, "Ev Idx": 8, "Sequence number": 9, "Fwd thread id": 1,
              "Input Dims": [[2, 3], [3, 4], []], "Input type": ["float", "float", "Int"]}},
    {"ph": "X", "cat": "user_annotation", "name": "## forward ##", "pid": 5, "tid": 6, "ts": 99, "dur": 30, "args": {"External id": 6}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#12", "pid": 5, "tid": 6, "ts": 98, "dur": 50, "args": {}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 6, "ts": 105, "dur": 5,
     "args": {"External id": 7, "cbid": 211, "correlation": 33}},
    {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 112, "dur": 40,
     "args": {"External id": 7, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 33,
              "registers per thread": 80, "blocks per SM": 4.5, "grid": [10, 20, 3], "block": [128, 1, 1]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 22, "ts": 101, "dur": 3,
     "args": {"External id": 3, "device": 0, "stream": 22, "correlation": 31, "bytes": 4096, "memory bandwidth (GB/s)": 1.3}},
    {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 111, "dur": 1,
     "args": {"device": 0, "stream": 7, "correlation": 32, "bytes": 64}},
    {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 7, "ts": 120, "dur": 0,
     "args": {"cuda_sync_kind": "Stream Wait Event", "stream": 7, "correlation": 40, "device": 0, "context": 1,
              "wait_on_stream": 22, "wait_on_cuda_event_record_corr_id": 39, "wait_on_cuda_event_id": 2}},
    {"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "ts": 0, "args": {"name": "thread 6 (python)"}})J",
                  R"J(, "deviceProperties": [{"id": 0, "name": "A100", "totalGlobalMem": 42297524224,
      "maxThreadsPerMultiprocessor": 2048, "numSms": 108}], "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8})J");

  EXPECT_EQ(rank.schema, "1");
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.world_size, 8);
  ASSERT_EQ(rank.devices.size(), 1U);
  EXPECT_EQ(rank.devices[0].name, "A100");
  EXPECT_EQ(rank.devices[0].memory_bytes, 42297524224);
  EXPECT_EQ(rank.devices[0].sm_count, 108);
  EXPECT_EQ(rank.devices[0].max_threads_per_sm, 2048);
  EXPECT_EQ(rank.event_count, 9U);
  EXPECT_EQ(rank.skipped, (Skips{{"metadata", 1}}));
  ASSERT_EQ(rank.threads.size(), 1U);
  EXPECT_EQ(rank.threads[0].pid, 5);
  EXPECT_EQ(rank.threads[0].tid, 6);
  EXPECT_EQ(rank.threads[0].name, "thread 6 (python)");

  ASSERT_EQ(rank.cpu_ops.size(), 3U);
  EXPECT_EQ(rank.cpu_ops[0].kind, CpuOp::Kind::step);
  EXPECT_EQ(rank.cpu_ops[1].kind, CpuOp::Kind::annotation);
  const CpuOp& op = rank.cpu_ops[2];
  EXPECT_EQ(op.kind, CpuOp::Kind::op);
  EXPECT_EQ(rank.names.text(op.name), "aten::mm");
  EXPECT_EQ(op.start.count(), 100'500);
  EXPECT_EQ(op.duration.count(), 20'250);
  EXPECT_EQ(op.external_id, 7);
  EXPECT_EQ(op.order, 8) << "Ev Idx before Record function id";
  EXPECT_EQ(op.sequence_number, 9);
  EXPECT_EQ(rank.names.text(op.input_shapes), "[[2,3],[3,4],[]]");

  ASSERT_EQ(rank.runtime_calls.size(), 1U);
  EXPECT_EQ(rank.runtime_calls[0].correlation, 33);
  EXPECT_EQ(rank.runtime_calls[0].external_id, 7);

  ASSERT_EQ(rank.gpu_ops.size(), 3U);
  const GpuOp& copy = rank.gpu_ops[0];
  EXPECT_EQ(copy.kind, GpuOp::Kind::memcpy);
  EXPECT_EQ(copy.bytes, 4096);
  EXPECT_EQ(copy.stream, 22);
  EXPECT_EQ(rank.gpu_ops[1].kind, GpuOp::Kind::memset);
  const GpuOp& kernel = rank.gpu_ops[2];
  EXPECT_EQ(kernel.kind, GpuOp::Kind::kernel);
  EXPECT_EQ(kernel.blocks, 600);
  EXPECT_EQ(kernel.blocks_per_sm, 4.5F);
  EXPECT_EQ(kernel.correlation, 33);
  EXPECT_EQ(kernel.end().count(), 152'000);

  ASSERT_EQ(rank.stream_syncs.size(), 1U);
  const StreamSync& sync = rank.stream_syncs[0];
  EXPECT_EQ(sync.kind, StreamSync::Kind::stream_wait_event);
  EXPECT_EQ(sync.stream, 7);
  EXPECT_EQ(sync.wait_on_stream, 22);
  EXPECT_EQ(sync.wait_on_event_record_correlation, 39);
  EXPECT_EQ(sync.correlation, 40);
}

TEST(KinetoReader, TakesOldCategoriesAndTextThreadIds) {
  const RecordedRank rank = read(R"J([
    {"ph": "X", "cat": "Operator", "name": "aten::fill_", "pid": 67844, "tid": "4093687616", "ts": 1606910596297059, "dur": 7,
     "args": {"Input dims": [[1], []], "Device": 0, "External id": 3, "Trace name": "PyTorch Profiler"}},
    {"ph": "X", "cat": "Operator", "name": "ProfilerStep#5", "pid": 67844, "tid": "4093687616", "ts": 1606910596297000, "dur": 211206, "args": {}},
    {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 67844, "tid": "4093687616", "ts": 1606910596350464, "dur": 2494,
     "args": {"cbid": 41, "correlation": 65460, "external id": 862, "external ts": 1606910596350436}},
    {"ph": "s", "id": 65460, "pid": 67844, "tid": 4093687616, "ts": 1606910596350464, "cat": "async", "name": "launch"},
    {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": "stream 7", "ts": 1606910596350714, "dur": 2353,
     "args": {"device": 0, "context": 1, "stream": 7, "correlation": 65460, "external id": 862, "bytes": 19267584}},
    {"ph": "f", "id": 65460, "pid": 0, "tid": "stream 7", "ts": 1606910596350714, "cat": "async", "name": "launch", "bp": "e"},
    {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 23", "ts": 1606910596288081, "dur": 1},
    {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1606910596288085, "dur": 379,
     "args": {"queued": 0, "device": 0, "stream": 7, "correlation": 60032, "external id": 0, "grid": [4, 8, 32]}},
    {"ph": "X", "cat": "Trace", "ts": 1606910596288053, "dur": 1292265, "pid": "Traces", "tid": "PyTorch Profiler", "name": "x"},
    {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1606910597580318}])J");
  ASSERT_EQ(rank.cpu_ops.size(), 2U);
  EXPECT_EQ(rank.cpu_ops[0].kind, CpuOp::Kind::step) << "the step was an operator then";
  EXPECT_EQ(rank.names.text(rank.cpu_ops[1].input_shapes), "[[1],[]]");
  ASSERT_EQ(rank.threads.size(), 1U);
  EXPECT_EQ(rank.threads[0].tid, 4093687616);
  ASSERT_EQ(rank.runtime_calls.size(), 1U);
  EXPECT_EQ(rank.runtime_calls[0].external_id, 862);
  ASSERT_EQ(rank.gpu_ops.size(), 3U);
  EXPECT_EQ(rank.gpu_ops[0].kind, GpuOp::Kind::memset);
  EXPECT_EQ(rank.gpu_ops[0].stream, 23) << "from the row where the args do not tell it";
  EXPECT_EQ(rank.gpu_ops[1].blocks, 1024);
  EXPECT_EQ(rank.gpu_ops[2].bytes, 19267584);
  EXPECT_EQ(rank.skipped, (Skips{{"Trace", 1}, {"flow", 2}, {"instant", 1}}));
  EXPECT_EQ(rank.event_count, 10U);
  EXPECT_EQ(rank.schema, "");
}

TEST(KinetoReader, KeepsTimesExactly) {
  const auto start_of = [](const std::string& ts, const std::string& more) {
    const RecordedRank rank = read_events(
        R"J({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": )J" + ts + R"J(, "dur": 0})J",
        more);
    return rank.cpu_ops.empty() ? -1 : rank.cpu_ops[0].start.count();
  };
  EXPECT_EQ(start_of("1712195495502094.5", ""), 1712195495502094500);
  EXPECT_EQ(start_of("1712195495502094", ""), 1712195495502094000);
  EXPECT_EQ(start_of("4458676522690.655", ", \"baseTimeNanoseconds\": 1711964646000000000"),
            1711964646000000000 + 4458676522690655);
  EXPECT_EQ(start_of("4458676522690.655", ", \"displayTimeUnit\": \"ns\""), 4458676522690655)
      << "microseconds all the same";
}

TEST(KinetoReader, TakesTheHeaderOnEitherSideOfTheEvents) {
  const std::string events =
      R"J("traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])J";
  const std::string header =
      R"J("schemaVersion": 1, "distributedInfo": {"rank": 2}, "baseTimeNanoseconds": 5000)J";
  for (const std::string& text : {"{" + header + ", " + events + "}", "{" + events + ", " + header + "}"}) {
    const RecordedRank rank = read(text);
    EXPECT_EQ(rank.rank, 2);
    EXPECT_FALSE(rank.world_size.has_value());
    EXPECT_EQ(rank.cpu_ops.at(0).start.count(), 6000);
  }
}

TEST(KinetoReader, LeavesOutUnknownRanks) {
  EXPECT_FALSE(read(R"J({"traceEvents": []})J").rank.has_value());
  EXPECT_FALSE(read(R"J({"distributedInfo": {"backend": "nccl"}, "traceEvents": []})J").rank.has_value());
  EXPECT_FALSE(
      read(R"J({"distributedInfo": null, "deviceProperties": 7, "traceEvents": []})J").rank.has_value());
  const RecordedRank rank = read(R"J({"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2,
      "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}, "traceEvents": []})J");
  EXPECT_EQ(rank.rank, 0);
  EXPECT_EQ(rank.world_size, 2);
}

TEST(KinetoReader, CountsWhatItSkips) {
  const RecordedRank rank = read_events(R"J(
    {"ph": "X", "cat": "python_function", "name": "f(\"x\")", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"Python id": 1}},
    {"ph": "X", "cat": "python_function", "name": "g", "pid": 1, "tid": 1, "ts": "broken", "dur": -1},
    {"ph": "X", "cat": "overhead", "name": "o", "pid": -1, "tid": 0, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "nccl:all_reduce", "pid": 0, "tid": 40, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1},
    {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"},
    {"ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 1, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    {"ph": "C", "name": "counter", "pid": 1, "ts": 1, "args": {}},
    {"ph": "B", "name": "b", "pid": 1, "tid": 1, "ts": 1, "cat": "cpu_op"},
    {"ph": "X", "cat": "forward-compute", "name": "x", "pid": 0, "tid": 0, "ts": 1, "dur": 1, "args": {"step": 23}},
    {"ph": "X", "cat": "kernel", "name": "open end", "pid": 0, "tid": 7, "ts": 1, "args": {}},
    {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
    {"ph": "X", "name": "what", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
    {"name": "what"})J");
  EXPECT_EQ(rank.event_count, 16U);
  EXPECT_EQ(rank.skipped, (Skips{{"python_function", 2},
                                 {"overhead", 1},
                                 {"gpu annotation", 2},
                                 {"instant", 1},
                                 {"flow", 2},
                                 {"metadata", 1},
                                 {"counter", 1},
                                 {"begin or end without duration", 1},
                                 {"forward-compute", 1},
                                 {"no duration", 1},
                                 {"no name", 1},
                                 {"no category", 1},
                                 {"no phase", 1}}));
}

// What profile_memory=True adds. Device type 0 is the host; releases count, too.
TEST(KinetoReader, KeepsTheTotalsOfTheCachingAllocator) {
  const RecordedRank rank = read_events(R"J(
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 20.5,
     "args": {"Total Reserved": 4096, "Total Allocated": 3000, "Bytes": 2000, "Addr": 139, "Device Id": 1, "Device Type": 1, "Ev Idx": 3}},
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 10,
     "args": {"Total Reserved": 2048, "Total Allocated": 1000, "Bytes": 1000, "Device Id": 1, "Device Type": 1}},
    {"name": "[memory]", "args": {"Total Reserved": 4096, "Total Allocated": 1000, "Bytes": -2000, "Device Id": 1, "Device Type": 1},
     "ph": "i", "ts": 30},
    {"ph": "i", "name": "[memory]", "ts": 15, "args": {"Total Reserved": 0, "Total Allocated": 90000, "Device Id": -1, "Device Type": 0}},
    {"ph": "i", "name": "[memory]", "ts": 16, "args": {"Bytes": 64, "Device Id": 0, "Device Type": 1}},
    {"ph": "i", "name": "another", "ts": "broken"})J");
  ASSERT_EQ(rank.allocator_states.size(), 3U);
  EXPECT_EQ(rank.allocator_states[0].start.count(), 10'000);
  EXPECT_EQ(rank.allocator_states[1].device, 1);
  EXPECT_EQ(rank.allocator_states[1].allocated_bytes, 3000);
  EXPECT_EQ(rank.skipped, (Skips{{"instant", 3}}));
  using std::chrono::nanoseconds;
  const auto peak = allocator_peak(rank, nanoseconds{10'000}, nanoseconds{30'000});
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->allocated_bytes, 3000);
  EXPECT_EQ(peak->reserved_bytes, 4096);
  EXPECT_EQ(allocator_peak(rank, nanoseconds{0}, nanoseconds{19'000})->allocated_bytes, 1000);
  EXPECT_FALSE(allocator_peak(rank, nanoseconds{40'000}, nanoseconds{50'000}));
}

TEST(KinetoReader, KeepsTheListOfSkipReasonsShort) {
  std::string events;
  for (int i = 0; i < 1000; ++i) {
    events += std::string(i == 0 ? "" : ",") + R"J({"ph": "X", "cat": "c)J" + std::to_string(i) +
              R"J(", "name": "x"})J";
  }
  const RecordedRank rank = read_events(events);
  EXPECT_LE(rank.skipped.size(), 101U);
  EXPECT_EQ(rank.skipped.at("other categories"), 900U);
}

TEST(KinetoReader, DropsAnnotationsThatRepeatOnGpuRows) {
  const RecordedRank rank = read_events(R"J(
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 1, "dur": 100},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 2, "dur": 3},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 5, "dur": 90},
    {"ph": "X", "cat": "user_annotation", "name": "block", "pid": 0, "tid": "stream 7", "ts": 5, "dur": 90},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 6, "dur": 5, "args": {"stream": 7, "device": 0}})J");
  ASSERT_EQ(rank.cpu_ops.size(), 2U);
  EXPECT_EQ(rank.cpu_ops[0].start.count(), 1000);
  EXPECT_EQ(rank.skipped, (Skips{{"gpu annotation", 2}}));
  ASSERT_EQ(rank.threads.size(), 1U);
  EXPECT_EQ(rank.threads[0].pid, 9);
}

TEST(KinetoReader, TellsEventsWithoutCategoryByTheirArgs) {
  const RecordedRank rank = read(R"J([
    {"name": "aten::mm", "ph": "X", "ts": 1, "dur": 2, "tid": 1, "pid": "CPU functions", "args": {}},
    {"name": "ampere_sgemm", "ph": "X", "ts": 2, "dur": 2, "tid": 0, "pid": "CUDA functions", "args": {}},
    {"name": "x", "ph": "s", "ts": 1, "tid": 1, "pid": "CPU functions", "id": 1, "cat": "cpu_to_cuda", "args": {}},
    {"ph": "X", "name": "aten::add", "pid": 4, "tid": 4, "ts": 3, "dur": 1, "args": {"External id": 5, "Ev Idx": 6}},
    {"ph": "X", "name": "cudaLaunchKernel", "pid": 4, "tid": 4, "ts": 3.5, "dur": 0.2, "args": {"cbid": 211, "correlation": 8}},
    {"args": {"device": 0, "stream": 7, "correlation": 8}, "ph": "X", "name": "kernel", "pid": 0, "tid": 7, "ts": 4, "dur": 1},
    {"ph": "X", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 9, "bytes": 3}},
    {"ph": "X", "name": "ProfilerStep#3", "pid": 4, "tid": 4, "ts": 0, "dur": 10},
    {"ph": "X", "name": "module.py(3): f", "pid": 4, "tid": 4, "ts": 0, "dur": 10, "args": {"Python id": 3}}])J");
  ASSERT_EQ(rank.cpu_ops.size(), 3U);
  EXPECT_EQ(rank.cpu_ops[0].kind, CpuOp::Kind::step);
  EXPECT_EQ(rank.runtime_calls.size(), 1U);
  ASSERT_EQ(rank.gpu_ops.size(), 3U);
  EXPECT_EQ(rank.gpu_ops[2].kind, GpuOp::Kind::memset);
  EXPECT_EQ(rank.skipped, (Skips{{"flow", 1}, {"python_function", 1}}));
}

TEST(KinetoReader, TakesMembersInAnyOrder) {
  const RecordedRank rank = read(
      R"J([{"args": {"correlation": 4, "stream": 9}, "dur": 2, "name": "k", "cat": "kernel", "tid": 7, "pid": 0, "ts": 1, "ph": "X"}])J");
  ASSERT_EQ(rank.gpu_ops.size(), 1U);
  EXPECT_EQ(rank.gpu_ops[0].correlation, 4);
  EXPECT_EQ(rank.gpu_ops[0].stream, 9);
}

TEST(KinetoReader, TakesAmdEvents) {
  const RecordedRank rank = read_events(R"J(
    {"ph": "X", "cat": "cuda_runtime", "name": "hipExtModuleLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
     "args": {"External id": 8, "kernel": "Cijk", "cid": 153, "correlation": 117, "stream": "0x0", "grid": [64, 1, 1], "size": "2560"}},
    {"ph": "X", "cat": "kernel", "name": "Cijk", "pid": 2, "tid": 0, "ts": 3, "dur": 2,
     "args": {"External id": 8, "device": 2, "stream": 0, "correlation": 117, "kind": "Dispatch Kernel"}})J");
  ASSERT_EQ(rank.runtime_calls.size(), 1U);
  EXPECT_EQ(rank.runtime_calls[0].correlation, 117);
  ASSERT_EQ(rank.gpu_ops.size(), 1U);
  EXPECT_EQ(rank.gpu_ops[0].device, 2);
  EXPECT_EQ(rank.gpu_ops[0].stream, 0);
  EXPECT_EQ(rank.gpu_ops[0].blocks, -1);
}

TEST(KinetoReader, TakesCollectiveMetadata) {
  const RecordedRank rank = read_events(R"J(
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "pid": 0, "tid": 40, "ts": 10, "dur": 5,
     "args": {"stream": 40, "device": 0, "correlation": 3, "Collective name": "_allgather_base", "In msg nelems": 1024,
              "Out msg nelems": 2048, "Group size": 2, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]",
              "Process Group Name": "7", "Process Group Description": "default_pg", "Process Group Ranks": "[4, 6]", "Seq": 12}},
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1, "dur": 5,
     "args": {"Collective name": "all_to_allv", "In msg nelems": 6, "Group size": 2, "dtype": "Float", "In split size": "[2, 4]",
              "Out split size": [3, 3], "Process Group ID": 139863, "Process Group Ranks": "[0, 1, 2, ...]",
              "Comms Id": 10159970886766084423}},
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 8, "dur": 5, "args": {"Input Dims": []}})J");
  ASSERT_EQ(rank.collective_infos.size(), 2U);
  ASSERT_EQ(rank.cpu_ops.size(), 2U);
  EXPECT_EQ(rank.cpu_ops[0].collective, 0) << "ops come first";
  EXPECT_EQ(rank.cpu_ops[1].collective, -1);
  EXPECT_EQ(rank.gpu_ops.at(0).collective, 1);

  const CollectiveInfo& op = rank.collective_infos[0];
  EXPECT_EQ(op.op, CollectiveOp::all_to_all);
  EXPECT_EQ(op.in_elements, 6);
  EXPECT_EQ(op.out_elements, -1);
  EXPECT_EQ(op.in_split, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(op.out_split, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(rank.names.text(op.process_group), "139863");
  EXPECT_TRUE(op.group_ranks.empty()) << "a shortened list is no list";
  EXPECT_EQ(op.sequence, -1);
  EXPECT_EQ(static_cast<std::uint64_t>(op.comms_id), 10159970886766084423U);

  const CollectiveInfo& kernel = rank.collective_infos[1];
  EXPECT_EQ(rank.names.text(kernel.name), "_allgather_base");
  EXPECT_EQ(kernel.op, CollectiveOp::all_gather);
  EXPECT_EQ(kernel.dtype, DType::bf16);
  EXPECT_EQ(kernel.in_elements, 1024);
  EXPECT_EQ(kernel.out_elements, 2048);
  EXPECT_EQ(kernel.group_size, 2);
  EXPECT_EQ(kernel.sequence, 12);
  EXPECT_EQ(rank.names.text(kernel.process_group), "7");
  EXPECT_EQ(kernel.group_ranks, (std::vector<std::int32_t>{4, 6}));
}

TEST(KinetoReader, PassesOverArgsOfUnexpectedType) {
  const RecordedRank rank = read_events(R"J(
    {"ph": "X", "cat": "kernel", "name": "k", "pid": null, "tid": {"a": 1}, "ts": 1, "dur": 1,
     "args": {"correlation": "abc", "stream": "12", "device": 1.5, "bytes": null, "grid": "big", "blocks per SM": "x", "External id": -3}},
    {"ph": "X", "cat": "kernel", "name": "no args", "pid": 0, "tid": 3, "ts": 2, "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "null args", "pid": 0, "tid": 3, "ts": 3, "dur": 1, "args": null},
    {"ph": "X", "cat": "kernel", "name": "huge grid", "pid": 0, "tid": 3, "ts": 4, "dur": 1, "args": {"grid": [2147483647, 65535, 65535]}})J");
  ASSERT_EQ(rank.gpu_ops.size(), 4U);
  EXPECT_EQ(rank.gpu_ops[0].correlation, -1);
  EXPECT_EQ(rank.gpu_ops[0].stream, 12);
  EXPECT_EQ(rank.gpu_ops[0].bytes, -1);
  EXPECT_EQ(rank.gpu_ops[0].blocks, -1);
  EXPECT_EQ(rank.gpu_ops[0].external_id, -3);
  EXPECT_EQ(rank.gpu_ops[1].stream, 3);
  EXPECT_EQ(rank.gpu_ops[3].blocks, 2147483647);
}

TEST(KinetoReader, ResolvesEscapedNames) {
  const RecordedRank rank = read_events(
      R"J({"ph": "X", "cat": "kernel", "name": "k<\"a\">\u0021", "pid": 0, "tid": 3, "ts": 1, "dur": 1})J");
  EXPECT_EQ(rank.names.text(rank.gpu_ops.at(0).name), "k<\"a\">!");
}

TEST(KinetoReader, SaysWhatIsWrongAndWhere) {
  const std::string event = R"J({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, )J";
  EXPECT_EQ(message_of("[" + event + R"J("ts": 1, "dur": 1, "args": {"stream" 7}}])J"),
            "t.json: [0] at byte 100: found \"7}}\", expected ':'; the event is damaged");
  EXPECT_EQ(message_of("[1, 2]"), "t.json: [0] at byte 1: found \"1\", expected an event (a JSON object)");
  EXPECT_EQ(message_of(R"J({"nodes": [], "schema": "1.0.1"})J"),
            "t.json: found a PyTorch execution trace (a list of \"nodes\"), expected a profiler trace (a "
            "list of \"traceEvents\")");
  EXPECT_EQ(message_of(R"J({"a": 1})J"),
            "t.json: found a JSON object without \"traceEvents\", expected a profiler trace");
  EXPECT_EQ(message_of(R"J({"baseTimeNanoseconds": "soon", "traceEvents": []})J"),
            "t.json: baseTimeNanoseconds: found \"\"soon\"\", expected whole nanoseconds");
  EXPECT_EQ(message_of(R"J({"baseTimeNanoseconds": 9223372036854775807, "traceEvents": []})J"),
            "t.json: baseTimeNanoseconds: found 9223372036854775807 and events up to that many nanoseconds "
            "later, expected times within 126 years of 1970");
}

TEST(KinetoReader, ReadsGzip) {
  const auto compressed =
      gzip_compress(R"J([{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}])J");
  ASSERT_TRUE(compressed.ok());
  EXPECT_EQ(read(*compressed).gpu_ops.size(), 1U);
}

TEST(ProfilerStepNumber, NeedsTheWholeName) {
  EXPECT_EQ(profiler_step_number("ProfilerStep#17"), 17);
  for (const char* name : {"ProfilerStep", "ProfilerStep#", "ProfilerStep#1x", "ProfilerStep#-1",
                           "ProfilerStep# 1", "ProfilerStep#99999999999999999999", "profilerstep#1"}) {
    EXPECT_FALSE(profiler_step_number(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace stepcast::kineto_reader_test
