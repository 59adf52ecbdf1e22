#include "tests/support/trace_builder.h"

#include <algorithm>
#include <cmath>

namespace stepcast::test {
namespace {
Nanoseconds ns(double us) { return Nanoseconds{std::llround(us * 1000)}; }
}  // namespace

TraceBuilder::TraceBuilder(int rank, int world_size) {
  rank_.file = "rank" + std::to_string(rank) + ".json";
  rank_.rank = rank;
  rank_.world_size = world_size;
  rank_.devices.push_back({0, "Test GPU", 0, 80, 2048});
}

int TraceBuilder::thread(std::int64_t tid) {
  rank_.threads.push_back({1, tid, {}});
  return static_cast<int>(rank_.threads.size()) - 1;
}

TraceBuilder& TraceBuilder::op(int thread, std::string_view name, double start_us, double duration_us) {
  CpuOp op;
  op.start = ns(start_us);
  op.duration = ns(duration_us);
  op.name = rank_.names.intern(name);
  op.thread = ThreadId{thread};
  op.order = next_order_++;
  rank_.cpu_ops.push_back(op);
  return *this;
}

TraceBuilder& TraceBuilder::sequence(std::int64_t number) {
  rank_.cpu_ops.back().sequence_number = number;
  return *this;
}

TraceBuilder& TraceBuilder::annotation(int thread, std::string_view name, double start_us,
                                       double duration_us) {
  op(thread, name, start_us, duration_us);
  rank_.cpu_ops.back().kind = CpuOp::Kind::annotation;
  return *this;
}

TraceBuilder& TraceBuilder::step(int thread, int number, double start_us, double duration_us) {
  op(thread, "ProfilerStep#" + std::to_string(number), start_us, duration_us);
  rank_.cpu_ops.back().kind = CpuOp::Kind::step;
  return *this;
}

std::int64_t TraceBuilder::call(int thread, std::string_view name, double start_us, double duration_us) {
  RuntimeCall call;
  call.start = ns(start_us);
  call.duration = ns(duration_us);
  call.name = rank_.names.intern(name);
  call.thread = ThreadId{thread};
  call.correlation = next_correlation_++;
  rank_.runtime_calls.push_back(call);
  return call.correlation;
}

TraceBuilder& TraceBuilder::kernel(std::int64_t correlation, int stream, std::string_view name,
                                   double start_us, double duration_us, float blocks_per_sm) {
  GpuOp op;
  op.start = ns(start_us);
  op.duration = ns(duration_us);
  op.name = rank_.names.intern(name);
  op.stream = stream;
  op.correlation = correlation;
  op.blocks_per_sm = blocks_per_sm;
  rank_.gpu_ops.push_back(op);
  return *this;
}

TraceBuilder& TraceBuilder::memcpy(std::int64_t correlation, int stream, std::string_view name,
                                   double start_us, double duration_us) {
  kernel(correlation, stream, name, start_us, duration_us);
  rank_.gpu_ops.back().kind = GpuOp::Kind::memcpy;
  return *this;
}

TraceBuilder& TraceBuilder::launch(int thread, double call_us, double call_length_us, int stream,
                                   std::string_view kernel_name, double start_us, double duration_us) {
  return kernel(call(thread, "cudaLaunchKernel", call_us, call_length_us), stream, kernel_name, start_us,
                duration_us);
}

TraceBuilder& TraceBuilder::stream_wait(std::int64_t correlation, int waiting_stream, int awaited_stream,
                                        std::int64_t record_correlation) {
  StreamSync sync;
  sync.kind = StreamSync::Kind::stream_wait_event;
  sync.correlation = correlation;
  sync.stream = waiting_stream;
  sync.wait_on_stream = awaited_stream;
  sync.wait_on_event_record_correlation = record_correlation;
  rank_.stream_syncs.push_back(sync);
  return *this;
}

TraceBuilder& TraceBuilder::allocator(double at_us, std::int64_t allocated_bytes,
                                      std::int64_t reserved_bytes) {
  rank_.allocator_states.push_back({ns(at_us), 0, allocated_bytes, reserved_bytes});
  return *this;
}

RecordedRank TraceBuilder::build() const {
  RecordedRank rank = rank_;
  const auto before = [](const auto& a, const auto& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  };
  std::stable_sort(rank.cpu_ops.begin(), rank.cpu_ops.end(), before);
  std::stable_sort(rank.runtime_calls.begin(), rank.runtime_calls.end(), before);
  std::stable_sort(rank.gpu_ops.begin(), rank.gpu_ops.end(), before);
  return rank;
}

}  // namespace stepcast::test
