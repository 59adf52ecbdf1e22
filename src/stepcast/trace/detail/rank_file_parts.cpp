#include "stepcast/trace/detail/rank_file_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stepcast::detail {
namespace {

constexpr std::int64_t kLatest = std::int64_t{1} << 61U;  // of times, in ns: sums of two stay in range

// One number for each field of a file. Those of differences (AdaptiveCoder::difference) come first.
enum Field : std::uint32_t {
  kGap,
  kReturn,
  kLaunchDelay,
  kStreamGap,
  kKernelTime,
  kSyncStart,
  kTensorSize,
  kOther,
  kLength,
  kText,
  kFlag,
  kStep,
  kHead,
  kIsCall,
  kThread,
  kEnded,
  kOp,
  kOpKind,
  kShapes,
  kTypes,
  kValues,
  kExternal,
  kOrder,
  kSequence,
  kOpCollective,
  kCall,
  kCorrelation,
  kCallExternal,
  kCallExternalNumber,
  kDevice,
  kStream,
  kLaunch,
  kIsLaunch,
  kGpuCorrelation,
  kKernel,
  kGpuKind,
  kBytes,
  kBlocks,
  kHasBlocks,
  kBlocksPerSm,
  kGpuExternal,
  kGpuExternalNumber,
  kGpuCollective,
  kSyncKind,
  kSyncCorrelation,
  kSyncStream,
  kSyncWaits,
  kSyncEvent,
  kAllocator,
  kAllocated,
  kInfo,
  kInfoName,
  kInfoGroup,
  kInfoList,
  kNodeId,
  kNodeParent,
  kNodeOrder,
  kNodeSequence,
  kNodeForward,
  kNodeThread,
  kNode,
  kNodeShapes,
  kNodeTypes,
  kNodeOutShapes,
  kNodeOutTypes,
  kNodeValues,
  kNodeInputs,
  kNodeOutputs,
  kNodeCollective,
  kTensor,
  kTensorId,
  kStorage,
  kOffset,
  kElements,
  kElementBytes,
  kOnGpu,
  kEtCollective,
  kEtGroup,
  kEtList,
};

template <class Value>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;

std::uint64_t plain(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t sum(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(plain(a) + plain(b)); }
std::int64_t less(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(plain(a) - plain(b)); }

// A number that mostly follows the one before, and may be absent (-1): 0 then, and else the step to it.
class Following {
 public:
  [[nodiscard]] std::int64_t step_to(std::int64_t value) const {
    if (value == -1) return 0;
    const std::int64_t step = less(value, last_);
    return step >= 0 ? sum(step, 1) : step;
  }
  std::int64_t take(std::int64_t step) {
    last_step_ = step;
    if (step == 0) return -1;
    return last_ = sum(last_, step > 0 ? step - 1 : step);
  }
  [[nodiscard]] std::int64_t last() const { return last_; }
  [[nodiscard]] std::uint64_t last_step() const { return plain(last_step_); }

 private:
  std::int64_t last_ = 0, last_step_ = 0;
};

// What times of a list of events are whole multiples of, from its first start on.
struct Clock {
  std::int64_t origin = 0, unit = 1;

  template <class Rows>
  void see(const Rows& rows) {
    for (const auto& row : rows) {
      if (!seen_) origin = row.start.count();
      seen_ = true;
      all_ = std::gcd(all_, row.start.count() - origin);
      if constexpr (requires { row.duration; }) all_ = std::gcd(all_, row.duration.count());
    }
    unit = std::max<std::int64_t>(all_, 1);
  }
  [[nodiscard]] std::int64_t ticks(Nanoseconds t) const {
    const std::int64_t ns = less(t.count(), origin);
    return ns / unit - (ns % unit < 0 ? 1 : 0);
  }

 private:
  bool seen_ = false;
  std::int64_t all_ = 0;
};

// Of the names of a field, as tables/known_names.txt has them.
std::uint32_t kind_of(std::uint32_t field) {
  switch (field) {
    case kOp:
    case kNode: return 0;
    case kShapes:
    case kNodeShapes:
    case kNodeOutShapes: return 1;
    case kTypes:
    case kNodeTypes:
    case kNodeOutTypes: return 2;
    case kValues:
    case kNodeValues: return 3;
    case kCall: return 4;
    case kKernel: return 5;
    default: return 6;
  }
}

// The names of one table: those of the file's own that the coder's stand for.
class Names {
 public:
  Names(AdaptiveCoder& io, StringTable& table) : io_(io), table_(table) {}

  // Gives back what tells this name from others.
  std::uint64_t code(std::uint32_t field, NameId& name, std::uint64_t all, std::uint64_t roughly) {
    const std::uint32_t place =
        io_.name(field, kind_of(field), table_.text(name), name.valid(), all, roughly);
    if (!io_.is_reading() || io_.failed()) return place;
    if (own_.size() <= place) own_.resize(place + 1U);
    if (place > 0 && !own_[place].valid()) own_[place] = table_.intern(io_.names().text(NameId{place - 1}));
    name = own_[place];
    return place;
  }

 private:
  AdaptiveCoder& io_;
  StringTable& table_;
  std::vector<NameId> own_;  // [place in the coder's names]
};

class Walk {
 public:
  Walk(AdaptiveCoder& io, std::uint64_t most_rows) : io_(io), rows_left_(most_rows) {}

  void file(RankFile& file) {
    optional(file.step);
    rank(file.rank);
    bool has_trace = io_.flag(kFlag, 0, file.execution_trace.has_value());
    if (has_trace && !io_.failed())
      trace(io_.is_reading() ? file.execution_trace.emplace() : *file.execution_trace);
  }

 private:
  // ---- single values
  template <class Value>
  void set(Value& value, std::int64_t read) {
    if (!io_.is_reading()) return;
    if constexpr (std::is_same_v<Value, Nanoseconds>) {
      value = Nanoseconds{read};
      if (read <= -kLatest || read >= kLatest) io_.fail();
    } else if constexpr (kIsId<Value>) {
      if (read < 0 || read >= std::numeric_limits<std::uint32_t>::max()) return io_.fail();
      value = read == 0 ? Value{} : Value{static_cast<std::uint32_t>(read - 1)};
    } else if constexpr (std::is_same_v<Value, float>) {
      value = std::bit_cast<float>(static_cast<std::int32_t>(read));
      if (read != static_cast<std::int32_t>(read) || std::isnan(value)) io_.fail();
    } else {
      value = static_cast<Value>(read);
      if (static_cast<std::int64_t>(value) != read) io_.fail();
    }
  }
  template <class Value>
  static std::int64_t number_of(const Value& value) {
    if constexpr (std::is_same_v<Value, Nanoseconds>)
      return value.count();
    else if constexpr (kIsId<Value>)
      return value.valid() ? std::int64_t{value.index()} + 1 : 0;
    else if constexpr (std::is_same_v<Value, float>)
      return std::bit_cast<std::int32_t>(value);
    else
      return static_cast<std::int64_t>(value);
  }
  template <class Value>
  std::uint64_t symbol(std::uint32_t field, Value& value, std::uint64_t all, std::uint64_t roughly) {
    const std::int64_t read = io_.symbol(field, number_of(value), all, roughly);
    set(value, read);
    return plain(read);
  }
  template <class Value>
  std::uint64_t following(std::uint32_t field, Following& row, Value& value, std::uint64_t all,
                          std::uint64_t roughly) {
    const std::int64_t step =
        io_.symbol(field, row.step_to(number_of(value)), mixed(all, row.last_step()), roughly);
    set(value, row.take(step));
    return plain(step);
  }
  template <class Value>
  void number(std::uint32_t field, Value& value) {
    set(value, io_.number(field, number_of(value)));
  }
  template <class Value>
  void optional(std::optional<Value>& value) {
    const bool is_there = io_.flag(kFlag, 1, value.has_value());
    if (is_there) number(kHead, io_.is_reading() ? value.emplace() : *value);
  }
  void text(std::string& text) {
    std::string read = io_.text(6, text);
    if (io_.is_reading()) text = std::move(read);
  }
  std::size_t length(std::size_t n) {
    const std::int64_t read = io_.number(kLength, static_cast<std::int64_t>(n));
    if (read < 0 || plain(read) > rows_left_) io_.fail();
    if (io_.failed()) return 0;
    rows_left_ -= plain(read);
    return static_cast<std::size_t>(read);
  }
  template <class Row, class Code>
  void list(std::vector<Row>& rows, const Code& code) {
    const std::size_t n = length(rows.size());
    for (std::size_t i = 0; i < n && !io_.failed(); ++i) {
      if (io_.is_reading()) rows.emplace_back();
      code(rows[i]);
    }
    if (io_.is_reading()) rows.shrink_to_fit();
  }
  template <class Number>
  void numbers(std::uint32_t field, std::vector<Number>& values) {
    Following row;
    std::uint64_t before = 0;
    list(values, [&](Number& value) { before = following(field, row, value, before, 0); });
  }
  void counts(std::map<std::string, std::uint64_t>& counts) {
    std::vector<std::pair<std::string, std::uint64_t>> rows(counts.begin(), counts.end());
    list(rows, [&](auto& row) {
      text(row.first);
      number(kHead, row.second);
    });
    if (io_.is_reading()) counts = {rows.begin(), rows.end()};
  }
  void clock(Clock& clock) {
    clock.origin = io_.number(kHead, clock.origin);
    clock.unit = io_.number(kHead, clock.unit);
    if (clock.unit < 1 || clock.unit > kLatest || clock.origin <= -kLatest || clock.origin >= kLatest)
      io_.fail();
  }
  Nanoseconds time(std::int64_t ticks, std::int64_t origin, std::int64_t unit) {
    if (ticks > kLatest / unit || ticks < -kLatest / unit) io_.fail();
    return Nanoseconds{io_.failed() ? 0 : sum(origin, ticks * unit)};
  }

  void rank(RecordedRank& rank);
  void head(RecordedRank& rank);
  void cpu(RecordedRank& rank, Names& names);
  void gpu(RecordedRank& rank, Names& names);
  void syncs(RecordedRank& rank);
  void collectives(RecordedRank& rank, Names& names);
  void trace(ExecutionTrace& trace);
  void node(ExecutionTrace& trace, Names& names, EtNode& node, std::size_t i);
  void tensors(std::vector<TensorUse>& tensors);

  // ---- host: a thread is a row of begins and ends, and each of them comes some time after the one before
  struct Open {
    std::uint32_t op = 0;  // its place in cpu_ops
    std::uint64_t name = 0, shapes = 0, types = 0;
    std::int64_t external_id = -1, sequence = -1;
    std::int64_t end = 0;  // ticks; of a writer
  };
  struct Thread {
    std::vector<Open> open;
    std::int64_t at = 0;                      // ticks of the last begin or end
    std::uint64_t last = 0, before_last = 0;  // names that began or ended there
    std::uint64_t shapes = 0;                 // of the last operator
  };
  // What a launch was called from, for the work of the GPU.
  struct Caller {
    std::uint64_t name = 0, shapes = 0;
    bool is_taken = false;
  };
  void end_of(RecordedRank& rank, Thread& thread);
  void op(RecordedRank& rank, Names& names, Thread& thread, CpuOp& op);
  void call(Names& names, Thread& thread, RuntimeCall& call);
  std::int64_t gap(Field field, std::int64_t ticks, Thread& thread, std::uint64_t name, std::uint64_t how);

  struct Stream {
    std::size_t next_call = 0;
    std::int64_t end_ns = 0;
    std::uint64_t last = 0, before_last = 0, last_how = 0;
  };
  const RuntimeCall* launch(RecordedRank& rank, GpuOp& op, Stream& stream);
  void kernel_times(GpuOp& op, Stream& stream, const RuntimeCall* call, std::uint64_t work);

  AdaptiveCoder& io_;
  std::uint64_t rows_left_;
  Clock host_, device_;
  Following external_, order_, sequence_, op_collective_, correlation_, call_external_, gpu_correlation_,
      gpu_external_, gpu_collective_;
  std::vector<Caller> callers_;            // [runtime call]
  std::vector<std::uint64_t> call_names_;  // [runtime call]
  std::int64_t sm_count_ = 0;
  // ---- execution trace
  Following node_order_, node_sequence_, node_collective_;
  std::unordered_map<std::int64_t, std::size_t> node_at_;  // by id
  std::vector<std::uint64_t> node_names_;
};

// ---- the head
void Walk::head(RecordedRank& rank) {
  text(rank.schema);
  optional(rank.rank);
  optional(rank.world_size);
  list(rank.devices, [&](DeviceProperties& d) {
    number(kHead, d.id);
    text(d.name);
    number(kHead, d.memory_bytes);
    number(kHead, d.sm_count);
    number(kHead, d.max_threads_per_sm);
  });
  list(rank.threads, [&](RecordedThread& t) {
    number(kHead, t.pid);
    number(kHead, t.tid);
    text(t.name);
  });
  number(kHead, rank.event_count);
  counts(rank.skipped);
  if (!rank.devices.empty()) sm_count_ = rank.devices.front().sm_count;
}

void Walk::rank(RecordedRank& rank) {
  head(rank);
  Names names{io_, rank.names};
  if (!io_.is_reading()) {
    host_.see(rank.cpu_ops);
    host_.see(rank.runtime_calls);
    device_.see(rank.gpu_ops);
  }
  clock(host_);
  clock(device_);
  if (io_.failed()) return;
  cpu(rank, names);
  if (!io_.failed()) gpu(rank, names);
  if (!io_.failed()) syncs(rank);
  if (!io_.failed()) collectives(rank, names);
}

// ---- the host
std::int64_t Walk::gap(Field field, std::int64_t ticks, Thread& thread, std::uint64_t name,
                       std::uint64_t how) {
  const std::int64_t read =
      io_.difference(field, less(ticks, thread.at), mixed(thread.last, name, how), mixed(name, how));
  thread.before_last = thread.last;
  thread.last = mixed(name, how);
  return thread.at = sum(thread.at, read);
}

void Walk::end_of(RecordedRank& rank, Thread& thread) {
  const Open open = thread.open.back();
  thread.open.pop_back();
  const std::int64_t end = gap(kReturn, open.end, thread, open.name, 1);
  if (!io_.is_reading()) return;
  CpuOp& op = rank.cpu_ops[open.op];
  op.duration = time(end, host_.origin, host_.unit) - op.start;
}

void Walk::op(RecordedRank& rank, Names& names, Thread& thread, CpuOp& op) {
  const Open parent = thread.open.empty() ? Open{} : thread.open.back();
  const std::uint64_t name = names.code(kOp, op.name, mixed(parent.name, thread.last, thread.before_last),
                                        mixed(parent.name, thread.last));
  const std::int64_t start = gap(kGap, host_.ticks(op.start), thread, name, 2);
  if (io_.is_reading()) op.start = time(start, host_.origin, host_.unit);
  symbol(kOpKind, op.kind, name, 0);
  const std::uint64_t shapes = names.code(kShapes, op.input_shapes, mixed(name, parent.shapes, thread.shapes),
                                          mixed(name, parent.shapes));
  thread.shapes = shapes;
  const std::uint64_t types = names.code(kTypes, op.input_types, mixed(name, shapes, parent.types), name);
  names.code(kValues, op.input_values, mixed(name, shapes, types), name);
  const std::uint64_t step = following(kExternal, external_, op.external_id, name, 0);
  following(kOrder, order_, op.order, step, 1);
  // Of the operator around it, or one on from the last.
  const bool as_parent = op.sequence_number == parent.sequence;
  if (io_.flag(kSequence, name, as_parent))
    set(op.sequence_number, parent.sequence);
  else
    following(kSequence, sequence_, op.sequence_number, name, parent.name);
  following(kOpCollective, op_collective_, op.collective, name, 0);
  thread.open.push_back({static_cast<std::uint32_t>(&op - rank.cpu_ops.data()), name, shapes, types,
                         op.external_id, op.sequence_number, host_.ticks(op.end())});
}

void Walk::call(Names& names, Thread& thread, RuntimeCall& call) {
  const Open parent = thread.open.empty() ? Open{} : thread.open.back();
  const std::uint64_t name = names.code(kCall, call.name, mixed(parent.name, thread.last, thread.before_last),
                                        mixed(parent.name, thread.last));
  const std::int64_t start = gap(kGap, host_.ticks(call.start), thread, name, 3);
  const std::int64_t end = gap(kReturn, host_.ticks(call.end()), thread, name, 4);
  if (io_.is_reading()) {
    call.start = time(start, host_.origin, host_.unit);
    call.duration = time(end, host_.origin, host_.unit) - call.start;
  }
  following(kCorrelation, correlation_, call.correlation, mixed(name, thread.before_last), name);
  std::int64_t how = call.external_id == call.correlation     ? 0
                     : call.external_id == parent.external_id ? 1
                                                              : 2;
  how = io_.symbol(kCallExternal, how, name, 0);
  if (how == 0 || how == 1)
    set(call.external_id, how == 0 ? call.correlation : parent.external_id);
  else
    following(kCallExternalNumber, call_external_, call.external_id, name, 0);
  callers_.push_back({parent.name, parent.shapes});
  call_names_.push_back(name);
}

void Walk::cpu(RecordedRank& rank, Names& names) {
  const std::size_t n_ops = length(rank.cpu_ops.size()), n_calls = length(rank.runtime_calls.size());
  std::vector<Thread> threads(rank.threads.size());
  std::uint64_t last_thread = 0, last_sort = 0;
  if (io_.is_reading()) {
    rank.cpu_ops.reserve(n_ops);
    rank.runtime_calls.reserve(n_calls);
  }
  for (std::size_t o = 0, c = 0; (o < n_ops || c < n_calls) && !io_.failed();) {
    std::uint32_t thread = 0;
    bool is_call = false;
    Nanoseconds now{};
    if (!io_.is_reading()) {
      is_call = o == n_ops || (c < n_calls && rank.runtime_calls[c].start < rank.cpu_ops[o].start);
      const ThreadId on = is_call ? rank.runtime_calls[c].thread : rank.cpu_ops[o].thread;
      thread = static_cast<std::uint32_t>(on.index());
      now = is_call ? rank.runtime_calls[c].start : rank.cpu_ops[o].start;
    }
    const std::uint64_t around = last_thread < threads.size() ? threads[last_thread].last : 0;
    thread = static_cast<std::uint32_t>(
        io_.symbol(kThread, thread, mixed(last_thread, around, last_sort), last_thread));
    if (thread >= threads.size()) return io_.fail();
    Thread& on = threads[thread];
    std::int64_t ended = 0;
    if (!io_.is_reading()) {
      while (ended < static_cast<std::int64_t>(on.open.size()) &&
             on.open[on.open.size() - 1 - static_cast<std::size_t>(ended)].end <= host_.ticks(now))
        ++ended;
    }
    const std::uint64_t top = on.open.empty() ? 0 : on.open.back().name;
    const std::uint64_t above = on.open.size() < 2 ? 0 : on.open[on.open.size() - 2].name;
    ended = io_.symbol(kEnded, ended, mixed(top, on.last, on.before_last, above), mixed(top, on.last));
    if (ended < 0 || plain(ended) > on.open.size()) return io_.fail();
    for (; ended > 0; --ended) end_of(rank, on);
    is_call = io_.flag(kIsCall, mixed(on.last, on.open.empty() ? 0 : on.open.back().name), is_call);
    if (is_call ? c == n_calls : o == n_ops) return io_.fail();
    if (is_call) {
      if (io_.is_reading()) rank.runtime_calls.emplace_back().thread = ThreadId{thread};
      call(names, on, rank.runtime_calls[c++]);
    } else {
      if (io_.is_reading()) rank.cpu_ops.emplace_back().thread = ThreadId{thread};
      op(rank, names, on, rank.cpu_ops[o++]);
    }
    last_sort = is_call ? 1 : 0;
    last_thread = thread;
  }
  for (Thread& thread : threads)
    while (!thread.open.empty() && !io_.failed()) end_of(rank, thread);
}

// ---- the GPU: work mostly comes in the order of the launches on its stream
const RuntimeCall* Walk::launch(RecordedRank& rank, GpuOp& op, Stream& stream) {
  constexpr std::size_t kMostSkipped = 64;
  enum : std::int64_t { kNext, kSame, kElsewhere };
  const std::vector<RuntimeCall>& calls = rank.runtime_calls;
  const std::size_t end = std::min(calls.size(), stream.next_call + kMostSkipped);
  std::size_t at = stream.next_call;
  std::int64_t how = kElsewhere;
  if (!io_.is_reading()) {
    while (at < end && (callers_[at].is_taken || calls[at].correlation != op.correlation)) ++at;
    how = op.correlation == -1                                                                ? kElsewhere
          : at < end                                                                          ? kNext
          : stream.next_call > 0 && calls[stream.next_call - 1].correlation == op.correlation ? kSame
                                                                                              : kElsewhere;
  }
  how = io_.symbol(kLaunch, how, mixed(stream.last, stream.last_how), stream.last_how);
  stream.last_how = plain(how);
  if (how == kSame && stream.next_call > 0) {
    set(op.correlation, calls[stream.next_call - 1].correlation);
    return &calls[stream.next_call - 1];
  }
  if (how != kNext) {
    following(kGpuCorrelation, gpu_correlation_, op.correlation, stream.last, 0);
    return nullptr;
  }
  std::size_t i = stream.next_call;
  for (; i < end; ++i) {
    if (callers_[i].is_taken) continue;
    if (io_.flag(kIsLaunch, mixed(call_names_[i], plain(op.stream)), i == at)) break;
  }
  if (i >= end) return io_.fail(), nullptr;
  callers_[i].is_taken = true;
  stream.next_call = i + 1;
  set(op.correlation, calls[i].correlation);
  return &calls[i];
}

void Walk::kernel_times(GpuOp& op, Stream& stream, const RuntimeCall* call, std::uint64_t work) {
  // Behind the work before it, or behind its launch.
  const std::int64_t launched = call != nullptr ? call->start.count() : stream.end_ns;
  const bool waits = launched > stream.end_ns;
  const std::int64_t base = device_.ticks(Nanoseconds{waits ? launched : stream.end_ns});
  const Field field = waits ? kLaunchDelay : kStreamGap;
  const std::uint64_t name = mixed(plain(number_of(op.kind)), waits ? 1 : 0);
  const std::int64_t start = sum(
      base, io_.difference(field, less(device_.ticks(op.start), base), mixed(name, stream.last, work), name));
  set(op.start, time(start, device_.origin, device_.unit).count());
  const std::int64_t took =
      io_.difference(kKernelTime, op.duration.count() / device_.unit, work, stream.last);
  set(op.duration, time(took, 0, device_.unit).count());
  stream.end_ns = sum(op.start.count(), op.duration.count());
}

void Walk::gpu(RecordedRank& rank, Names& names) {
  std::map<std::int64_t, Stream> streams;
  std::uint64_t last = 0, before_last = 0;
  list(rank.gpu_ops, [&](GpuOp& op) {
    const std::uint64_t on = symbol(
        kStream, op.stream, mixed(last, before_last, streams[static_cast<std::int64_t>(last)].last), last);
    before_last = std::exchange(last, on);
    symbol(kDevice, op.device, on, 0);
    Stream& stream = streams[op.stream];
    const RuntimeCall* call = launch(rank, op, stream);
    if (io_.failed()) return;
    const Caller caller =
        call != nullptr ? callers_[static_cast<std::size_t>(call - rank.runtime_calls.data())] : Caller{};
    const std::uint64_t name = names.code(kKernel, op.name, mixed(caller.name, caller.shapes, stream.last),
                                          mixed(caller.name, call != nullptr ? 0 : stream.last));
    symbol(kGpuKind, op.kind, name, 0);
    const std::uint64_t bytes = symbol(kBytes, op.bytes, mixed(name, caller.shapes, stream.last), name);
    const std::uint64_t blocks = symbol(kBlocks, op.blocks, mixed(name, caller.shapes, stream.last), name);
    const float per_sm = sm_count_ > 0 ? static_cast<float>(op.blocks) / static_cast<float>(sm_count_) : 0;
    if (io_.flag(kHasBlocks, 0, op.blocks_per_sm == per_sm))
      set(op.blocks_per_sm, number_of(per_sm));
    else
      symbol(kBlocksPerSm, op.blocks_per_sm, mixed(name, blocks), blocks);
    const std::uint64_t work = mixed(name, blocks, bytes);
    kernel_times(op, stream, call, work);
    const bool as_call = call != nullptr && op.external_id == call->external_id;
    std::int64_t how = as_call ? 0 : op.external_id == op.correlation ? 1 : 2;
    how = io_.symbol(kGpuExternal, how, call != nullptr ? 1 : 0, on);
    if (how == 1 || (how == 0 && call != nullptr))
      set(op.external_id, how == 1 ? op.correlation : call->external_id);
    else
      following(kGpuExternalNumber, gpu_external_, op.external_id, name, 0);
    following(kGpuCollective, gpu_collective_, op.collective, name, 0);
    stream.before_last = std::exchange(stream.last, name);
  });
}

void Walk::syncs(RecordedRank& rank) {
  Following correlation, event;
  Clock syncs, memory;
  std::int64_t at = 0, page = 0;
  if (!io_.is_reading()) {
    syncs.see(rank.stream_syncs);
    memory.see(rank.allocator_states);
    for (const AllocatorState& state : rank.allocator_states) page = std::gcd(page, state.allocated_bytes);
  }
  clock(syncs);
  clock(memory);
  page = std::max<std::int64_t>(io_.number(kHead, page), 1);
  std::uint64_t last = 0;
  list(rank.stream_syncs, [&](StreamSync& s) {
    const std::uint64_t kind = symbol(kSyncKind, s.kind, last, 0);
    at = sum(at, io_.difference(kSyncStart, less(syncs.ticks(s.start), at), mixed(kind, last), kind));
    set(s.start, time(at, syncs.origin, syncs.unit).count());
    const std::int64_t took = io_.difference(kOther, s.duration.count() / syncs.unit, kind, 0);
    set(s.duration, time(took, 0, syncs.unit).count());
    following(kSyncCorrelation, correlation, s.correlation, mixed(kind, last), kind);
    const std::uint64_t on = symbol(kSyncStream, s.stream, mixed(kind, last), kind);
    symbol(kSyncWaits, s.wait_on_stream, mixed(kind, on, last), mixed(kind, on));
    following(kSyncEvent, event, s.wait_on_event_record_correlation, mixed(kind, last), kind);
    last = mixed(kind, on);
  });
  std::int64_t allocated = 0, reserved = 0;
  at = 0;
  last = 0;
  std::uint64_t before_last = 0;
  list(rank.allocator_states, [&](AllocatorState& state) {
    at = sum(at, io_.difference(kOther, less(memory.ticks(state.start), at), mixed(last, 1), 1));
    set(state.start, time(at, memory.origin, memory.unit).count());
    symbol(kDevice, state.device, 0, 1);
    const std::int64_t more =
        io_.symbol(kAllocated, less(state.allocated_bytes, allocated) / page, mixed(last, before_last), last);
    allocated = sum(allocated, static_cast<std::int64_t>(plain(more) * plain(page)));
    set(state.allocated_bytes, allocated);
    reserved = sum(reserved, io_.symbol(kAllocator, less(state.reserved_bytes, reserved), 0, 1));
    set(state.reserved_bytes, reserved);
    before_last = std::exchange(last, plain(more));
  });
}

void Walk::collectives(RecordedRank& rank, Names& names) {
  Following sequence;
  list(rank.collective_infos, [&](CollectiveInfo& info) {
    const std::uint64_t name = names.code(kInfoName, info.name, sequence.last_step(), 0);
    const std::uint64_t group = names.code(kInfoGroup, info.process_group, name, 0);
    symbol(kInfo, info.op, name, 1);
    symbol(kInfo, info.dtype, mixed(name, group, 2), 2);
    symbol(kInfo, info.group_size, mixed(group, 3), 3);
    const std::uint64_t elements = symbol(kInfo, info.in_elements, mixed(name, group, 4), 4);
    symbol(kInfo, info.out_elements, mixed(name, elements, 5), 5);
    following(kInfo, sequence, info.sequence, mixed(group, 6), 6);
    symbol(kInfo, info.comms_id, mixed(group, 7), 7);
    numbers(kInfoList, info.group_ranks);
    numbers(kInfoList, info.in_split);
    numbers(kInfoList, info.out_split);
  });
}

// ---- the execution trace: a tree of operators in the order in which they began
void Walk::node(ExecutionTrace& trace, Names& names, EtNode& node, std::size_t i) {
  constexpr std::int64_t kMostLevels = 32;
  const EtNode last = i > 0 ? trace.nodes[i - 1] : EtNode{};
  const std::uint64_t last_name = i > 0 ? node_names_[i - 1] : 0;
  const std::int64_t step = io_.symbol(kNodeId, less(node.id, last.id), last_name, 0);
  set(node.id, sum(last.id, step));
  // Inside of the one before, or of one of those around that.
  std::int64_t level = 0, candidate = last.id;
  const auto up = [&](std::int64_t id) {
    const auto found = node_at_.find(id);
    return found == node_at_.end() ? 0 : trace.nodes[found->second].parent;
  };
  if (!io_.is_reading())
    for (; level < kMostLevels && candidate != node.parent; ++level) candidate = up(candidate);
  level = io_.symbol(kNodeParent, level, mixed(last_name, i > 1 ? node_names_[i - 2] : 0), last_name);
  if (level < 0 || level > kMostLevels) return io_.fail();
  if (level < kMostLevels) {
    candidate = last.id;
    for (std::int64_t l = 0; l < level; ++l) candidate = up(candidate);
    set(node.parent, candidate);
  } else {
    set(node.parent, sum(last.parent, io_.number(kNodeParent, less(node.parent, last.parent))));
  }
  const auto parent = node_at_.find(node.parent);
  const std::uint64_t inside = parent == node_at_.end() ? 0 : node_names_[parent->second];
  const std::uint64_t name =
      names.code(kNode, node.name, mixed(inside, last_name, plain(level)), mixed(inside, last_name));
  following(kNodeOrder, node_order_, node.order, plain(step), name);
  const bool as_parent =
      parent != node_at_.end() && trace.nodes[parent->second].sequence_number == node.sequence_number;
  if (io_.flag(kNodeSequence, name, as_parent) && parent != node_at_.end())
    set(node.sequence_number, trace.nodes[parent->second].sequence_number);
  else
    following(kNodeSequence, node_sequence_, node.sequence_number, name, 0);
  set(node.forward_parent,
      sum(last.forward_parent, io_.symbol(kNodeForward, less(node.forward_parent, last.forward_parent),
                                          mixed(name, last_name), name)));
  symbol(kNodeThread, node.thread, plain(last.thread), mixed(plain(last.thread), last_name));
  symbol(kNodeThread, node.forward_thread, mixed(plain(last.forward_thread), name), name);
  const std::uint64_t shapes =
      names.code(kNodeShapes, node.input_shapes, mixed(name, last_name, inside), name);
  const std::uint64_t types = names.code(kNodeTypes, node.input_types, mixed(name, shapes), name);
  const std::uint64_t out = names.code(kNodeOutShapes, node.output_shapes, mixed(name, shapes), name);
  names.code(kNodeOutTypes, node.output_types, mixed(name, types), name);
  names.code(kNodeValues, node.values, mixed(name, shapes, types), name);
  const std::int64_t first =
      sum(last.end_output, io_.symbol(kNodeInputs, less(node.first_input, last.end_output), 0, 1));
  set(node.first_input, first);
  const std::int64_t inputs =
      sum(first, io_.symbol(kNodeInputs, less(node.first_output, first), mixed(name, shapes, types), name));
  set(node.first_output, inputs);
  set(node.end_output,
      sum(inputs, io_.symbol(kNodeOutputs, less(node.end_output, inputs), mixed(name, out), name)));
  following(kNodeCollective, node_collective_, node.collective, name, 0);
  node_at_.emplace(node.id, i);
  node_names_.push_back(name);
}

void Walk::tensors(std::vector<TensorUse>& tensors) {
  std::unordered_map<std::int64_t, std::size_t> seen;  // by id: its place among them
  std::vector<std::int64_t> ids;
  Following id;
  std::uint64_t last = 0, before_last = 0;
  list(tensors, [&](TensorUse& t) {
    std::int64_t back = 0;
    if (!io_.is_reading()) {
      const auto found = seen.find(t.tensor);
      back = found == seen.end() ? 0 : static_cast<std::int64_t>(ids.size() - found->second);
    }
    back = io_.symbol(kTensor, back, mixed(last, before_last), last);
    if (back < 0 || plain(back) > ids.size()) return io_.fail();
    if (back == 0) {
      following(kTensorId, id, t.tensor, 0, 1);
      seen.emplace(t.tensor, ids.size());
      ids.push_back(t.tensor);
    } else {
      set(t.tensor, ids[ids.size() - static_cast<std::size_t>(back)]);
    }
    const std::uint64_t which = plain(t.tensor);
    const std::int64_t stored = io_.symbol(kStorage, less(t.storage, t.tensor), which, 0);
    set(t.storage, sum(t.tensor, stored));
    symbol(kOffset, t.offset, which, 0);
    symbol(kElements, t.elements, which, mixed(last, 1));
    symbol(kElementBytes, t.element_bytes, which, 0);
    symbol(kOnGpu, t.on_gpu, which, 0);
    before_last = std::exchange(last, plain(back));
  });
}

void Walk::trace(ExecutionTrace& trace) {
  text(trace.schema);
  optional(trace.rank);
  counts(trace.skipped);
  Names names{io_, trace.names};
  std::size_t i = 0;
  list(trace.nodes, [&](EtNode& n) { node(trace, names, n, i++); });
  tensors(trace.tensors);
  Following sequence;
  list(trace.collectives, [&](EtCollective& c) {
    const std::uint64_t op = symbol(kEtCollective, c.op, sequence.last_step(), 0);
    symbol(kEtCollective, c.is_wait, mixed(op, 1), 1);
    following(kEtCollective, sequence, c.sequence, mixed(op, 2), 2);
    symbol(kEtCollective, c.elements_in, mixed(op, 3), 3);
    symbol(kEtCollective, c.elements_out, mixed(op, 4), 4);
    symbol(kEtCollective, c.dtype, mixed(op, 5), 5);
    symbol(kEtCollective, c.group_size, mixed(op, 6), 6);
    names.code(kEtGroup, c.process_group, op, 0);
    numbers(kEtList, c.in_split);
    numbers(kEtList, c.out_split);
  });
}

}  // namespace

void code_rank_file(AdaptiveCoder& coder, RankFile& file, std::uint64_t most_rows) {
  Walk{coder, most_rows}.file(file);
}

std::uint64_t rows_of(const RankFile& file) {
  const RecordedRank& r = file.rank;
  std::uint64_t rows = r.devices.size() + r.threads.size() + r.skipped.size() + r.cpu_ops.size() +
                       r.runtime_calls.size() + r.gpu_ops.size() + r.stream_syncs.size() +
                       r.allocator_states.size() + r.collective_infos.size();
  for (const CollectiveInfo& c : r.collective_infos)
    rows += c.group_ranks.size() + c.in_split.size() + c.out_split.size();
  if (!file.execution_trace) return rows;
  const ExecutionTrace& t = *file.execution_trace;
  for (const EtCollective& c : t.collectives) rows += c.in_split.size() + c.out_split.size();
  return rows + t.nodes.size() + t.tensors.size() + t.collectives.size() + t.skipped.size();
}

}  // namespace stepcast::detail
