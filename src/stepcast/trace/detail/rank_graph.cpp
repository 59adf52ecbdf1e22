#include "stepcast/trace/detail/rank_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

CallKind kind_of_call(std::string_view name) {
  const auto ends_with = [name](std::string_view suffix) { return name.ends_with(suffix); };
  if (ends_with("StreamWaitEvent")) return CallKind::stream_wait;
  if (ends_with("EventRecord") || ends_with("EventRecordWithFlags")) return CallKind::event_record;
  if (ends_with("StreamSynchronize")) return CallKind::stream_sync;
  if (ends_with("DeviceSynchronize") || ends_with("CtxSynchronize")) return CallKind::device_sync;
  if (ends_with("EventSynchronize")) return CallKind::event_sync;
  return CallKind::other;
}

// Copies to pageable host memory return only when the data has arrived (CUDA runtime API, "API
// synchronization behavior"); cudaMemcpy and hipMemcpyWithStream always do.
bool waits_for_own_copy(std::string_view call_name, std::string_view gpu_name, MemcpyKind copy) {
  if (copy == MemcpyKind::device_to_host) {
    if (gpu_name.find("Pageable") != std::string_view::npos) return true;
    if (call_name.find("Async") == std::string_view::npos) return true;
  }
  return call_name == "cudaMemcpy" || call_name == "hipMemcpyWithStream" || call_name == "hipMemcpy";
}

struct OpContext {
  std::int32_t comm_op = kNone;
  bool in_library_annotation = false;
};

OpContext context_of(const RecordedRank& r, std::span<const std::int32_t> parent_of_op, std::int32_t op,
                     std::unordered_map<std::uint32_t, std::uint8_t>& name_role) {
  // 1: record_param_comms, 2: nccl:* annotation, 0: anything else
  const auto role = [&](NameId name) {
    const auto [it, fresh] = name_role.try_emplace(name.index(), std::uint8_t{0});
    if (fresh) {
      const std::string_view text = r.names.text(name);
      if (text == "record_param_comms")
        it->second = 1;
      else if (text.starts_with("nccl:") || text.starts_with("rccl:"))
        it->second = 2;
    }
    return it->second;
  };
  OpContext context;
  for (; op != kNone; op = parent_of_op[static_cast<std::size_t>(op)]) {
    const std::uint8_t what = role(r.cpu_ops[static_cast<std::size_t>(op)].name);
    if (what == 1 && context.comm_op == kNone) context.comm_op = op;
    if (what == 2) context.in_library_annotation = true;
  }
  return context;
}

}  // namespace

namespace {

// Operators of calls and GPU work that lie inside none on their thread, from "External id" where that names the
// operator: calls of helper threads, launches that are not in the file.
void link_operators(RankGraph& g) {
  const RecordedRank& r = *g.recorded;
  for (GpuWork& w : g.gpu) {
    if (w.call != kNone) w.op = g.calls[static_cast<std::size_t>(w.call)].op;
  }
  std::unordered_map<std::uint32_t, std::uint8_t> name_role;
  for (GpuWork& w : g.gpu) {
    if (w.op != kNone) continue;
    w.op = g.index->op_with_external_id(r.gpu_ops[w.recorded].external_id);
    if (w.op == kNone || w.call == kNone) continue;
    Call& call = g.calls[static_cast<std::size_t>(w.call)];
    const OpContext context = context_of(r, g.parent_of_op, w.op, name_role);
    call.op = w.op;
    call.comm_op = context.comm_op;
    call.in_library_annotation = context.in_library_annotation;
  }
}

}  // namespace

RankGraph link_rank(std::shared_ptr<const TraceIndex> index, const RecordedStep& step, Nanoseconds origin) {
  const RecordedRank& r = index->recorded();
  RankGraph g;
  g.recorded = &r;
  g.origin = origin;
  g.rank = r.rank.value_or(0);
  g.window = {step.number, g.us(step.start), g.us(step.end), step.main_thread};
  g.parent_of_op = index->parent_of_op();
  g.calls_of_thread.resize(r.threads.size());
  g.begins_with_file = !index->shows_work_before(step.start);
  g.clock_step_us = index->clock_step_us();

  // Calls of the window. A call that spans the window's begin belongs to the time before.
  std::unordered_map<std::int64_t, std::int32_t> call_of_correlation;
  std::unordered_map<std::uint32_t, std::uint8_t> name_role;
  const IndexRange in_window = index->calls_of(step);
  for (std::size_t i = in_window.first; i < in_window.last; ++i) {
    const RuntimeCall& call = r.runtime_calls[i];
    if (!call.thread.valid()) continue;
    Call c;
    c.recorded = static_cast<std::uint32_t>(i);
    c.thread = call.thread.index();
    c.kind = kind_of_call(r.names.text(call.name));
    c.start_us = g.us(call.start);
    c.end_us = g.us(call.end());
    c.op = index->op_of_call()[i];
    const OpContext context = context_of(r, g.parent_of_op, c.op, name_role);
    c.comm_op = context.comm_op;
    c.in_library_annotation = context.in_library_annotation;
    const auto number = static_cast<std::int32_t>(g.calls.size());
    // A correlation may be shared by two calls (hipArray3DCreate + hipMemsetAsync): the later one is the
    // launch.
    if (call.correlation >= 0) call_of_correlation[call.correlation] = number;
    g.calls_of_thread[c.thread].push_back(number);
    g.calls.push_back(std::move(c));
  }

  // GPU work launched in the window, and what is left over from before. Work launched after it does not
  // belong here.
  double last_end_us = g.window.end_us;
  const auto add = [&](std::size_t i, std::int32_t call) {
    const GpuOp& op = r.gpu_ops[i];
    GpuWork w;
    w.recorded = static_cast<std::uint32_t>(i);
    w.call = call;
    w.start_us = g.us(op.start);
    w.end_us = g.us(op.end());
    w.kind = op.kind;
    const std::string_view name = r.names.text(op.name);
    w.copy = op.kind == GpuOp::Kind::memcpy ? memcpy_kind(name) : MemcpyKind::none;
    w.pageable = op.kind == GpuOp::Kind::memcpy && name.find("Pageable") != std::string_view::npos;
    w.kernel_class = op.kind == GpuOp::Kind::kernel ? index->kernel_class(op.name) : KernelClass::memory;
    w.communication = op.kind == GpuOp::Kind::kernel &&
                      (op.collective >= 0 || w.kernel_class == KernelClass::communication);
    if (w.communication) w.kernel_class = KernelClass::communication;
    last_end_us = std::max(last_end_us, w.end_us);
    g.gpu.push_back(w);
  };
  std::vector<std::pair<std::size_t, std::int32_t>> launched;  // GPU work and its call
  for (const auto& [correlation, call] : call_of_correlation) {
    for (const auto& [same, i] : index->work_of(correlation)) {
      // Integer clocks may show GPU work a little before its launch, never much: else the correlation was
      // reused.
      const GpuOp& op = r.gpu_ops[static_cast<std::size_t>(i)];
      if (g.us(op.start) + kClockToleranceUs >= g.calls[static_cast<std::size_t>(call)].start_us)
        launched.emplace_back(static_cast<std::size_t>(i), call);
    }
  }
  std::sort(launched.begin(), launched.end());
  for (const auto& [i, call] : launched) add(i, call);
  auto next_launched = launched.begin();
  for (std::size_t i = index->first_work_running_at(step.start); i < r.gpu_ops.size(); ++i) {
    const GpuOp& op = r.gpu_ops[i];
    if (g.us(op.start) >= last_end_us) break;
    while (next_launched != launched.end() && next_launched->first < i) ++next_launched;
    if (next_launched != launched.end() && next_launched->first == i) continue;
    if (op.end() <= step.start) continue;
    const auto elsewhere = index->call_outside(op.correlation, in_window);
    if (elsewhere && r.runtime_calls[*elsewhere].start >= step.end) continue;  // launched after the window
    if (!elsewhere && op.start >= step.end) continue;  // no launch in the file, runs after it
    add(i, kNone);
  }

  // Streams by start; ties keep the order of the file.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> stream_index;
  std::vector<std::int32_t> order(g.gpu.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const GpuWork& x = g.gpu[static_cast<std::size_t>(a)];
    const GpuWork& y = g.gpu[static_cast<std::size_t>(b)];
    return x.start_us != y.start_us ? x.start_us < y.start_us : x.recorded < y.recorded;
  });
  for (const std::int32_t i : order) {
    GpuWork& w = g.gpu[static_cast<std::size_t>(i)];
    const GpuOp& op = r.gpu_ops[w.recorded];
    const auto [it, fresh] =
        stream_index.try_emplace({op.device, op.stream}, static_cast<std::int32_t>(g.streams.size()));
    if (fresh) g.streams.push_back({op.device, op.stream, {}});
    w.stream = it->second;
    auto& on_stream = g.streams[static_cast<std::size_t>(w.stream)].work;
    if (!on_stream.empty()) w.previous = on_stream.back();
    on_stream.push_back(i);
  }
  for (const std::int32_t i : order) {
    const GpuWork& w = g.gpu[static_cast<std::size_t>(i)];
    if (w.call == kNone) continue;
    Call& call = g.calls[static_cast<std::size_t>(w.call)];
    call.kind = CallKind::launch;
    call.gpu.push_back(i);
    if (w.kind == GpuOp::Kind::memcpy &&
        waits_for_own_copy(r.names.text(r.runtime_calls[call.recorded].name),
                           r.names.text(r.gpu_ops[w.recorded].name), w.copy)) {
      call.blocking_copy = true;
    }
  }
  g.index = std::move(index);
  link_operators(g);
  return g;
}

RankGraph link_rank(const RecordedRank& recorded, const RecordedStep& step, Nanoseconds origin) {
  return link_rank(std::make_shared<const TraceIndex>(recorded), step, origin);
}

bool overlaps(const RankGraph& g, const GpuWork& running, const GpuWork& next) {
  return running.length_us() > 0 && running.end_us - next.start_us > g.clock_step_us;
}

bool is_later_node(const RankGraph& g, std::size_t i) {
  const GpuWork& w = g.gpu[i];
  return w.call != kNone &&
         g.calls[static_cast<std::size_t>(w.call)].gpu.front() != static_cast<std::int32_t>(i);
}

void name_calls(RankGraph& g, StringTable& names) {
  std::unordered_map<std::uint32_t, NameId> known;  // by the name in the trace
  for (Call& call : g.calls) {
    const NameId recorded = g.recorded->runtime_calls[call.recorded].name;
    const auto [it, fresh] = known.try_emplace(recorded.index(), NameId{});
    if (fresh) it->second = names.intern(g.recorded->names.text(recorded));
    call.name = it->second;
  }
}

}  // namespace stepcast::detail
