#include "lab/kineto_writer.h"

#include <filesystem>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "stepcast/trace/detail/repair_times.h"
#include "stepcast/trace/readers.h"

#include "tests/support/data.h"

namespace stepcast::kineto_writer_test {
namespace {

// Everything that a trace file can carry, names resolved.
void expect_equal(const RecordedRank& a, const RecordedRank& b) {
  const auto text = [](const RecordedRank& rank, NameId id) {
    return id.valid() ? std::string(rank.names.text(id)) : std::string("(none)");
  };
  EXPECT_EQ(a.schema, b.schema);
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.world_size, b.world_size);
  ASSERT_EQ(a.devices.size(), b.devices.size());
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    EXPECT_EQ(a.devices[i].id, b.devices[i].id);
    EXPECT_EQ(a.devices[i].name, b.devices[i].name);
    EXPECT_EQ(a.devices[i].memory_bytes, b.devices[i].memory_bytes);
    EXPECT_EQ(a.devices[i].sm_count, b.devices[i].sm_count);
    EXPECT_EQ(a.devices[i].max_threads_per_sm, b.devices[i].max_threads_per_sm);
  }
  ASSERT_EQ(a.threads.size(), b.threads.size());
  for (std::size_t i = 0; i < a.threads.size(); ++i) {
    EXPECT_EQ(a.threads[i].pid, b.threads[i].pid);
    EXPECT_EQ(a.threads[i].tid, b.threads[i].tid);
    EXPECT_EQ(a.threads[i].name, b.threads[i].name);
  }
  ASSERT_EQ(a.cpu_ops.size(), b.cpu_ops.size());
  for (std::size_t i = 0; i < a.cpu_ops.size(); ++i) {
    const CpuOp& x = a.cpu_ops[i];
    const CpuOp& y = b.cpu_ops[i];
    ASSERT_EQ(x.start, y.start) << i;
    ASSERT_EQ(x.duration, y.duration);
    ASSERT_EQ(text(a, x.name), text(b, y.name));
    ASSERT_EQ(x.thread, y.thread);
    ASSERT_EQ(text(a, x.input_shapes), text(b, y.input_shapes));
    ASSERT_EQ(x.external_id, y.external_id);
    ASSERT_EQ(x.order, y.order);
    ASSERT_EQ(x.sequence_number, y.sequence_number);
    ASSERT_EQ(x.collective, y.collective);
    ASSERT_EQ(x.kind, y.kind);
  }
  ASSERT_EQ(a.allocator_states.size(), b.allocator_states.size());
  for (std::size_t i = 0; i < a.allocator_states.size(); ++i) {
    EXPECT_EQ(a.allocator_states[i].start, b.allocator_states[i].start);
    EXPECT_EQ(a.allocator_states[i].device, b.allocator_states[i].device);
    EXPECT_EQ(a.allocator_states[i].allocated_bytes, b.allocator_states[i].allocated_bytes);
    EXPECT_EQ(a.allocator_states[i].reserved_bytes, b.allocator_states[i].reserved_bytes);
  }
  ASSERT_EQ(a.runtime_calls.size(), b.runtime_calls.size());
  for (std::size_t i = 0; i < a.runtime_calls.size(); ++i) {
    const RuntimeCall& x = a.runtime_calls[i];
    const RuntimeCall& y = b.runtime_calls[i];
    ASSERT_EQ(x.start, y.start) << i;
    ASSERT_EQ(x.duration, y.duration);
    ASSERT_EQ(text(a, x.name), text(b, y.name));
    ASSERT_EQ(x.thread, y.thread);
    ASSERT_EQ(x.correlation, y.correlation);
    ASSERT_EQ(x.external_id, y.external_id);
  }
  ASSERT_EQ(a.gpu_ops.size(), b.gpu_ops.size());
  for (std::size_t i = 0; i < a.gpu_ops.size(); ++i) {
    const GpuOp& x = a.gpu_ops[i];
    const GpuOp& y = b.gpu_ops[i];
    ASSERT_EQ(x.start, y.start) << i;
    ASSERT_EQ(x.duration, y.duration);
    ASSERT_EQ(text(a, x.name), text(b, y.name));
    ASSERT_EQ(x.device, y.device);
    ASSERT_EQ(x.stream, y.stream);
    ASSERT_EQ(x.correlation, y.correlation);
    ASSERT_EQ(x.external_id, y.external_id);
    ASSERT_EQ(x.bytes, y.bytes);
    ASSERT_EQ(x.blocks_per_sm, y.blocks_per_sm);
    ASSERT_EQ(x.blocks, y.blocks);
    ASSERT_EQ(x.collective, y.collective);
    ASSERT_EQ(x.kind, y.kind);
  }
  ASSERT_EQ(a.stream_syncs.size(), b.stream_syncs.size());
  for (std::size_t i = 0; i < a.stream_syncs.size(); ++i) {
    const StreamSync& x = a.stream_syncs[i];
    const StreamSync& y = b.stream_syncs[i];
    ASSERT_EQ(x.start, y.start) << i;
    ASSERT_EQ(x.duration, y.duration);
    ASSERT_EQ(x.correlation, y.correlation);
    ASSERT_EQ(x.stream, y.stream);
    ASSERT_EQ(x.wait_on_stream, y.wait_on_stream);
    ASSERT_EQ(x.wait_on_event_record_correlation, y.wait_on_event_record_correlation);
    ASSERT_EQ(x.kind, y.kind);
  }
  ASSERT_EQ(a.collective_infos.size(), b.collective_infos.size());
  for (std::size_t i = 0; i < a.collective_infos.size(); ++i) {
    const CollectiveInfo& x = a.collective_infos[i];
    const CollectiveInfo& y = b.collective_infos[i];
    ASSERT_EQ(a.names.text(x.name), b.names.text(y.name)) << i;
    ASSERT_EQ(x.op, y.op);
    ASSERT_EQ(x.dtype, y.dtype);
    ASSERT_EQ(x.in_elements, y.in_elements);
    ASSERT_EQ(x.out_elements, y.out_elements);
    ASSERT_EQ(x.group_size, y.group_size);
    ASSERT_EQ(text(a, x.process_group), text(b, y.process_group));
    ASSERT_EQ(x.sequence, y.sequence);
    ASSERT_EQ(x.comms_id, y.comms_id);
    ASSERT_EQ(x.group_ranks, y.group_ranks);
    ASSERT_EQ(x.in_split, y.in_split);
    ASSERT_EQ(x.out_split, y.out_split);
  }
}

// The reader cuts what cannot be.
void expect_round_trip(RecordedRank rank) {
  detail::repair_times(rank);
  const auto back = parse_kineto(to_kineto_json(rank), "written");
  ASSERT_TRUE(back.ok()) << back.error().message();
  expect_equal(rank, *back);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::int64_t below(std::int64_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::int64_t>((state_ >> 11) % static_cast<std::uint64_t>(n));
  }
  std::int64_t id() { return below(4) == 0 ? -1 : below(2) == 0 ? below(1000) : -2 - below(INT64_MAX / 2); }
  std::string name() {
    constexpr std::string_view kParts[] = {"aten::", "\"", "\\", "\n", "\x01", "\xc3\xa9",
                                           "k<int>", "{",  "]",  " ",  "u0041"};
    std::string text = "n";
    for (std::int64_t i = below(6); i > 0; --i) text += kParts[below(std::size(kParts))];
    return text;
  }

 private:
  std::uint64_t state_;
};

// Any rank in the reader's normal form: arrays sorted, threads by (pid, tid), collectives by use.
RecordedRank random_rank(std::uint64_t seed) {
  Random random(seed);
  RecordedRank rank;
  if (random.below(2) == 0) rank.schema = random.below(2) == 0 ? "1" : "v \"2\"";
  if (random.below(2) == 0) rank.rank = static_cast<std::int32_t>(random.below(100));
  if (random.below(2) == 0) rank.world_size = static_cast<std::int32_t>(random.below(100));
  for (std::int64_t i = random.below(3); i > 0; --i) {
    rank.devices.push_back(
        {static_cast<std::int32_t>(random.below(8)), random.name(), random.below(INT64_MAX), 108, 2048});
  }
  const std::int64_t threads = 1 + random.below(4);
  for (std::int64_t i = 0; i < threads; ++i) {
    rank.threads.push_back({1000 + i / 2, i, random.below(2) == 0 ? random.name() : ""});
  }
  const std::int64_t epoch = random.below(2) == 0 ? 1712195495502094501 : -5;
  const auto collective = [&] {
    if (random.below(3) != 0) return -1;
    CollectiveInfo info;
    constexpr const char* kNames[] = {"allreduce", "_allgather_base", "all_to_allv", "odd \"name\""};
    info.name = rank.names.intern(kNames[random.below(4)]);
    info.op = parse_collective_op(rank.names.text(info.name));
    info.dtype = static_cast<DType>(random.below(static_cast<std::int64_t>(DType::boolean) + 1));
    info.in_elements = random.id();
    info.out_elements = random.below(100) - 1;
    info.group_size = static_cast<std::int32_t>(random.below(100)) - 1;
    if (random.below(2) == 0) info.process_group = rank.names.intern(random.name());
    info.sequence = random.id();
    info.comms_id = random.id();
    for (std::int64_t i = random.below(4); i > 0; --i)
      info.group_ranks.push_back(static_cast<std::int32_t>(random.below(64)));
    for (std::int64_t i = random.below(4); i > 0; --i) info.in_split.push_back(random.below(64));
    rank.collective_infos.push_back(std::move(info));
    return static_cast<int>(rank.collective_infos.size()) - 1;
  };
  std::int64_t start = epoch;
  const auto next = [&](auto& event) {
    start += 1 + random.below(3000);
    event.start = Nanoseconds{start};
    event.duration = Nanoseconds{random.below(5000)};
  };
  std::vector<bool> used(rank.threads.size());
  const auto thread = [&] {
    const auto i = static_cast<std::size_t>(random.below(threads));
    used[i] = true;
    return ThreadId{i};
  };
  for (std::int64_t i = random.below(40); i > 0; --i) {
    CpuOp op;
    next(op);
    const auto kind = random.below(3);
    op.kind = static_cast<CpuOp::Kind>(kind);
    std::string name = kind == 2 ? "ProfilerStep#" + std::to_string(random.below(50)) : random.name();
    if (kind == 0 && random.below(3) == 0) {
      name = "record_param_comms";
      op.collective = collective();
    }
    op.name = rank.names.intern(name);
    op.thread = thread();
    if (random.below(2) == 0) op.input_shapes = rank.names.intern("[[1,2],[]]");
    op.external_id = random.id();
    op.order = random.id();
    op.sequence_number = random.id();
    rank.cpu_ops.push_back(op);
  }
  start = epoch;
  for (std::int64_t i = random.below(40); i > 0; --i) {
    RuntimeCall call;
    next(call);
    call.name = rank.names.intern(random.name());
    call.thread = thread();
    call.correlation = random.id();
    call.external_id = random.id();
    rank.runtime_calls.push_back(call);
  }
  start = epoch;
  for (std::int64_t i = random.below(40); i > 0; --i) {
    GpuOp op;
    next(op);
    op.name = rank.names.intern(random.name());
    op.device = static_cast<std::int32_t>(random.below(8));
    op.stream = static_cast<std::int32_t>(random.below(100)) - 1;
    op.correlation = random.id();
    op.external_id = random.id();
    op.bytes = random.id();
    op.blocks_per_sm = random.below(2) == 0 ? -1.0F : static_cast<float>(random.below(100000)) / 977.0F;
    op.blocks = random.below(2) == 0 ? -1 : static_cast<std::int32_t>(random.below(INT32_MAX));
    op.kind = static_cast<GpuOp::Kind>(random.below(3));
    if (op.kind == GpuOp::Kind::kernel) op.collective = collective();
    rank.gpu_ops.push_back(op);
  }
  start = epoch;
  for (std::int64_t i = random.below(10); i > 0; --i) {
    StreamSync sync;
    next(sync);
    sync.correlation = random.id();
    sync.stream = random.below(20) - 1;
    sync.wait_on_stream = random.below(20) - 1;
    sync.wait_on_event_record_correlation = random.id();
    sync.kind = static_cast<StreamSync::Kind>(random.below(5));
    rank.stream_syncs.push_back(sync);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {  // a reader lists only threads that hold something
    if (used[i]) continue;
    start += 1;
    RuntimeCall call;
    call.start =
        Nanoseconds{rank.runtime_calls.empty() ? epoch : rank.runtime_calls.back().start.count() + 1};
    call.name = rank.names.intern("call");
    call.thread = ThreadId{i};
    rank.runtime_calls.push_back(call);
  }
  return rank;
}

TEST(KinetoWriter, WritesWhatTheReaderReadsBack) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    expect_round_trip(random_rank(seed));
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  expect_round_trip(RecordedRank{});
}

TEST(KinetoWriter, WritesMeasuredTracesBack) {
  SKIP_WITHOUT_DATA();
  for (const char* file : {"nccl_data/nccl_data.json.gz", "dlrm8/kineto_rank3.json.gz",
                           "ns_resolution/rank-0.json.gz", "kineto_w0/worker0.pt.trace.json.gz",
                           "hta_small/cuda_event_sync_multi_stream__event_sync_trace.json.gz",
                           "hta_small/amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz",
                           "hta_small/large_integer_trace__rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz"}) {
    SCOPED_TRACE(file);
    const auto rank = read_kineto(*test::measured_data() / "traces" / file);
    ASSERT_TRUE(rank.ok()) << rank.error().message();
    expect_round_trip(*rank);
  }
}

TEST(KinetoWriter, WritesFilesPlainAndCompressed) {
  const RecordedRank rank = random_rank(5);
  for (const char* name : {"out.json", "out.json.gz"}) {
    const auto file = std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name);
    ASSERT_TRUE(write_kineto(rank, file).ok());
    const auto back = read_kineto(file);
    std::filesystem::remove(file);
    ASSERT_TRUE(back.ok()) << back.error().message();
    expect_equal(rank, *back);
  }
  EXPECT_FALSE(write_kineto(rank, "/no/such/folder/out.json").ok());
}

}  // namespace
}  // namespace stepcast::kineto_writer_test
