// Builds the arrays of a RecordedRank from events in any order. Events are appended to chunked lists;
// finish() adds the base time, sorts, drops duplicates on GPU rows, repairs impossible times and orders the
// threads.
#include "stepcast/trace/detail/rank_builder.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "stepcast/trace/detail/rank_fold.h"
#include "stepcast/trace/detail/repair_times.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kMostSkipReasons = 100;
constexpr std::int64_t kLatestNs = 4'000'000'000'000'000'000;  // limit for times, see kineto_event.cpp

// The value as 32-bit integer; `otherwise` if it is out of range.
std::int32_t narrow(std::int64_t value, std::int32_t otherwise) {
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    return otherwise;
  return static_cast<std::int32_t>(value);
}

std::int64_t first_given(std::int64_t a, std::int64_t b) { return a != -1 ? a : b; }

// The number of a row. Old files name GPU rows "stream 7".
std::int64_t row_number(const RowId& row) {
  std::string_view text = row.text.raw;
  std::int64_t number = 0;
  if (text.starts_with("stream "sv) && parse_integer(text.substr(7), number)) return number;
  return row.number;
}

StreamSync::Kind sync_kind(std::string_view name) {
  if (name == "Stream Wait Event"sv) return StreamSync::Kind::stream_wait_event;
  if (name == "Event Sync"sv) return StreamSync::Kind::event_sync;
  if (name == "Stream Sync"sv) return StreamSync::Kind::stream_sync;
  if (name == "Context Sync"sv) return StreamSync::Kind::context_sync;
  return StreamSync::Kind::other;
}

}  // namespace

RankBuilder::RankBuilder(std::string file, RankFold* fold) : fold_(fold), interner_(rank_.names) {
  rank_.file = std::move(file);
}

// Keeps an event, or adds it to the fold.
template <class Event>
void RankBuilder::keep(ChunkedList<Event>& list, const Event& event) {
  first_start_ns_ = std::min(first_start_ns_, event.start.count());
  last_start_ns_ = std::max(last_start_ns_, event.start.count());
  if (fold_ != nullptr)
    fold_->add(event, rank_.names);
  else
    list.push_back(event);
}

// Events are kept with their names interned. Events of other vendors' runtimes are kept like those of CUDA,
// and their category is remembered.
void RankBuilder::add(const KinetoEvent& event) {
  ++rank_.event_count;
  switch (event.event_class) {
    case EventClass::skip:
    case EventClass::frame: count_skip(event.reason); break;
    case EventClass::kernel:
    case EventClass::memcpy:
    case EventClass::memset: add_gpu(event); break;
    case EventClass::runtime:
      if (!event.reason.empty() && rank_.other_runtimes.size() < kMostSkipReasons)
        rank_.other_runtimes.emplace(event.reason.substr(0, 64));
      keep(runtime_calls_, RuntimeCall{.start = Nanoseconds{event.start_ns},
                                       .duration = Nanoseconds{event.duration_ns},
                                       .name = interner_.text(event.name),
                                       .thread = thread_of(event),
                                       .correlation = event.args.correlation,
                                       .external_id = event.args.external_id});
      has_ops_or_calls_[last_thread_.index()] = true;
      break;
    case EventClass::op:
    case EventClass::annotation: add_cpu(event); break;
    case EventClass::sync: add_sync(event); break;
    case EventClass::memory:
      keep(allocator_states_, AllocatorState{.start = Nanoseconds{event.start_ns},
                                             .device = narrow(event.args.memory_device, 0),
                                             .allocated_bytes = event.args.total_allocated,
                                             .reserved_bytes = event.args.total_reserved});
      break;
    case EventClass::thread_name: add_thread_name(event); break;
  }
}

// Counts a skipped event. Neighbours often have the same reason, so the last counter is cached.
void RankBuilder::count_skip(std::string_view reason) {
  if (last_skip_count_ != nullptr && reason == last_skip_) {
    ++*last_skip_count_;
    return;
  }
  std::string key(reason.substr(0, 64));
  // A damaged file can have any number of categories.
  if (rank_.skipped.size() >= kMostSkipReasons && !rank_.skipped.contains(key)) key = "other categories";
  last_skip_ = reason;
  last_skip_count_ = &rank_.skipped[key];
  ++*last_skip_count_;
}

// The thread of an event, which is added if it is new. The last one is cached.
ThreadId RankBuilder::thread_of(const KinetoEvent& event) {
  const Row row{event.pid.number, event.tid.number};
  if (last_thread_.valid() && row == last_row_) return last_thread_;
  const auto [it, added] = threads_.try_emplace(row, ThreadId{rank_.threads.size()});
  if (added) {
    RecordedThread thread{.pid = row.first, .tid = row.second, .name = {}};
    if (event.tid.is_text()) thread.name = event.tid.text.raw;
    rank_.threads.push_back(std::move(thread));
    has_ops_or_calls_.push_back(false);
  }
  last_row_ = row;
  last_thread_ = it->second;
  return last_thread_;
}

// Texts of shapes, types and values are interned, since few distinct ones occur. With a fold they are not
// needed.
void RankBuilder::add_cpu(const KinetoEvent& event) {
  const EventArgs& a = event.args;
  CpuOp op{.start = Nanoseconds{event.start_ns},
           .duration = Nanoseconds{event.duration_ns},
           .name = interner_.text(event.name),
           .thread = thread_of(event)};
  const bool has_texts = fold_ == nullptr;
  if (has_texts && !a.input_dims.empty()) op.input_shapes = interner_.compact_json(a.input_dims);
  if (has_texts && !a.input_types.empty()) op.input_types = interner_.compact_json(a.input_types);
  constexpr std::size_t kLongestValues = 1024;  // arguments of the operator, not its data
  if (has_texts && !a.input_values.empty() && a.input_values.size() <= kLongestValues)
    op.input_values = interner_.compact_json(a.input_values);
  op.external_id = a.external_id;
  op.order = first_given(a.event_index, a.record_function_id);
  op.sequence_number = a.sequence_number;
  if (a.collective.any && event.name.raw == "record_param_comms"sv) op.collective = add_collective(event);
  if (profiler_step_number(event.name.raw))
    op.kind = CpuOp::Kind::step;
  else if (event.event_class == EventClass::annotation)
    op.kind = CpuOp::Kind::annotation;
  else
    has_ops_or_calls_[op.thread.index()] = true;
  keep(cpu_ops_, op);
}

// A kernel, copy or fill. Its row is remembered, to recognise rows of GPU streams.
void RankBuilder::add_gpu(const KinetoEvent& event) {
  const EventArgs& a = event.args;
  GpuOp op{.start = Nanoseconds{event.start_ns},
           .duration = Nanoseconds{event.duration_ns},
           .name = interner_.text(event.name),
           .device = narrow(a.device != kAbsent ? a.device : event.pid.number, 0),
           .stream = narrow(a.stream != kAbsent ? a.stream : row_number(event.tid), 0),
           .correlation = a.correlation,
           .external_id = a.external_id,
           .bytes = a.bytes,
           .blocks_per_sm = a.blocks_per_sm,
           .blocks = narrow(a.blocks, std::numeric_limits<std::int32_t>::max())};
  if (a.collective.any) op.collective = add_collective(event);
  if (a.graph_node >= 0 && fold_ == nullptr) {
    scratch_ = a.graph >= 0 ? fmt::format("graph {}, node {}", a.graph, a.graph_node)
                            : fmt::format("graph node {}", a.graph_node);
    op.graph_node = interner_.text({scratch_, false});
  }
  if (event.event_class == EventClass::memcpy)
    op.kind = GpuOp::Kind::memcpy;
  else if (event.event_class == EventClass::memset)
    op.kind = GpuOp::Kind::memset;
  keep(gpu_ops_, op);

  const Row row{event.pid.number, row_number(event.tid)};
  if (gpu_rows_.empty() || row != last_gpu_row_) {
    gpu_rows_.emplace(row, true);
    last_gpu_row_ = row;
  }
}

void RankBuilder::add_sync(const KinetoEvent& event) {
  const EventArgs& a = event.args;
  StreamSync sync{.start = Nanoseconds{event.start_ns},
                  .duration = Nanoseconds{event.duration_ns},
                  .correlation = a.correlation,
                  .stream = a.stream != kAbsent ? a.stream : -1,
                  .wait_on_stream = a.wait_on_stream,
                  .wait_on_event_record_correlation = a.wait_on_event_record,
                  .kind = sync_kind(a.sync_kind.raw.empty() ? event.name.raw : a.sync_kind.raw)};
  keep(stream_syncs_, sync);
}

void RankBuilder::add_thread_name(const KinetoEvent& event) {
  count_skip("metadata"sv);
  constexpr std::size_t kMostNames = 65536;
  if (thread_names_.size() >= kMostNames) return;
  std::string name;
  if (!event.args.name.escaped || !unescape(event.args.name.raw, name)) name = event.args.name.raw;
  thread_names_[{event.pid.number, event.tid.number}] = std::move(name);
}

// Adds the description of a collective and returns its index; -1 if there are too many.
std::int32_t RankBuilder::add_collective(const KinetoEvent& event) {
  if (fold_ != nullptr) return 0;  // the fold only counts them
  const CollectiveArgs& a = event.args.collective;
  CollectiveInfo info;
  if (!a.name.raw.empty()) {
    info.name = interner_.text(a.name);
    info.op = parse_collective_op(rank_.names.text(info.name));
  }
  if (info.op == CollectiveOp::unknown) info.op = parse_collective_op(event.name.raw);
  info.dtype = parse_dtype(a.dtype.raw);
  info.in_elements = a.in_elements;
  info.out_elements = a.out_elements;
  info.group_size = narrow(a.group_size, -1);
  if (!a.group_name.raw.empty())
    info.process_group = interner_.text(a.group_name);
  else if (!a.group_id.empty())
    info.process_group = interner_.text({a.group_id, false});
  info.sequence = a.sequence;
  info.comms_id = a.comms_id;
  // A list that was shortened with "..." does not name all ranks.
  if (!parse_integer_list<std::int32_t>(a.ranks, info.group_ranks)) info.group_ranks.clear();
  if (!parse_integer_list<std::int64_t>(a.in_split, info.in_split)) info.in_split.clear();
  if (!parse_integer_list<std::int64_t>(a.out_split, info.out_split)) info.out_split.clear();
  if (rank_.collective_infos.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    return -1;
  rank_.collective_infos.push_back(std::move(info));
  return static_cast<std::int32_t>(rank_.collective_infos.size() - 1);
}

// True if the row has GPU work but neither operators nor calls.
bool RankBuilder::is_gpu_row(std::size_t thread) const {
  return !has_ops_or_calls_[thread] &&
         gpu_rows_.contains({rank_.threads[thread].pid, rank_.threads[thread].tid});
}

// Profilers show annotations and steps a second time on the row of the stream that runs their kernels. Most
// files mark those with a separate category; the others are removed here.
void RankBuilder::drop_annotations_on_gpu_rows() {
  std::size_t removed = 0;
  std::vector<bool> on_gpu(rank_.threads.size());
  for (std::size_t t = 0; t < on_gpu.size(); ++t) {
    on_gpu[t] = is_gpu_row(t);
    if (fold_ != nullptr && on_gpu[t]) removed += fold_->rows_of(ThreadId{t});
  }
  if (std::ranges::find(on_gpu, true) == on_gpu.end()) return;
  removed += std::erase_if(rank_.cpu_ops, [&](const CpuOp& op) { return on_gpu[op.thread.index()]; });
  if (removed > 0) rank_.skipped["gpu annotation"] += removed;
}

// Orders threads by (pid, tid), drops those without events, and sets their names. Returns [old thread] -> new
// thread.
std::vector<ThreadId> RankBuilder::order_threads() {
  std::vector<std::uint32_t> order;
  for (std::uint32_t t = 0; t < rank_.threads.size(); ++t)
    if (!is_gpu_row(t)) order.push_back(t);
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    const RecordedThread& x = rank_.threads[a];
    const RecordedThread& y = rank_.threads[b];
    return std::tie(x.pid, x.tid, a) < std::tie(y.pid, y.tid, b);
  });
  std::vector<ThreadId> renamed(rank_.threads.size());
  std::vector<RecordedThread> threads;
  for (const std::uint32_t old : order) {
    renamed[old] = ThreadId{threads.size()};
    RecordedThread thread = std::move(rank_.threads[old]);
    if (const auto it = thread_names_.find({thread.pid, thread.tid}); it != thread_names_.end())
      thread.name = it->second;
    threads.push_back(std::move(thread));
  }
  rank_.threads = std::move(threads);
  for (CpuOp& op : rank_.cpu_ops) op.thread = renamed[op.thread.index()];
  for (RuntimeCall& call : rank_.runtime_calls) call.thread = renamed[call.thread.index()];
  return renamed;
}

// Numbers the collectives in the order of the events that refer to them, operators first.
void RankBuilder::order_collectives() {
  std::vector<CollectiveInfo> ordered;
  ordered.reserve(rank_.collective_infos.size());
  const auto renumber = [&](std::int32_t& index) {
    if (index < 0) return;
    ordered.push_back(std::move(rank_.collective_infos[static_cast<std::size_t>(index)]));
    index = static_cast<std::int32_t>(ordered.size() - 1);
  };
  for (CpuOp& op : rank_.cpu_ops) renumber(op.collective);
  for (GpuOp& op : rank_.gpu_ops) renumber(op.collective);
  rank_.collective_infos = std::move(ordered);
}

// Drops events with a start of 0 among times since 1970: their time was never set.
void RankBuilder::drop_times_of_zero() {
  constexpr std::int64_t kLongestTraceNs = 3'600'000'000'000;
  if (first_start_ns_ != 0 || last_start_ns_ < kLongestTraceNs || fold_ != nullptr) return;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  const auto each = [&](const auto& visit) {
    visit(rank_.cpu_ops);
    visit(rank_.runtime_calls);
    visit(rank_.gpu_ops);
    visit(rank_.stream_syncs);
  };
  each([&](const auto& events) {
    for (const auto& event : events)
      if (event.start != Nanoseconds{}) first_ns = std::min(first_ns, event.start.count());
  });
  if (first_ns < kLongestTraceNs) return;  // times in the file are relative to its start
  std::size_t dropped = 0;
  each([&](auto& events) {
    dropped += std::erase_if(events, [](const auto& event) { return event.start == Nanoseconds{}; });
  });
  rank_.skipped[std::string{kBadTime}] += dropped;
  first_start_ns_ = first_ns;
}

// Order matters: times are moved to the base time and sorted before rows are dropped, times repaired, and
// threads and collectives numbered.
Result<RecordedRank> RankBuilder::finish(std::int64_t base_time_ns) {
  rank_.cpu_ops = cpu_ops_.take();
  rank_.runtime_calls = runtime_calls_.take();
  rank_.gpu_ops = gpu_ops_.take();
  rank_.stream_syncs = stream_syncs_.take();
  rank_.allocator_states = allocator_states_.take();

  if (base_time_ns == 0) drop_times_of_zero();  // otherwise 0 is the start of the file
  const auto is_time = [](std::int64_t ns) { return ns >= -kLatestNs && ns <= kLatestNs; };
  const bool in_range = is_time(base_time_ns) &&
                        (base_time_ns == 0 || first_start_ns_ > last_start_ns_ ||
                         (is_time(first_start_ns_ + base_time_ns) && is_time(last_start_ns_ + base_time_ns)));
  if (!in_range) {
    return Error::at(rank_.file, "baseTimeNanoseconds")
        .found(std::to_string(base_time_ns) + " and events up to that many nanoseconds later")
        .expected("times within 126 years of 1970");
  }
  const auto move_times = [&](auto& events) {
    for (auto& event : events) event.start += Nanoseconds{base_time_ns};
  };
  const auto finish_times = [&](auto& events) {
    move_times(events);
    sort_by_time(events);
  };
  finish_times(rank_.cpu_ops);
  finish_times(rank_.runtime_calls);
  finish_times(rank_.gpu_ops);
  finish_times(rank_.stream_syncs);
  move_times(rank_.allocator_states);
  std::ranges::stable_sort(rank_.allocator_states, {}, &AllocatorState::start);
  drop_annotations_on_gpu_rows();
  if (fold_ == nullptr) repair_times(rank_);
  const std::vector<ThreadId> renamed = order_threads();
  order_collectives();
  if (fold_ != nullptr) fold_->finish(renamed, rank_.threads.size(), Nanoseconds{base_time_ns});
  return std::move(rank_);
}

}  // namespace stepcast::detail
