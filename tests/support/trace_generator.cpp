#include "tests/support/trace_generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "tests/support/virtual_machine.h"

namespace stepcast::test {
namespace {

using machine::Instruction;
using machine::Item;
using machine::ItemKind;
using machine::kNone;
using machine::Random;

constexpr int kComputeStream = 7, kCopyStream = 22, kDistributionStream = 24, kCommStream = 84,
              kNcclInternalStream = 92;
constexpr int kStreams[] = {kComputeStream, kCopyStream, kDistributionStream, kCommStream,
                            kNcclInternalStream};
constexpr int kMain = 0, kAutograd = 1;
constexpr int kEmbeddingDim = 64;
constexpr int kMultiprocessors = 80;

int dense_stream(int number) {
  for (int i = 0; i < static_cast<int>(std::size(kStreams)); ++i) {
    if (kStreams[i] == number) return i;
  }
  throw std::logic_error("generator: unknown stream");
}

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

// A bandwidth and a latency that a ring over NVLink might have: enough to give collectives of different
// length.
double transfer_us(CollectiveOp op, double bytes, int ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return op == CollectiveOp::all_reduce ? 14 + 2 * share * bytes / 60e3 : 9 + share * bytes / 45e3;
}

// Writes the script of one rank, and beside it what will be recorded of it.
class RankWriter {
 public:
  RankWriter(const GeneratorOptions& options, int rank, Shared& shared)
      : options_(options),
        rank_(rank),
        shared_(shared),
        cpu_(options.seed * 1000 + static_cast<std::uint64_t>(rank)),
        gpu_(options.seed * 1000 + 500 + static_cast<std::uint64_t>(rank)) {
    script_.threads.resize(2);
    script_.stream_count = static_cast<int>(std::size(kStreams));
    thread_node() = next_id_++;
    rank_tensors();
    write_job();
    script_.flag_count = flags_;
    script_.event_count = events_;
  }

  const machine::RankScript& script() const { return script_; }
  // What the profiler writes down of the run. Adds this rank's GPU op and arrival to the collectives.
  GeneratedRank record(const machine::RankRun& run, std::vector<TrueCollective>& collectives);

 private:
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
  void scope(std::string name, CpuOp::Kind kind, const Values& in, const Values& out, std::int64_t sequence,
             double before, double after, Body&& body) {
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
  void op(std::string name, const Values& in, const Values& out) {
    op(std::move(name), in, out, [] {});
  }
  template <class Body>
  void op(std::string name, const Values& in, const Values& out, Body&& body, double before = 2.2,
          double after = 1.0) {
    scope(std::move(name), CpuOp::Kind::op, in, out,
          thread_ == kMain ? forward_sequence_ : backward_sequence_, before, after, std::forward<Body>(body));
    if (thread_ == kMain) work(0.8);
  }
  template <class Body>
  void annotation(std::string name, Body&& body, double before = 20, double after = 12) {
    scope(std::move(name), CpuOp::Kind::annotation, {}, {}, -1, before, after, std::forward<Body>(body));
    work(6);
  }
  // What FBGEMM's lookups are called with: weights, where the tables and their dimensions begin, the sums of
  // the dimensions and their maximum, where the rows begin, indices, offsets, the way of pooling.
  Values table_arguments(std::int64_t tables, const Tensor& indices, const Tensor& offsets) {
    constexpr std::int64_t kRows = 10'000;
    return {tensor({tables * kRows * kEmbeddingDim}),
            tensor({tables}, "long int", 8),
            tensor({tables + 1}, "int"),
            tables * kEmbeddingDim,
            kEmbeddingDim,
            tensor({tables + 1}, "long int", 8),
            20,
            indices,
            offsets,
            0};
  }

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
  std::size_t add_call(std::string name, Instruction instruction, bool visible = true) {
    calls_.push_back({std::move(name), thread_, push(instruction), next_correlation_++,
                      open_ops().empty() ? -1 : open_ops().back(), visible && window_});
    if (instruction.item != kNone)
      item_records_[static_cast<std::size_t>(instruction.item)].call = calls_.size() - 1;
    return calls_.size() - 1;
  }
  int add_item(Item item, ItemRecord record) {
    item.stream = dense_stream(record.stream);
    script_.items.push_back(item);
    item_records_.push_back(std::move(record));
    return static_cast<int>(script_.items.size()) - 1;
  }
  double gpu_us(double us) { return us * options_.kernel_scale * (1 + 0.02 * gpu_.between(-1, 1)); }

  void kernel(std::string name, double us, double blocks = 40) {
    const bool large = blocks >= 8 * kMultiprocessors;
    const int item =
        add_item({.kind = ItemKind::kernel,
                  .duration_us = gpu_us(us),
                  .delay_us = gpu_.between(1.6, 2.6),
                  .fills_device = large && options_.large_kernels_fill_device},
                 {.name = std::move(name), .stream = stream_, .blocks = static_cast<std::int32_t>(blocks)});
    work(1.5);
    call("cudaLaunchKernel", 4.8, item);
  }
  void gemm(const char* name, double m, double n, double k) {
    call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 0.6);
    kernel(name, 3 + 2 * m * n * k / 11e6, std::ceil(m / 128) * std::ceil(n / 64));
  }
  void elementwise(const char* name, double bytes) {
    kernel(fmt::format(
               "void at::native::vectorized_elementwise_kernel<4, {}, at::detail::Array<char*, 3> >(int, {}, "
               "at::detail::Array<char*, 3>)",
               name, name),
           2.2 + bytes / 720e3, std::ceil(bytes / 6144));
  }
  void fill(const char* type) {
    const Tensor filled = tensor({1}, type);
    op("aten::fill_", {filled, 0}, {filled}, [&] {
      kernel(fmt::format("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<{0}>, "
                         "at::detail::Array<char*, 1> "
                         ">(int, at::native::FillFunctor<{0}>, at::detail::Array<char*, 1>)",
                         type),
             2.2, 4);
    });
  }
  enum class Copy : std::uint8_t { pinned_to_device, pageable_to_device, device_to_pageable };
  void copy(Copy kind, const Tensor& from, const Tensor& to) {
    const auto bytes = from.elements() * from.element_bytes;
    op("aten::to", {from, 0, 0, 0}, {to}, [&] {
      op("aten::_to_copy", {from, 0, 0}, {to}, [&] {
        op("aten::empty_strided", {Value(from.shape), Value(std::vector<std::int64_t>{1})}, {to});
        op("aten::copy_", {to, from, 0}, {to}, [&] { copy_call(kind, bytes); });
      });
    });
  }
  void copy_call(Copy kind, std::int64_t bytes) {
    const char* name = kind == Copy::pinned_to_device     ? "Memcpy HtoD (Pinned -> Device)"
                       : kind == Copy::pageable_to_device ? "Memcpy HtoD (Pageable -> Device)"
                                                          : "Memcpy DtoH (Device -> Pageable)";
    const bool blocking = kind == Copy::device_to_pageable;
    const int item = add_item({.kind = ItemKind::copy,
                               .duration_us = gpu_us(1.2 + static_cast<double>(bytes) / 10e3),
                               .delay_us = blocking ? gpu_.between(11, 13) : gpu_.between(2.6, 3.4),
                               .delay_from_start = blocking},
                              {.name = name, .stream = stream_, .kind = GpuOp::Kind::memcpy, .bytes = bytes});
    if (blocking) {
      const std::size_t c = add_call(
          "cudaMemcpyAsync",
          {.kind = Instruction::Kind::sync_item, .us = 8, .return_us = cpu_.between(6.1, 6.9), .item = item});
      synchronizing_.push_back({c, stream_, item_records_.size()});
    } else {
      call("cudaMemcpyAsync", kind == Copy::pinned_to_device ? 5 : 6.5, item);
    }
    if (kind == Copy::pinned_to_device) return;
    work(0.8);
    const std::size_t c = add_call("cudaStreamSynchronize", {.kind = Instruction::Kind::sync_stream,
                                                             .us = 2,
                                                             .return_us = cpu_.between(4.6, 5.4),
                                                             .stream = dense_stream(stream_)});
    synchronizing_.push_back({c, stream_, item_records_.size()});
    syncs_.push_back({.kind = StreamSync::Kind::stream_sync, .call = c, .stream = stream_});
  }

  int record_event(int stream) { return record_event_call(stream).first; }
  std::pair<int, std::size_t> record_event_call(int stream) {
    const int event = events_++;
    const int item =
        add_item({.kind = ItemKind::event_record, .event = event, .delay_us = 0.5}, {.stream = stream});
    const std::size_t c = call("cudaEventRecord", 0.9, item, options_.event_records != EventRecords::hidden);
    event_origin_.push_back({stream, c});
    return {event, c};
  }
  void wait_event(int stream, int event, WaitPattern pattern) {
    const int item = add_item({.kind = ItemKind::event_wait, .event = event, .delay_us = 0.5},
                              {.stream = stream, .pattern = pattern, .no_effect = event == kNone});
    const std::size_t c = call("cudaStreamWaitEvent", 0.9, item);
    SyncRecord sync{.kind = StreamSync::Kind::stream_wait_event, .call = c, .stream = stream};
    if (event == kNone) {
      sync.wait_on_stream = kNcclInternalStream;
    } else {
      const auto& [origin, record_call] = event_origin_[static_cast<std::size_t>(event)];
      sync.wait_on_stream = origin;
      if (calls_[record_call].visible) sync.record_correlation = calls_[record_call].correlation;
    }
    syncs_.push_back(sync);
  }
  void wait_stream(int waiting, int for_stream) {
    work(2);
    wait_event(waiting, record_event(for_stream), WaitPattern::other_stream);
    work(2);
  }

  // --- collectives ---
  Work collective(CollectiveOp op_kind, const Tensor& in, const Tensor& out,
                  const std::vector<std::int64_t>& in_split, const std::vector<std::int64_t>& out_split,
                  double largest_bytes);
  void wait_for(const Work& w) {
    op(
        "record_param_comms",
        {w.sequence, 0, 0, "wait", std::vector<std::int64_t>{}, std::vector<std::int64_t>{}}, {},
        [&] {
          if (options_.collective_metadata && window_)
            ops_.back().collective =
                collective_info("wait", CollectiveOp::unknown, w.sequence, {}, {}, {}, {});
          wait_event(stream_, w.event, WaitPattern::collective_result);
        },
        1, 1);
  }
  std::int32_t collective_info(const char* name, CollectiveOp op_kind, std::int64_t sequence,
                               std::optional<Tensor> in, std::optional<Tensor> out,
                               const std::vector<std::int64_t>& in_split,
                               const std::vector<std::int64_t>& out_split);

  // --- the job ---
  void rank_tensors();
  void fill_buckets();
  void write_job();
  void before_window();
  void step(std::int64_t number);
  void copy_batch();
  void distribute_sparse(bool waits_for_forward, int forward_event);
  void use_sparse();
  void forward();
  void backward();
  void optimizer();
  std::int64_t sequence_of_top(std::size_t layer) const;
  void linear_forward(const Tensor& input, const Tensor& weight, const Tensor& output, bool relu,
                      std::int64_t sequence = -1);
  void linear_backward(const Tensor& weight, double batch, bool relu);
  void accumulate(const Tensor& parameter);
  void scan(int stream_blocks);

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

  std::vector<Tensor> bottom_, top_;  // weights, [inputs, outputs]
  struct Batch {
    Tensor dense, indices, labels;
  };
  const Batch& new_batch() {
    batches_.push_back({tensor({options_.local_batch, 13}), tensor({8 * options_.local_batch}, "int"),
                        tensor({options_.local_batch})});
    return batches_.back();
  }
  std::deque<Batch> batches_;  // the one in training first, the one just copied last
  Tensor received_, dense_table_, loss_;
  std::vector<Tensor> buckets_;
  std::vector<std::optional<int>> closes_;  // [gradient in the order of the backward] the bucket it closes
  std::size_t next_gradient_ = 0;
  std::optional<Work> sizes_, lengths_, values_, pooled_, pooled_gradient_;
  std::vector<std::optional<Work>> reduced_;  // [bucket]
};

void RankWriter::add_node(const std::string& name, std::int64_t id, std::int64_t order, CpuOp::Kind kind,
                          std::int64_t sequence, const Values& in, const Values& out) {
  const auto column = [](const Values& values, auto&& field) {
    std::vector<std::string> parts;
    for (const Value& v : values) parts.push_back(field(v));
    return fmt::format("[{}]", fmt::join(parts, ","));
  };
  const auto texts = [](const Value& v) { return v.text; };
  const auto shapes = [](const Value& v) { return v.shape; };
  const auto types = [](const Value& v) { return fmt::format("\"{}\"", v.type); };
  const std::int64_t parent = parents().empty() ? thread_node() : parents().back();
  if (!nodes_.empty()) nodes_ += ",\n";
  nodes_ += fmt::format(
      R"({{"name":"{}","id":{},"rf_id":{},"parent":{},"fw_parent":0,"seq_id":{},"scope":{},"tid":{},"fw_tid":{},"op_schema":"",)"
      R"("inputs":{},"input_shapes":{},"input_types":{},"outputs":{},"output_shapes":{},"output_types":{}}})",
      name, id, order, parent, sequence, kind == CpuOp::Kind::op ? 0 : 7, thread_ + 1,
      thread_ == kAutograd && sequence >= 0 ? 1 : 0, column(in, texts), column(in, shapes), column(in, types),
      column(out, texts), column(out, shapes), column(out, types));
}

std::int32_t RankWriter::collective_info(const char* name, CollectiveOp op_kind, std::int64_t sequence,
                                         std::optional<Tensor> in, std::optional<Tensor> out,
                                         const std::vector<std::int64_t>& in_split,
                                         const std::vector<std::int64_t>& out_split) {
  CollectiveInfo info;
  info.name = names_.intern(name);
  info.op = op_kind;
  info.sequence = sequence;
  info.group_size = options_.ranks;
  info.process_group = names_.intern("0");
  for (int r = 0; r < options_.ranks; ++r) info.group_ranks.push_back(r);
  if (in) {
    info.dtype = parse_dtype(in->type);
    info.in_elements = in->elements();
    info.out_elements = out->elements();
  }
  info.in_split = in_split;
  info.out_split = out_split;
  collective_infos_.push_back(std::move(info));
  return static_cast<std::int32_t>(collective_infos_.size()) - 1;
}

Work RankWriter::collective(CollectiveOp op_kind, const Tensor& in, const Tensor& out,
                            const std::vector<std::int64_t>& in_split,
                            const std::vector<std::int64_t>& out_split, double largest_bytes) {
  const bool reduce = op_kind == CollectiveOp::all_reduce;
  const char* name = reduce ? "allreduce" : in_split.empty() ? "all_to_all" : "all_to_allv";
  Work result{.sequence = next_sequence_++};
  const std::size_t index = next_collective_++;
  if (index == shared_.machine.size()) {  // the first rank decides for all
    const double us = transfer_us(op_kind, largest_bytes, options_.ranks);
    shared_.machine.push_back({us, options_.ranks});
    shared_.truth.push_back({.sequence = result.sequence,
                             .op = op_kind,
                             .transfer_us = us,
                             .bytes = largest_bytes,
                             .gpu_ops = {},
                             .arrival_us = {}});
  }
  const Value pointer(std::int64_t{94594108284448} +
                      rank_ * 4096);  // a process group's address: differs per rank
  const Values described =
      reduce ? Values{std::vector<Tensor>{in}, result.sequence, pointer, rank_, name, in_split, out_split}
             : Values{in, result.sequence, pointer, rank_, name, in_split, out_split};
  const Values produced = reduce ? Values{std::vector<Tensor>{out}} : Values{out};
  op(
      reduce ? "c10d::allreduce_" : "c10d::alltoall_base_",
      reduce ? Values{std::vector<Tensor>{in}} : Values{out, in}, produced,
      [&] {
        op(
            "record_param_comms", described, produced,
            [&] {
              std::int32_t info = -1;
              if (options_.collective_metadata && window_) {
                info = collective_info(name, op_kind, result.sequence, in, out, in_split, out_split);
                ops_.back().collective = info;
              }
              call("cudaStreamIsCapturing", 0.7);
              work(5);
              wait_event(kCommStream, record_event(stream_), WaitPattern::communication_after_compute);
              work(2);
              scope(
                  reduce ? "nccl:all_reduce" : "nccl:all_to_all", CpuOp::Kind::annotation, {in}, {}, -1, 7, 3,
                  [&] {
                    call("INVALID", 0.3);
                    work(7);
                    wait_event(kCommStream, kNone, WaitPattern::communication_after_compute);
                    work(3);
                    const int item = add_item(
                        {.kind = ItemKind::kernel,
                         .duration_us = gpu_.between(0, 1.2),
                         .collective = static_cast<int>(index),
                         .delay_us = gpu_.between(1.6, 2.6)},
                        {.name =
                             reduce
                                 ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                                 : "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                         .stream = kCommStream,
                         .blocks = reduce ? 12 : 8,
                         .collective = info,
                         .group = static_cast<int>(index)});
                    call("cudaLaunchKernelExC", 7.5, item);
                    work(0.8);
                    wait_event(kCommStream, kNone, WaitPattern::communication_after_compute);
                    work(8);
                  });
              std::tie(result.event, result.record_call) = record_event_call(kCommStream);
              work(3);
              wait_event(kCommStream, kNone, WaitPattern::communication_after_compute);  // the future's
              work(2);
            },
            2, 2);
      },
      4, 1.5);
  return result;
}

void RankWriter::rank_tensors() {
  for (const auto& [in, out] : {std::pair{13, 512}, {512, 256}, {256, kEmbeddingDim}})
    bottom_.push_back(tensor({in, out}));
  if (options_.top_blocks > 0) {
    for (int b = 0; b < options_.top_blocks; ++b) {
      top_.push_back(tensor({416, 1024}));
      top_.push_back(tensor({1024, 416}));
    }
    top_.push_back(tensor({416, 1}));
  } else {
    for (const auto& [in, out] : {std::pair{416, 1024}, {1024, 512}, {512, 256}, {256, 1}})
      top_.push_back(tensor({in, out}));
  }
  std::int64_t bottom = 0, top = 0;
  for (const Tensor& t : bottom_) bottom += t.elements();
  for (const Tensor& t : top_) top += t.elements();
  buckets_.push_back(tensor({top}));
  dense_table_ = tensor({kEmbeddingDim * 1000});
  buckets_.push_back(dense_table_);
  buckets_.push_back(tensor({bottom}));
  closes_.assign(top_.size() - 1, std::nullopt);
  closes_.insert(closes_.end(), {0, 1, std::nullopt, std::nullopt, 2});
  if (options_.bucket_bytes > 0) fill_buckets();
  reduced_.resize(buckets_.size());
  if (options_.pipeline == BatchPipeline::ahead) new_batch();  // copied before anything that is written here
  loss_ = tensor({});
}

// Every bucket closes with the gradient that brings it to the size that was asked for.
void RankWriter::fill_buckets() {
  std::vector<Tensor> gradients{top_.rbegin(), top_.rend()};
  gradients.push_back(dense_table_);
  gradients.insert(gradients.end(), bottom_.rbegin(), bottom_.rend());
  buckets_.clear();
  closes_.clear();
  std::int64_t elements = 0;
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    elements += gradients[g].elements();
    const bool full =
        4.0 * static_cast<double>(elements) >= options_.bucket_bytes || g + 1 == gradients.size();
    closes_.push_back(full ? std::optional{static_cast<int>(buckets_.size())} : std::nullopt);
    if (full) buckets_.push_back(tensor({std::exchange(elements, 0)}));
  }
}

// Leftovers: what the step before still has in the streams when the window opens.
void RankWriter::before_window() {
  next_sequence_ = 141;
  if (options_.pipeline == BatchPipeline::ahead) {
    copy_batch();
    distribute_sparse(false, kNone);
    lengths_->sequence = 141;
    values_->sequence = 142;
  }
  next_sequence_ = 147;
  const bool late = std::find(options_.late_gpu_ranks.begin(), options_.late_gpu_ranks.end(), rank_) !=
                    options_.late_gpu_ranks.end();
  for (int i = 0; i < 64; ++i) {
    work(8);
    elementwise("at::native::CUDAFunctor_add<float>", late ? 30e6 : 1e6);
  }
  work(60);
  Random skew(options_.seed * 77 + static_cast<std::uint64_t>(rank_));
  push({.kind = Instruction::Kind::work, .us = skew.between(0, options_.start_skew_us)});
}

void RankWriter::write_job() {
  before_window();
  window_mark_ = mark();
  window_ = true;
  for (int s = 0; s < options_.steps; ++s) step(options_.first_step + s);
  work(30);
  const std::size_t c =
      add_call("cudaDeviceSynchronize",
               {.kind = Instruction::Kind::sync_device, .us = 12, .return_us = cpu_.between(6.5, 7.5)});
  synchronizing_.push_back({c, kNone, item_records_.size()});
  syncs_.push_back({.kind = StreamSync::Kind::context_sync, .call = c});
  work(10);
}

void RankWriter::step(std::int64_t number) {
  scope(fmt::format("ProfilerStep#{}", number), CpuOp::Kind::step, {}, {}, -1, 18, 20, [&] {
    const bool ahead = options_.pipeline == BatchPipeline::ahead;
    annotation("## zero_grad ##", [&] {
      annotation("Optimizer.zero_grad#Adagrad.zero_grad", [&] {
        for (const Tensor& w : bottom_) {
          const Tensor flat = view(w, {w.elements()});
          op("aten::slice", {w, 0, 0, w.elements(), 1}, {flat}, [&] {
            op("aten::as_strided", {w, 0, 0, 0}, {flat});
          });
          op("aten::view", {flat, 0}, {view(w, w.shape)});
        }
      });
    });
    annotation("## copy_batch_to_gpu ##", [&] { copy_batch(); });
    if (ahead) {
      annotation("## wait_for_batch ##", [&] {
        wait_stream(kComputeStream, kDistributionStream);
        for (int i = 0; i < 4; ++i) op("aten::record_stream", {batches_.front().dense, 0}, {});
      });
    } else {
      annotation("## sparse_data_dist ##", [&] { distribute_sparse(false, kNone); });
    }
    int forward_event = kNone;
    annotation("## forward ##", [&] {
      if (ahead) forward_event = record_event(kComputeStream);
      annotation("DistributedDataParallel.forward", [&] { forward(); });
    });
    if (ahead) annotation("## sparse_data_dist ##", [&] { distribute_sparse(true, forward_event); });
    annotation("## backward ##", [&] { backward(); });
    annotation("## optimizer ##", [&] {
      annotation(
          "Optimizer.step#Adagrad.step", [&] { optimizer(); }, 100, 60);
    });
    if (options_.read_loss) {
      const Tensor host = tensor({}, "float", 4, false);
      op("aten::item", {loss_}, {0.69}, [&] {
        op("aten::_local_scalar_dense", {loss_}, {0.69}, [&] { copy_call(Copy::device_to_pageable, 4); });
      });
      work(25);
    }
    batches_.pop_front();
  });
}

void RankWriter::copy_batch() {
  annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", [&] {
    for (int i = 0; i < 6; ++i) {
      work(cyclic(options_.loader_us, rank_) / 12);
      const Tensor t = tensor({options_.local_batch}, "int", 4, false);
      op(
          "aten::cat", {std::vector<Tensor>{t, t}, 0}, {t},
          [&] {
            op("aten::narrow", {t, 0, 0, 1}, {view(t, {1})});
          },
          cyclic(options_.loader_us, rank_) / 12, 2);
    }
  });
  std::vector<Tensor> host = {tensor({options_.local_batch, 13}, "float", 4, false),
                              tensor({8 * options_.local_batch}, "int", 4, false),
                              tensor({8 * options_.local_batch}, "int", 4, false),
                              tensor({options_.local_batch}, "float", 4, false)};
  for (const Tensor& t : host) {
    op("aten::pin_memory", {t, 0}, {t}, [&] {
      op("aten::is_pinned", {t, 0}, {}, [&] { call("cudaPointerGetAttributes", 1); });
      op("aten::_pin_memory", {t, 0}, {t}, [&] {
        call("cudaEventQuery", 1.2);
        op("aten::copy_", {t, t, 0}, {t});
      });
    });
  }
  const int before = std::exchange(stream_, kCopyStream);
  const Batch& batch = new_batch();
  copy(Copy::pinned_to_device, host[0], batch.dense);
  copy(Copy::pinned_to_device, host[1], batch.indices);
  copy(Copy::pinned_to_device, host[2], tensor({8 * options_.local_batch}, "int"));
  copy(Copy::pinned_to_device, host[3], batch.labels);
  stream_ = before;
  work(15);
}

void RankWriter::scan(int blocks) {
  kernel("void cub::DeviceScanInitKernel<cub::ScanTileState<int, true> >(cub::ScanTileState<int, true>, int)",
         2.2, 1);
  call("cudaPeekAtLastError", 0.3);
  call("cudaDeviceGetAttribute", 0.3);
  kernel(
      "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*, int*, cub::ScanTileState<int, "
      "true>, cub::Sum, "
      "cub::NullType, int>(int*, int*, cub::ScanTileState<int, true>, int, cub::Sum, cub::NullType, int)",
      4.5, blocks);
}

// The features' lengths and values go to the ranks that hold the tables. The sizes go first, and the CPU has
// to know them.
void RankWriter::distribute_sparse(bool waits_for_forward, int forward_event) {
  const int before = std::exchange(stream_, kDistributionStream);
  const double ranks = options_.ranks;
  const Tensor indices = batches_[waits_for_forward ? 1 : 0].indices;
  work(15);
  wait_stream(kDistributionStream, kCopyStream);
  for (int i = 0; i < 3; ++i) op("aten::record_stream", {indices, 0}, {});
  if (waits_for_forward) wait_event(kDistributionStream, forward_event, WaitPattern::other_stream);
  work(40);
  const Tensor permuted = tensor(indices.shape, "int");
  op("fbgemm::permute_2D_sparse_data", {indices, indices}, {permuted}, [&] {
    kernel("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)", 4.5,
           16);
    scan(8);
    kernel(
        "void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>(int, int, int, int "
        "const*, decltype(nullptr) "
        "const*, int const*, int const*, int const*, int*, decltype(nullptr)*)",
        9, 200);
  });
  const Tensor host_sizes = tensor({2 * options_.ranks}, "long int", 8, false);
  const Tensor sizes_in = tensor({2 * options_.ranks}, "long int", 8),
               sizes_out = tensor({2 * options_.ranks}, "long int", 8);
  copy(Copy::pageable_to_device, host_sizes, sizes_in);
  annotation("## all2all_data:kjt splits ##", [&] {
    op("aten::cat", {std::vector<Tensor>{sizes_in, sizes_in}, 0}, {sizes_in}, [&] {
      kernel(
          "void at::native::(anonymous namespace)::CatArrayBatchedCopy<long, unsigned int, 2, 128, 1>(long*, "
          "at::native::(anonymous "
          "namespace)::CatArrInputTensorMetadata<long, unsigned int, 128, 1>, int)",
          3.5, 8);
    });
    sizes_ = collective(CollectiveOp::all_to_all, sizes_in, sizes_out, {}, {}, 2 * ranks * 8);
  });
  annotation("## KJTListSplitsAwaitable wait() ##", [&] {
    annotation("## SplitsAllToAllAwaitable wait() ##", [&] {
      wait_for(*sizes_);
      copy(Copy::device_to_pageable, sizes_out, host_sizes);
    });
    const auto split = [&](std::int64_t per_rank) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(options_.ranks), per_rank);
    };
    const std::int64_t mine = cyclic(options_.tables, rank_);
    std::vector<std::int64_t> lengths_in;
    std::int64_t total_tables = 0;
    for (int r = 0; r < options_.ranks; ++r) {
      lengths_in.push_back(cyclic(options_.tables, r) * options_.local_batch);
      total_tables += cyclic(options_.tables, r);
    }
    const Tensor lengths_sent = tensor({total_tables * options_.local_batch}, "int");
    const Tensor lengths_got = tensor({mine * options_.local_batch * options_.ranks}, "int");
    annotation("## all2all_data:kjt lengths ##", [&] {
      lengths_ =
          collective(CollectiveOp::all_to_all, lengths_sent, lengths_got, lengths_in,
                     split(mine * options_.local_batch), 4.0 * static_cast<double>(lengths_sent.elements()));
    });
    std::vector<std::int64_t> values_in;
    std::int64_t sent = 0;
    for (int r = 0; r < options_.ranks; ++r) {
      values_in.push_back(std::int64_t{cyclic(options_.tables, r)} * options_.local_batch *
                          cyclic(options_.pooling, r));
      sent += values_in.back();
    }
    const std::int64_t from_each = mine * options_.local_batch * cyclic(options_.pooling, rank_);
    const Tensor values_sent = tensor({sent}, "int");
    received_ = tensor({from_each * options_.ranks}, "int");
    annotation("## all2all_data:kjt values ##", [&] {
      values_ = collective(CollectiveOp::all_to_all, values_sent, received_, values_in, split(from_each),
                           4.0 * static_cast<double>(sent));
    });
  });
  stream_ = before;
}

// Waits for the distributed features and brings them into the order of the tables.
void RankWriter::use_sparse() {
  const Work lengths = *lengths_, values = *values_;
  const int before = std::exchange(stream_, kDistributionStream);
  annotation("## wait_sparse_data_dist ##", [&] {
    annotation("## KJTAllToAllTensorsAwaitable wait() ##", [&] {
      wait_for(lengths);
      wait_for(values);
      annotation("## all2all_data:recat_values ##", [&] {
        const Tensor sorted = tensor(received_.shape, "int");
        op("fbgemm::permute_2D_sparse_data", {received_, view(received_, received_.shape)}, {sorted}, [&] {
          kernel("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)", 5,
                 16);
          scan(8);
          op("aten::zero_", {sorted}, {sorted}, [&] { fill("int"); });
          kernel(
              "void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>(int, int, int, "
              "int const*, decltype("
              "nullptr) const*, int const*, int const*, int const*, int*, decltype(nullptr)*)",
              4 + 8.0 * static_cast<double>(received_.elements()) / 500e3, 400);
        });
        const Tensor sum = tensor({2}, "long int", 8);
        op("aten::sum", {sorted, 0}, {sum}, [&] {
          kernel(
              "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<long, "
              "at::native::func_wrapper_t<long, at::native::"
              "sum_functor<long, long, long> >, unsigned int, long, 4> >(int)",
              7, 80);
        });
        copy(Copy::device_to_pageable, sum, tensor({2}, "long int", 8, false));
      });
    });
  });
  stream_ = before;
  wait_stream(kComputeStream, kDistributionStream);
  for (int i = 0; i < 4; ++i) op("aten::record_stream", {received_, 0}, {});
}

// What the backward of a layer of the top counts down to: loss, then of every layer ReLU, product, weight.
std::int64_t RankWriter::sequence_of_top(std::size_t layer) const {
  const auto behind = static_cast<std::int64_t>(top_.size() - 1 - layer);
  return backward_sequence_ - 2 - 3 * behind;
}

void RankWriter::linear_forward(const Tensor& input, const Tensor& weight, const Tensor& output, bool relu,
                                std::int64_t sequence) {
  forward_sequence_ = sequence;
  const std::int64_t in = weight.shape[0], out = weight.shape[1];
  // A layer keeps its weight as [out, in] and multiplies with the transposed.
  const Tensor stored = view(weight, {out, in}), transposed = view(weight, {in, out}),
               bias = view(weight, {out});
  op(
      "aten::linear", {input, stored, bias}, {output},
      [&] {
        op("aten::t", {stored}, {transposed}, [&] { op("aten::transpose", {stored, 0, 1}, {transposed}); });
        op(
            "aten::addmm", {bias, input, transposed, 1, 1}, {output},
            [&] {
              op("aten::expand", {bias, 0, 0}, {view(weight, {out})});
              gemm(out == 1 ? "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, "
                              "cublasGemvTensorStridedBatched<float const> >(int)"
                            : "volta_sgemm_128x64_tn",
                   static_cast<double>(options_.local_batch), static_cast<double>(out),
                   static_cast<double>(in));
            },
            14, 3);
      },
      2, 6);
  if (relu && sequence >= 0) ++forward_sequence_;
  if (relu) {
    op(
        "aten::relu", {output}, {output},
        [&] {
          op(
              "aten::clamp_min", {output, 0}, {output},
              [&] {
                elementwise("at::native::(anonymous namespace)::launch_clamp_scalar",
                            8.0 * static_cast<double>(output.elements()));
              },
              5, 1.5);
        },
        2, 7);
  }
  forward_sequence_ = -1;
}

void RankWriter::forward() {
  Tensor x = batches_.front().dense;
  for (const Tensor& w : bottom_) {
    const Tensor y = tensor({options_.local_batch, w.shape[1]});
    linear_forward(x, w, y, true);
    x = y;
  }
  use_sparse();

  const std::int64_t tables = cyclic(options_.tables, rank_);
  const std::int64_t samples = std::int64_t{options_.local_batch} * options_.ranks;
  const double lookups = static_cast<double>(samples * tables * cyclic(options_.pooling, rank_));
  const Tensor pooled = tensor({samples, tables * kEmbeddingDim});
  op("aten::to", {received_, 4}, {received_}, [&] {
    op("aten::copy_", {received_, received_}, {received_},
       [&] { elementwise("at::native::direct_copy_kernel_cuda", 12 * lookups); });
  });
  op("fbgemm::asynchronous_complete_cumsum", {received_}, {tensor({samples * tables + 1}, "int")}, [&] {
    op("aten::zero_", {received_}, {received_}, [&] { fill("int"); });
    scan(32);
  });
  op("fbgemm::bounds_check_indices", {received_, received_}, {}, [&] {
    kernel(
        "void bounds_check_indices_kernel<long>(at::GenericPackedTensorAccessor<long, 1ul, "
        "at::RestrictPtrTraits, int>, long)",
        6, 256);
  });
  work(40);
  op(
      "fbgemm::split_embedding_codegen_lookup_adagrad_function",
      table_arguments(tables, received_, tensor({samples * tables + 1}, "long int", 8)), {pooled},
      [&] {
        kernel(
            "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, false, long, 1ul, "
            "16ul>(at::"
            "GenericPackedTensorAccessor<float, 1ul, at::RestrictPtrTraits, long>, long)",
            5 + lookups * kEmbeddingDim * 4 / 430e3, static_cast<double>(samples * tables) / 4);
      },
      14, 6);
  work(50);

  std::vector<std::int64_t> sent, got;
  std::int64_t total = 0;
  for (int r = 0; r < options_.ranks; ++r) {
    sent.push_back(options_.local_batch * tables * kEmbeddingDim);
    got.push_back(std::int64_t{options_.local_batch} * cyclic(options_.tables, r) * kEmbeddingDim);
    total += got.back();
  }
  double most = 0;
  for (int r = 0; r < options_.ranks; ++r) {
    most = std::max(most, 4.0 * static_cast<double>(samples) * cyclic(options_.tables, r) * kEmbeddingDim);
  }
  const Tensor output = tensor({total});
  op(
      "All2All_Pooled_Req", {pooled}, {output},
      [&] {
        annotation("## alltoall_fwd_single ##", [&] {
          pooled_ = collective(CollectiveOp::all_to_all, view(pooled, {samples * tables * kEmbeddingDim}),
                               output, sent, got, most);
        });
      },
      20, 15);
  work(60);
  const Tensor small = tensor({options_.local_batch, kEmbeddingDim});
  op(
      "fbgemm::dense_embedding_codegen_lookup_function",
      table_arguments(1, batches_.front().indices, tensor({options_.local_batch + 1}, "long int", 8)),
      {small},
      [&] {
        kernel(
            "void dense_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 1ul, "
            "16ul>(at::"
            "GenericPackedTensorAccessor<float, 1ul, at::RestrictPtrTraits, long>, long)",
            24, 512);
      },
      12, 5);
  work(60);
  const Tensor concatenated = tensor({options_.local_batch, total / options_.local_batch});
  annotation("## EmbeddingBagCollectionAwaitable wait() ##", [&] {
    op(
        "All2All_Pooled_Wait", {output}, {concatenated},
        [&] {
          wait_for(*pooled_);
          std::vector<Tensor> parts;
          std::int64_t offset = 0;
          for (std::int64_t n : got) {
            parts.push_back(view(output, {n}, offset));
            offset += n;
          }
          op("aten::split_with_sizes", {output, Value(got)}, {Value(parts)});
          op(
              "aten::cat", {Value(parts), 1}, {concatenated},
              [&] {
                kernel(
                    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, "
                    "64>(float*, int)",
                    3 + 8.0 * static_cast<double>(total) / 650e3, 512);
              },
              6, 2);
        },
        14, 10);
  });
  const Tensor interaction = tensor({options_.local_batch, 416});
  const std::int64_t features = total / options_.local_batch / kEmbeddingDim;
  op(
      "aten::bmm",
      {view(concatenated, {options_.local_batch, features, kEmbeddingDim}),
       view(concatenated, {options_.local_batch, kEmbeddingDim, features})},
      {view(interaction, {options_.local_batch, features, features})},
      [&] { gemm("volta_sgemm_128x32_tn", options_.local_batch, 27, 27 * 64); }, 14, 4);
  const Tensor index_host = tensor({351}, "long int", 8, false), index = tensor({351}, "long int", 8);
  op("aten::index", {interaction, index_host}, {interaction}, [&] {
    copy(Copy::pageable_to_device, index_host, index);
    kernel(
        "void at::native::index_elementwise_kernel<128, 4, "
        "at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::"
        "OpaqueType<4> > > >(int)",
        11, 320);
  });
  x = tensor({options_.local_batch, 416});
  op("aten::cat", {std::vector<Tensor>{interaction, small}, 1}, {x}, [&] {
    kernel(
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, "
        "int)",
        8, 256);
  });
  for (std::size_t i = 0; i < top_.size(); ++i) {
    const Tensor y = tensor({options_.local_batch, top_[i].shape[1]});
    linear_forward(x, top_[i], y, i + 1 < top_.size(), options_.top_blocks > 0 ? sequence_of_top(i) : -1);
    x = y;
  }
  op("aten::binary_cross_entropy_with_logits", {x, batches_.front().labels}, {loss_}, [&] {
    for (const char* name : {"at::native::neg_kernel_cuda", "at::native::exp_kernel_cuda",
                             "at::native::CUDAFunctor_add<float>", "at::native::log_kernel_cuda"}) {
      op(name[12] == 'n'   ? "aten::neg"
         : name[12] == 'e' ? "aten::exp_"
         : name[12] == 'l' ? "aten::log_"
                           : "aten::add_",
         {x}, {x}, [&] { elementwise(name, 8.0 * options_.local_batch); });
    }
    op("aten::mean", {x}, {loss_}, [&] {
      kernel(
          "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
          "float>, unsigned int, float, "
          "4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned int, float, 4>)",
          7, 1);
    });
  });
}

void RankWriter::accumulate(const Tensor& parameter) {
  const std::optional<int> bucket = closes_[next_gradient_++ % closes_.size()];
  --backward_sequence_;
  op(
      "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {}, {},
      [&] {
        op("torch::autograd::AccumulateGrad", {parameter}, {},
           [&] { op("aten::detach", {parameter}, {parameter}); });
        op("aten::mul", {parameter, 0.25}, {parameter}, [&] {
          elementwise(
              "at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> "
              ">",
              8.0 * static_cast<double>(parameter.elements()));
        });
        if (bucket) {
          const Tensor& b = buckets_[static_cast<std::size_t>(*bucket)];
          reduced_[static_cast<std::size_t>(*bucket)] =
              collective(CollectiveOp::all_reduce, b, b, {}, {}, 4.0 * static_cast<double>(b.elements()));
        }
      },
      2, 4);
  work(4);
}

void RankWriter::linear_backward(const Tensor& weight, double batch, bool relu) {
  const std::int64_t samples = options_.local_batch, inputs = weight.shape[0], outputs = weight.shape[1];
  const double in = static_cast<double>(inputs), out = static_cast<double>(outputs);
  // In the storage of the weight, which is what the optimizer waits for.
  const Tensor gradient = view(weight, {samples, outputs});
  if (relu) {
    backward_of("ReluBackward0", [&] {
      op(
          "aten::threshold_backward", {gradient, gradient, 0}, {gradient},
          [&] {
            elementwise(
                "at::native::BinaryFunctor<float, float, float, at::native::(anonymous "
                "namespace)::threshold_kernel_impl<float> >",
                12 * batch * out);
          },
          6, 2);
    });
  }
  backward_of("AddmmBackward0", [&] {
    const Tensor stored = view(weight, {outputs, inputs}), transposed = view(weight, {inputs, outputs});
    op("aten::t", {transposed}, {stored}, [&] { op("aten::transpose", {transposed, 0, 1}, {stored}); });
    op(
        "aten::mm", {gradient, stored}, {view(weight, {samples, inputs})},
        [&] { gemm("volta_sgemm_128x64_nn", batch, in, out); }, 11, 2);
    op(
        "aten::mm", {view(weight, {outputs, samples}), view(weight, {samples, inputs})}, {stored},
        [&] { gemm("volta_sgemm_128x32_nt", in, out, batch); }, 11, 2);
    op(
        "aten::sum", {gradient, std::vector<std::int64_t>{0}}, {view(weight, {outputs})},
        [&] {
          kernel(
              "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, "
              "at::native::func_wrapper_t<float, at::native::"
              "sum_functor<float, float, float> >, unsigned int, float, 4> >(int)",
              5 + 4 * batch * out / 700e3, 32);
        },
        9, 2);
  });
}

void RankWriter::backward() {
  op(
      "aten::sum", {loss_}, {loss_},
      [&] {
        kernel(
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
            "at::native::func_wrapper_t<float, at::native::sum_functor<"
            "float, float, float> >, unsigned int, float, 4> >(int)",
            7, 1);
      },
      12, 4);
  op("aten::ones_like", {loss_}, {loss_}, [&] { fill("float"); });
  work(15);
  const int begun = flags_++, cpu_gradient = flags_++, done = flags_++;
  push({.kind = Instruction::Kind::raise, .flag = begun});

  thread_ = kAutograd;
  push({.kind = Instruction::Kind::await, .us = cpu_.between(95, 180), .flag = begun});
  const double batch = options_.local_batch;
  backward_of("BinaryCrossEntropyWithLogitsBackward0", [&] {
    for (const char* name : {"aten::sigmoid", "aten::sub_", "aten::mul_", "aten::div_"}) {
      op(name, {loss_}, {loss_}, [&] { elementwise("at::native::sigmoid_kernel_cuda", 12 * batch); });
    }
  });
  if (options_.recompute_top) {
    backward_of("CheckpointFunctionBackward", [&] {
      Tensor x = tensor({options_.local_batch, top_.front().shape[0]});
      for (std::size_t i = 0; i < top_.size(); ++i) {
        const Tensor y = tensor({options_.local_batch, top_[i].shape[1]});
        linear_forward(x, top_[i], y, i + 1 < top_.size());
        x = y;
      }
    });
  }
  for (std::size_t i = top_.size(); i-- > 0;) {
    if (options_.recompute_blocks && i % 2 == 1) {  // the last layer of a block
      op("autograd::engine::evaluate_function: CheckpointFunctionBackward", {}, {}, [&] {
        const Tensor middle = tensor({options_.local_batch, top_[i - 1].shape[1]}),
                     input = tensor({options_.local_batch, top_[i - 1].shape[0]});
        linear_forward(input, top_[i - 1], middle, true);
        linear_forward(middle, top_[i], tensor({options_.local_batch, top_[i].shape[1]}), true);
      });
    }
    linear_backward(top_[i], batch, i + 1 < top_.size());
    accumulate(top_[i]);
  }
  backward_of("IndexBackward0", [&] {
    const Tensor host = tensor({351}, "long int", 8, false);
    op("aten::new_zeros", {loss_}, {loss_},
       [&] { op("aten::zero_", {loss_}, {loss_}, [&] { fill("float"); }); });
    op("aten::_index_put_impl_", {loss_, host}, {loss_}, [&] {
      copy(Copy::pageable_to_device, host, tensor({351}, "long int", 8));
      kernel(
          "void "
          "at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<"
          "long, at::cuda::cub::"
          "detail::OpaqueType<8>, int>::Policy800, false, long, int>(int)",
          16, 1);
      kernel(
          "void (anonymous namespace)::indexing_backward_kernel<float, 4>(long*, long*, float*, float*, "
          "long, long, long, long, bool)",
          14, 352);
    });
  });
  const std::int64_t samples_of_rank = options_.local_batch;
  std::int64_t features = 0;
  for (int r = 0; r < options_.ranks; ++r) features += cyclic(options_.tables, r);
  backward_of("BmmBackward0", [&] {
    for (int i = 0; i < 2; ++i) {
      op(
          "aten::bmm",
          {view(loss_, {samples_of_rank, features, features}),
           view(loss_, {samples_of_rank, features, kEmbeddingDim})},
          {view(loss_, {samples_of_rank, features, kEmbeddingDim})},
          [&] { gemm("volta_sgemm_128x32_nn", batch, 27, 27 * 64); }, 12, 3);
    }
  });

  const std::int64_t tables = cyclic(options_.tables, rank_);
  const std::int64_t samples = std::int64_t{options_.local_batch} * options_.ranks;
  const double lookups = static_cast<double>(samples * tables * cyclic(options_.pooling, rank_));
  std::vector<std::int64_t> sent, got;
  std::int64_t total = 0;
  double most = 0;
  for (int r = 0; r < options_.ranks; ++r) {
    sent.push_back(std::int64_t{options_.local_batch} * cyclic(options_.tables, r) * kEmbeddingDim);
    got.push_back(options_.local_batch * tables * kEmbeddingDim);
    total += sent.back();
    most = std::max(most, 4.0 * static_cast<double>(samples) * cyclic(options_.tables, r) * kEmbeddingDim);
  }
  const Tensor gradient = tensor({total}), gradient_got = tensor({samples * tables * kEmbeddingDim});
  backward_of("All2All_Pooled_WaitBackward", [&] {
    for (int r = 0; r < options_.ranks; ++r) {
      const Tensor part = tensor({sent[static_cast<std::size_t>(r)]});
      op("aten::contiguous", {part, 0}, {part}, [&] {
        op("aten::copy_", {part, part}, {part}, [&] {
          elementwise("at::native::direct_copy_kernel_cuda", 8.0 * static_cast<double>(part.elements()));
        });
      });
    }
    op("aten::cat", {gradient, 0}, {gradient}, [&] {
      kernel(
          "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, "
          "1>(float*, int)",
          3 + 8.0 * static_cast<double>(total) / 650e3, 512);
    });
    annotation("## alltoall_bwd_single ##", [&] {
      pooled_gradient_ = collective(CollectiveOp::all_to_all, gradient, gradient_got, sent, got, most);
    });
  });
  backward_of("torch::autograd::CppNode<SplitLookupFunction_Dense_Op>", [&] {
    op("aten::zeros", {0}, {loss_}, [&] { fill("float"); });
    kernel(
        "void split_embedding_backward_codegen_dense_unweighted_kernel_warp_per_row_1<float, float, float, "
        "1ul, 16>(int)",
        60, 500);
  });
  accumulate(dense_table_);
  backward_of("All2All_Pooled_ReqBackward", [&] {
    wait_for(*pooled_gradient_);
    const Tensor scaled = view(gradient_got, {samples, tables * kEmbeddingDim});
    op("aten::view", {gradient_got, 0}, {scaled});
    op("aten::div_", {scaled, 4.0}, {scaled}, [&] {
      elementwise(
          "at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >",
          8.0 * static_cast<double>(gradient_got.elements()));
    });
  });
  backward_of("torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>", [&] {
    kernel(
        "void linearize_index_kernel<long>(at::GenericPackedTensorAccessor<long, 1ul, at::RestrictPtrTraits, "
        "int>, long)",
        4 + 12 * lookups / 600e3, 512);
    kernel(
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, "
        "false, long, int, int>(long "
        "const*, long*, int const*, int*, int, int, int)",
        8 + 60 * lookups / 600e3, 600);
    op("aten::zeros_like", {loss_}, {loss_},
       [&] { op("aten::zero_", {loss_}, {loss_}, [&] { fill("float"); }); });
    kernel(
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*, "
        "cub::ConstantInputIterator<int, int>, int*, int*, "
        "cub::Equality, cub::Sum, int>::PtxReduceByKeyPolicy, long*>(long*)",
        5 + 16 * lookups / 600e3, 256);
    scan(64);
    kernel(
        "split_embedding_backward_codegen_adagrad_unweighted_find_long_segments(at::"
        "GenericPackedTensorAccessor<int, 1ul, at::"
        "RestrictPtrTraits, int>, int)",
        6, 64);
    kernel(
        "void split_embedding_backward_codegen_adagrad_unweighted_kernel_warp_per_row_1<float, float, float, "
        "1ul, 16>(at::"
        "GenericPackedTensorAccessor<float, 2ul, at::RestrictPtrTraits, long>, long)",
        10 + lookups * kEmbeddingDim * 4 / 300e3, static_cast<double>(samples * tables) / 2);
  });
  push({.kind = Instruction::Kind::raise, .flag = cpu_gradient});
  for (std::size_t i = bottom_.size(); i-- > 0;) {
    linear_backward(bottom_[i], batch, true);
    accumulate(bottom_[i]);
  }
  for (const auto& work_done : reduced_) {
    wait_event(kComputeStream, work_done->event, WaitPattern::gradients_reduced);
    for (int i = 0; i < 3; ++i) {
      op(
          "aten::select", {loss_, 0, i}, {loss_},
          [&] {
            op(
                "aten::as_strided", {loss_, 0}, {loss_}, [] {}, 0.6, 0);
          },
          0.9, 0.2);
      op(
          "aten::item", {loss_}, {1},
          [&] {
            op(
                "aten::_local_scalar_dense", {loss_}, {1}, [] {}, 0.5, 0);
          },
          0.5, 0.2);
    }
  }
  push({.kind = Instruction::Kind::raise, .flag = done});
  thread_ = kMain;

  push({.kind = Instruction::Kind::await, .us = cpu_.between(8, 40), .flag = cpu_gradient});
  op(
      "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {}, {},
      [&] { op("torch::autograd::AccumulateGrad", {batches_.front().labels}, {}); }, 6, 3);
  push({.kind = Instruction::Kind::await, .us = cpu_.between(38, 49), .flag = done});
}

void RankWriter::optimizer() {
  const auto update = [&](const Tensor& p) {
    op("aten::add_", {p, 1}, {p}, [&] { op("aten::item", {p}, {1}); });
    const double bytes = 4.0 * static_cast<double>(p.elements());
    op("aten::addcmul_", {p, p, p}, {p}, [&] { elementwise("at::native::addcmul_cuda_kernel", 4 * bytes); });
    op("aten::sqrt", {p}, {p}, [&] { elementwise("at::native::sqrt_kernel_cuda", 2 * bytes); });
    op("aten::add_", {p, 1e-8}, {p},
       [&] { elementwise("at::native::CUDAFunctorOnSelf_add<float>", 2 * bytes); });
    op("aten::addcdiv_", {p, p, p}, {p}, [&] { elementwise("at::native::addcdiv_cuda_kernel", 4 * bytes); });
    work(4);
  };
  for (const Tensor& p : bottom_) update(p);
  for (const Tensor& p : top_) update(p);
}

Nanoseconds recorded_time(double us, bool whole_microseconds) {
  const auto ns =
      whole_microseconds ? 1000 * static_cast<std::int64_t>(std::floor(us)) : std::llround(us * 1000);
  return kGeneratorEpoch + Nanoseconds{ns};
}

// Sorts events as RecordedRank has them and gives for every old index the new one.
template <class Event>
std::vector<std::uint32_t> sort_events(std::vector<Event>& events) {
  std::vector<std::uint32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return events[a].start != events[b].start ? events[a].start < events[b].start
                                              : events[a].duration > events[b].duration;
  });
  std::vector<Event> sorted;
  std::vector<std::uint32_t> moved(events.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    sorted.push_back(events[order[i]]);
    moved[order[i]] = i;
  }
  events = std::move(sorted);
  return moved;
}

GeneratedRank RankWriter::record(const machine::RankRun& run, std::vector<TrueCollective>& collectives) {
  constexpr std::uint32_t kNotRecorded = 0xffffffff;
  GeneratedRank result;
  RecordedRank& r = result.recorded;
  r.file = fmt::format("kineto_rank{}.json", rank_);
  r.schema = "1";
  r.rank = rank_;
  r.world_size = options_.ranks;
  r.devices.push_back({.id = 0,
                       .name = "Tesla V100-SXM2-32GB",
                       .memory_bytes = 34079899648,
                       .sm_count = kMultiprocessors,
                       .max_threads_per_sm = 2048});
  const std::int64_t pid = 59811 + rank_;
  r.threads = {{.pid = pid, .tid = pid, .name = fmt::format("thread {} (python3)", pid)},
               {.pid = pid, .tid = pid + 165, .name = fmt::format("thread {} (pt_autograd_0)", pid + 165)}};
  r.collective_infos = collective_infos_;

  const auto time = [&](double us) { return recorded_time(us, options_.whole_microseconds); };
  const auto set_times = [&](auto& event, double start, double end) {
    event.start = time(start);
    event.duration = time(end) - event.start;
  };
  const auto thread_id = [](int thread) { return ThreadId{static_cast<std::uint32_t>(thread)}; };
  const auto instruction = [&](int thread, std::size_t i) {
    return run.instructions[static_cast<std::size_t>(thread)][i];
  };

  // Framework ops: the profiler numbers them thread by thread, the autograd thread first.
  std::int64_t order = 0;
  for (const int thread : {kAutograd, kMain}) {
    for (const OpRecord& o : ops_) {
      if (o.thread != thread) continue;
      CpuOp op;
      set_times(op, instruction(thread, o.begin).start, instruction(thread, o.end).start);
      op.name = names_.intern(o.name);
      op.thread = thread_id(thread);
      if (!o.input_shapes.empty()) op.input_shapes = names_.intern(o.input_shapes);
      op.external_id = o.external_id;
      op.order = order++;
      op.sequence_number = o.sequence_number;
      op.collective = o.collective;
      op.kind = o.kind;
      r.cpu_ops.push_back(op);
    }
  }
  sort_events(r.cpu_ops);

  // Runtime calls.
  std::vector<std::uint32_t> call_index(calls_.size(), kNotRecorded);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallRecord& c = calls_[i];
    if (!c.visible) continue;
    RuntimeCall call;
    const machine::Span span = instruction(c.thread, c.instruction);
    set_times(call, span.start, span.end);
    call.name = names_.intern(c.name);
    call.thread = thread_id(c.thread);
    call.correlation = c.correlation;
    call.external_id = options_.launch_linked_to_op ? c.op_id : c.correlation;
    call_index[i] = static_cast<std::uint32_t>(r.runtime_calls.size());
    r.runtime_calls.push_back(call);
  }
  const std::vector<std::uint32_t> moved_calls = sort_events(r.runtime_calls);
  for (std::uint32_t& i : call_index) {
    if (i != kNotRecorded) i = moved_calls[i];
  }

  // GPU work: also what was launched before the window and starts in it.
  const double window_us = instruction(kMain, window_mark_).start;
  std::vector<std::uint32_t> op_index(item_records_.size(), kNotRecorded);
  const auto is_work = [&](std::size_t i) {
    return script_.items[i].kind != ItemKind::event_record && script_.items[i].kind != ItemKind::event_wait;
  };
  for (std::size_t i = 0; i < item_records_.size(); ++i) {
    if (!is_work(i)) continue;
    const ItemRecord& item = item_records_[i];
    const CallRecord& launch = calls_[item.call];
    if (!launch.visible && run.items[i].start < window_us) continue;
    if (!launch.visible) ++result.left_over;
    GpuOp op;
    set_times(op, run.items[i].start, run.items[i].end);
    op.name = names_.intern(item.name);
    op.stream = item.stream;
    op.correlation = launch.correlation;
    op.external_id = options_.launch_linked_to_op ? launch.op_id : launch.correlation;
    op.bytes = item.bytes;
    op.kind = item.kind;
    op.collective = item.collective;
    if (item.blocks >= 0) {
      op.blocks = item.blocks;
      op.blocks_per_sm = static_cast<float>(item.blocks) / static_cast<float>(kMultiprocessors);
    }
    op_index[i] = static_cast<std::uint32_t>(r.gpu_ops.size());
    r.gpu_ops.push_back(op);
  }
  const std::vector<std::uint32_t> moved_ops = sort_events(r.gpu_ops);
  for (std::uint32_t& i : op_index) {
    if (i != kNotRecorded) i = moved_ops[i];
  }

  if (options_.event_records == EventRecords::sync_records) {
    for (const SyncRecord& s : syncs_) {
      const CallRecord& c = calls_[s.call];
      if (!c.visible) continue;
      StreamSync sync;
      const machine::Span span = instruction(c.thread, c.instruction);
      set_times(sync, span.start, span.end);
      sync.correlation = c.correlation;
      sync.stream = s.stream;
      sync.wait_on_stream = s.wait_on_stream;
      sync.wait_on_event_record_correlation = s.record_correlation;
      sync.kind = s.kind;
      r.stream_syncs.push_back(sync);
    }
    sort_events(r.stream_syncs);
  }

  // The truth. Items were written in the order in which they enter their stream.
  std::map<int, std::size_t> last_work;  // [stream] item
  std::vector<std::optional<std::size_t>> event_source(static_cast<std::size_t>(events_));
  struct OpenWait {
    std::size_t source, call;
    WaitPattern pattern;
  };
  std::map<int, std::vector<OpenWait>> open_waits;  // [stream]
  for (std::size_t i = 0; i < item_records_.size(); ++i) {
    const Item& item = script_.items[i];
    const ItemRecord& record = item_records_[i];
    if (item.kind == ItemKind::event_record) {
      if (const auto last = last_work.find(record.stream); last != last_work.end())
        event_source[static_cast<std::size_t>(item.event)] = last->second;
    } else if (item.kind == ItemKind::event_wait) {
      if (record.no_effect) continue;
      const auto source = event_source[static_cast<std::size_t>(item.event)];
      if (source) open_waits[record.stream].push_back({*source, record.call, record.pattern});
    } else {
      const auto previous = last_work.find(record.stream);
      const double previous_end = previous == last_work.end() ? -1e18 : run.items[previous->second].end;
      const CallRecord& launch = calls_[record.call];
      const double visible = instruction(launch.thread, launch.instruction).end + item.delay_us;
      for (const OpenWait& w : open_waits[record.stream]) {
        if (op_index[w.source] == kNotRecorded || op_index[i] == kNotRecorded ||
            call_index[w.call] == kNotRecorded)
          continue;
        result.event_edges.push_back({op_index[w.source], op_index[i], call_index[w.call], w.pattern,
                                      run.items[w.source].end > std::max(previous_end, visible)});
      }
      open_waits[record.stream].clear();
      last_work[record.stream] = i;
    }
  }
  for (const SynchronizingCall& s : synchronizing_) {
    if (call_index[s.call] == kNotRecorded) continue;
    const CallRecord& c = calls_[s.call];
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < s.items; ++i) {
      if (!is_work(i) || (s.stream != kNone && item_records_[i].stream != s.stream)) continue;
      if (!last || run.items[i].end >= run.items[*last].end) last = i;
    }
    if (!last || op_index[*last] == kNotRecorded) continue;
    const machine::Span span = instruction(c.thread, c.instruction);
    const double base = script_.threads[static_cast<std::size_t>(c.thread)][c.instruction].us;
    result.synchronizations.push_back({op_index[*last], call_index[s.call], span.end - span.start - base});
  }
  for (std::size_t i = 0; i < item_records_.size(); ++i) {
    if (item_records_[i].group == kNone || op_index[i] == kNotRecorded ||
        !calls_[item_records_[i].call].visible)
      continue;
    TrueCollective& c = collectives[static_cast<std::size_t>(item_records_[i].group)];
    c.gpu_ops.push_back(op_index[i]);
    c.arrival_us.push_back(run.items[i].start);
  }

  r.names = names_;
  r.event_count = r.cpu_ops.size() + r.runtime_calls.size() + r.gpu_ops.size() + r.stream_syncs.size();

  const auto plain_node = [](const char* kind, std::int64_t id, int thread) {
    return fmt::format(
        R"({{"name":"[pytorch|profiler|execution_graph|{}]","id":{},"rf_id":0,"parent":1,"fw_parent":0,"seq_id":-1,"scope":7,)"
        R"("tid":{},"fw_tid":0,"op_schema":"","inputs":[],"input_shapes":[],"input_types":[],"outputs":[],"output_shapes":[],)"
        R"("output_types":[]}})",
        kind, id, thread);
  };
  result.execution_trace = fmt::format(
      "{{\"schema\":\"1.0.1\",\"pid\":{},\"time\":\"2023-09-07 16:09:59\",\"start_ts\":{},\"nodes\":[\n", pid,
      static_cast<std::int64_t>(window_us));
  for (const int thread : {kMain, kAutograd}) {
    if (const std::int64_t id = thread_nodes_[static_cast<std::size_t>(thread)]; id != 0) {
      result.execution_trace += plain_node("thread", id, thread + 1) + ",\n";
    }
  }
  result.execution_trace += nodes_;
  if (!nodes_.empty()) result.execution_trace += ",\n";
  result.execution_trace += plain_node("process", 1, 0);
  result.execution_trace +=
      fmt::format("\n],\"finish_ts\":{}}}\n", static_cast<std::int64_t>(window_us) + 20000);
  return result;
}

}  // namespace

GeneratedJob generate_job(const GeneratorOptions& options) {
  Shared shared;
  std::vector<RankWriter> writers;
  writers.reserve(static_cast<std::size_t>(options.ranks));
  for (int rank = 0; rank < options.ranks; ++rank) writers.emplace_back(options, rank, shared);
  std::vector<machine::RankScript> scripts;
  for (const RankWriter& w : writers) scripts.push_back(w.script());
  const auto runs =
      machine::run(scripts, shared.machine, {.seed = options.seed, .launch_queue = options.launch_queue});
  GeneratedJob job;
  for (std::size_t r = 0; r < writers.size(); ++r)
    job.ranks.push_back(writers[r].record(runs[r], shared.truth));
  for (TrueCollective& c : shared.truth) {
    if (c.gpu_ops.size() == job.ranks.size()) job.collectives.push_back(std::move(c));
  }
  return job;
}

GeneratorOptions dlrm_example() {
  GeneratorOptions options;
  options.seed = 4;
  options.ranks = 4;
  options.tables = {2, 1, 2, 3};
  options.pooling = {20, 20, 20, 60};
  options.late_gpu_ranks = {1};
  return options;
}

}  // namespace stepcast::test
