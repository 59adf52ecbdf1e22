// The script of a rank as the virtual machine runs it, and beside it what a profiler will write down of the run.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/support/trace_generator.h"
#include "tests/support/virtual_machine.h"

namespace stepcast::test::generator {
using machine::Instruction;
using machine::Item;
using machine::ItemKind;
using machine::kNone;
using machine::Random;

inline constexpr int kComputeStream = 7, kCopyStream = 22, kDistributionStream = 24, kCommStream = 84,
                     kNcclInternalStream = 92;
inline constexpr int kStreams[] = {kComputeStream, kCopyStream, kDistributionStream, kCommStream,
                                   kNcclInternalStream};
inline constexpr int kMain = 0, kAutograd = 1;
inline constexpr int kEmbeddingDim = 64;
inline constexpr int kMultiprocessors = 80;

template <class T>
const T& cyclic(const std::vector<T>& values, int index) {
  return values[static_cast<std::size_t>(index) % values.size()];
}

// ------------------------------------------------------------------------------------------------------------------------------------
// Values as execution traces write them.

struct Tensor {
  std::int64_t id = 0;
  std::int64_t storage = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  const char* type = "float";
  int element_bytes = 4;
  bool on_gpu = true;

  std::int64_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::string use() const {
    return fmt::format(R"([{},{},{},{},{},"{}"])", id, storage, offset, elements(), element_bytes,
                       on_gpu ? "cuda:0" : "cpu");
  }
  std::string shape_text() const { return fmt::format("[{}]", fmt::join(shape, ",")); }
};

struct Value {
  std::string text, shape, type;
  std::string profiler_shape = "[]";

  // NOLINTBEGIN(google-explicit-constructor): whatever an operation takes is written as it is in a call
  Value(const Tensor& t)
      : text(t.use()),
        shape(t.shape_text()),
        type(fmt::format("Tensor({})", t.type)),
        profiler_shape(shape) {}
  Value(int number) : Value(std::int64_t{number}) {}
  Value(std::int64_t number) : text(fmt::format("{}", number)), shape("[]"), type("Int") {}
  Value(double number) : text(fmt::format("{}", number)), shape("[]"), type("Double") {}
  Value(const char* word) : text(fmt::format("\"{}\"", word)), shape("[]"), type("String") {}
  Value(const std::vector<Tensor>& list) {
    std::vector<std::string> uses, shapes, types;
    for (const Tensor& t : list) {
      uses.push_back(t.use());
      shapes.push_back(t.shape_text());
      types.push_back(fmt::format("Tensor({})", t.type));
    }
    text = fmt::format("[{}]", fmt::join(uses, ","));
    shape = fmt::format("[{}]", fmt::join(shapes, ","));
    type = fmt::format("GenericList[{}]", fmt::join(types, ","));
  }
  Value(const std::vector<std::int64_t>& list) {
    text = fmt::format("[{}]", fmt::join(list, ","));
    shape = fmt::format("[{}]", fmt::join(std::vector<std::string>(list.size(), "[]"), ","));
    type = fmt::format("GenericList[{}]", fmt::join(std::vector<std::string>(list.size(), "Int"), ","));
  }
  // NOLINTEND(google-explicit-constructor)
};
using Values = std::vector<Value>;

// ------------------------------------------------------------------------------------------------------------------------------------
// What the profiler will have to write down about the script of a rank.

struct OpRecord {
  std::string name;
  CpuOp::Kind kind = CpuOp::Kind::op;
  int thread = kMain;
  std::size_t begin = 0, end = 0;  // marks in the thread's script
  std::string input_shapes;
  std::int64_t external_id = -1, order = -1, sequence_number = -1;
  std::int32_t collective = -1;
};
struct CallRecord {
  std::string name;
  int thread = kMain;
  std::size_t instruction = 0;
  std::int64_t correlation = 0, op_id = -1;
  bool visible = true;  // the profiler writes it down
};
struct ItemRecord {
  std::string name = {};
  int stream = kComputeStream;
  GpuOp::Kind kind = GpuOp::Kind::kernel;
  std::int64_t bytes = -1;
  std::int32_t blocks = -1;
  std::int32_t collective = -1;  // metadata
  int group = kNone;             // index of the collective in the job
  std::size_t call = 0;
  WaitPattern pattern = WaitPattern::other_stream;  // of waits
  bool no_effect = false;                           // NCCL's own
};
struct SyncRecord {
  StreamSync::Kind kind = StreamSync::Kind::other;
  std::size_t call = 0;
  std::int64_t stream = -1, wait_on_stream = -1, record_correlation = -1;
};
struct SynchronizingCall {
  std::size_t call = 0;
  int stream = kNone;     // kNone: the whole device
  std::size_t items = 0;  // of the rank, put into streams until then
};

struct Work {  // a collective under way
  std::int64_t sequence = 0;
  int event = kNone;
  std::size_t record_call = 0;
};

struct Shared {  // what the ranks agree on
  std::vector<machine::Collective> machine;
  std::vector<TrueCollective> truth;
};

// Writes the script of one rank, and beside it what will be recorded of it.
class ScriptWriter {
 public:
  const machine::RankScript& script() const { return script_; }
  // What the profiler writes down of the run. Adds this rank's GPU op and arrival to the collectives.
  GeneratedRank record(const machine::RankRun& run, std::vector<TrueCollective>& collectives);

 protected:
  ScriptWriter(const GeneratorOptions& options, int rank, Shared& shared);
  // Once everything is written.
  void finish();

  // --- time ---
  void work(double us) {
    if (us <= 0) return;
    double factor = 1 + options_.cpu_jitter * cpu_.between(-1, 1);
    if (cpu_.uniform() < 0.01) factor *= 2.5;  // an interrupt, a cache miss, the allocator
    push({.kind = Instruction::Kind::work, .us = us * factor});
  }
  std::size_t push(Instruction i) {
    auto& thread = script_.threads[static_cast<std::size_t>(thread_)];
    thread.push_back(i);
    return thread.size() - 1;
  }
  std::size_t mark() { return push({}); }

  std::vector<std::int64_t>& open_ops() { return open_ops_[static_cast<std::size_t>(thread_)]; }
  std::vector<std::int64_t>& parents() { return parents_[static_cast<std::size_t>(thread_)]; }
  std::int64_t& thread_node() { return thread_nodes_[static_cast<std::size_t>(thread_)]; }

  // --- tensors ---
  Tensor tensor(std::vector<std::int64_t> shape, const char* type = "float", int element_bytes = 4,
                bool on_gpu = true) {
    const std::int64_t id = next_id_++;
    return {id, next_id_++, 0, std::move(shape), type, element_bytes, on_gpu};
  }
  Tensor view(const Tensor& of, std::vector<std::int64_t> shape, std::int64_t offset = 0) {
    Tensor t = of;
    t.id = next_id_++;
    t.shape = std::move(shape);
    t.offset = of.offset + offset;
    return t;
  }

  // --- ops ---
  template <class Body>
  void scope(const std::string& name, CpuOp::Kind kind, const Values& in, const Values& out,
             std::int64_t sequence, double before, double after, Body&& body) {
    const std::size_t index = ops_.size();
    const bool recorded = window_;
    const bool in_trace = recorded && kind != CpuOp::Kind::step;
    std::int64_t node = 0, node_order = 0;
    if (recorded) {
      std::vector<std::string> shapes;
      for (const Value& v : in) shapes.push_back(v.profiler_shape);
      ops_.push_back(
          {.name = name,
           .kind = kind,
           .thread = thread_,
           .begin = mark(),
           .input_shapes = in.empty() ? std::string{} : fmt::format("[{}]", fmt::join(shapes, ",")),
           .external_id = next_external_++,
           .sequence_number = sequence});
      open_ops().push_back(ops_.back().external_id);
    }
    if (in_trace) {
      if (thread_node() == 0) thread_node() = next_id_++;
      node = next_id_++;
      node_order = ++last_order_;
      parents().push_back(node);
    }
    work(before);
    body();
    work(after);
    if (in_trace) {
      parents().pop_back();
      add_node(name, node, node_order, kind, sequence, in, out);
    }
    if (recorded) {
      open_ops().pop_back();
      ops_[index].end = mark();
    }
  }
  void op(const std::string& name, const Values& in, const Values& out) {
    op(name, in, out, [] {});
  }
  template <class Body>
  void op(const std::string& name, const Values& in, const Values& out, Body&& body, double before = 2.2,
          double after = 1.0) {
    scope(name, CpuOp::Kind::op, in, out, thread_ == kMain ? forward_sequence_ : backward_sequence_, before,
          after, std::forward<Body>(body));
    if (thread_ == kMain) work(0.8);
  }
  template <class Body>
  void annotation(const std::string& name, Body&& body, double before = 20, double after = 12) {
    scope(name, CpuOp::Kind::annotation, {}, {}, -1, before, after, std::forward<Body>(body));
    work(6);
  }
  // What FBGEMM's lookups are called with: weights, where the tables and their dimensions begin, the sums of
  // the dimensions and their maximum, where the rows begin, indices, offsets, the way of pooling.
  Values table_arguments(std::int64_t tables, const Tensor& indices, const Tensor& offsets);

  // A node of the autograd graph.
  template <class Body>
  void backward_of(const std::string& name, Body&& body) {
    --backward_sequence_;
    op(
        "autograd::engine::evaluate_function: " + name, {}, {}, [&] { op(name, {}, {}, body, 2, 1.5); }, 1.5,
        3);
    work(4);
  }

  void add_node(const std::string& name, std::int64_t id, std::int64_t order, CpuOp::Kind kind,
                std::int64_t sequence, const Values& in, const Values& out);

  // --- runtime calls and GPU work ---
  std::size_t call(std::string name, double us, int item = kNone, bool visible = true) {
    const double factor = 1 + 0.5 * options_.cpu_jitter * cpu_.between(-1, 1);
    return add_call(std::move(name), {.kind = Instruction::Kind::call, .us = us * factor, .item = item},
                    visible);
  }
  std::size_t add_call(std::string name, Instruction instruction, bool visible = true);
  int add_item(Item item, ItemRecord record);
  double gpu_us(double us) { return us * options_.kernel_scale * (1 + 0.02 * gpu_.between(-1, 1)); }

  void kernel(std::string name, double us, double blocks = 40);
  void gemm(const char* name, double m, double n, double k) {
    call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 0.6);
    kernel(name, 3 + 2 * m * n * k / 11e6, std::ceil(m / 128) * std::ceil(n / 64));
  }
  void elementwise(const char* name, double bytes);
  void fill(const char* type);
  enum class Copy : std::uint8_t { pinned_to_device, pageable_to_device, device_to_pageable };
  void copy(Copy kind, const Tensor& from, const Tensor& to);
  void copy_call(Copy kind, std::int64_t bytes);

  int record_event(int stream) { return record_event_call(stream).first; }
  std::pair<int, std::size_t> record_event_call(int stream);
  void wait_event(int stream, int event, WaitPattern pattern);
  void wait_stream(int waiting, int for_stream) {
    work(2);
    wait_event(waiting, record_event(for_stream), WaitPattern::other_stream);
    work(2);
  }

  // --- collectives ---
  Work collective(CollectiveOp op_kind, const Tensor& in, const Tensor& out,
                  const std::vector<std::int64_t>& in_split, const std::vector<std::int64_t>& out_split,
                  double largest_bytes);
  void wait_for(const Work& w);
  std::int32_t collective_info(const char* name, CollectiveOp op_kind, std::int64_t sequence,
                               std::optional<Tensor> in, std::optional<Tensor> out,
                               const std::vector<std::int64_t>& in_split,
                               const std::vector<std::int64_t>& out_split);

  const GeneratorOptions& options_;
  int rank_;
  Shared& shared_;
  Random cpu_, gpu_;

  machine::RankScript script_;
  std::vector<OpRecord> ops_;
  std::vector<CallRecord> calls_;
  std::vector<ItemRecord> item_records_;
  std::vector<SyncRecord> syncs_;
  std::vector<SynchronizingCall> synchronizing_;
  std::vector<std::pair<int, std::size_t>> event_origin_;  // [event] stream, recording call
  StringTable names_;
  std::vector<CollectiveInfo> collective_infos_;

  int thread_ = kMain, stream_ = kComputeStream;
  bool window_ = false;
  std::size_t window_mark_ = 0;
  int events_ = 0, flags_ = 0;
  std::int64_t next_id_ = 2, last_order_ = 0, next_external_ = 1025, next_correlation_ = 40728;
  std::int64_t backward_sequence_ = 560, forward_sequence_ = -1;
  std::array<std::vector<std::int64_t>, 2> open_ops_, parents_;  // [thread]
  std::array<std::int64_t, 2> thread_nodes_{};                   // [thread]
  std::string nodes_;
  std::int64_t next_sequence_ = 0;  // of collectives
  std::size_t next_collective_ = 0;
};

}  // namespace stepcast::test::generator
