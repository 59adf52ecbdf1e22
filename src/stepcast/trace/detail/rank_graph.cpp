#include "stepcast/trace/detail/rank_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "stepcast/trace/trace_summary.h"

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

// Enclosing op of every op and of every call, per thread. Ops are sorted by (start, -duration); on one thread
// they nest but for rounding and a few odd annotations, for which the op that began last and has not ended
// counts as the enclosing one.
struct Nesting {
  std::vector<std::int32_t> parent_of_op;
  std::vector<std::int32_t> op_of_call;
};

Nesting nest(const RecordedRank& r) {
  Nesting n;
  n.parent_of_op.assign(r.cpu_ops.size(), kNone);
  n.op_of_call.assign(r.runtime_calls.size(), kNone);
  std::vector<std::vector<std::int32_t>> open(r.threads.size());
  const auto close_until = [&](std::vector<std::int32_t>& stack, Nanoseconds start, Nanoseconds end) {
    // An op that ended before `start` is closed; of two ops meeting in one instant the second is a sibling.
    std::erase_if(stack, [&](std::int32_t i) {
      const CpuOp& op = r.cpu_ops[static_cast<std::size_t>(i)];
      return op.end() < start || (op.end() == start && end > start);
    });
  };
  std::size_t c = 0;
  const auto nest_call = [&](std::size_t index) {
    const RuntimeCall& call = r.runtime_calls[index];
    if (!call.thread.valid()) return;
    auto& stack = open[call.thread.index()];
    close_until(stack, call.start, call.end());
    if (!stack.empty()) n.op_of_call[index] = stack.back();
  };
  for (std::size_t i = 0; i < r.cpu_ops.size(); ++i) {
    const CpuOp& op = r.cpu_ops[i];
    while (c < r.runtime_calls.size() && r.runtime_calls[c].start < op.start) nest_call(c++);
    if (!op.thread.valid()) continue;
    auto& stack = open[op.thread.index()];
    close_until(stack, op.start, op.end());
    if (!stack.empty()) n.parent_of_op[i] = stack.back();
    stack.push_back(static_cast<std::int32_t>(i));
  }
  while (c < r.runtime_calls.size()) nest_call(c++);
  return n;
}

struct OpContext {
  std::int32_t comm_op = kNone;
  bool in_library_annotation = false;
};

OpContext context_of(const RecordedRank& r, const std::vector<std::int32_t>& parent_of_op, std::int32_t op,
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

std::vector<RecordedStep> find_steps(const RecordedRank& r) {
  std::vector<RecordedStep> steps;
  for (const CpuOp& op : r.cpu_ops) {
    if (op.kind != CpuOp::Kind::step || op.duration <= Nanoseconds{0} || !op.thread.valid()) continue;
    const auto number = profiler_step_number(r.names.text(op.name));
    if (!number) continue;
    steps.push_back({*number, op.start, op.end(), static_cast<std::int32_t>(op.thread.index())});
  }
  return steps;
}

bool launches_gpu_work(const RecordedRank& r, const RecordedStep& step) {
  std::unordered_set<std::int64_t> called;
  for (const RuntimeCall& call : r.runtime_calls) {
    if (call.start >= step.start && call.start < step.end && call.correlation >= 0)
      called.insert(call.correlation);
  }
  return std::any_of(r.gpu_ops.begin(), r.gpu_ops.end(),
                     [&](const GpuOp& op) { return called.contains(op.correlation); });
}

RecordedStep whole_file(const RecordedRank& r) {
  RecordedStep step;
  step.start = Nanoseconds::max();
  step.end = Nanoseconds::min();
  std::vector<std::size_t> ops_on(r.threads.size(), 0);
  const auto cover = [&step](Nanoseconds start, Nanoseconds end) {
    step.start = std::min(step.start, start);
    step.end = std::max(step.end, end);
  };
  for (const CpuOp& op : r.cpu_ops) {
    cover(op.start, op.end());
    if (op.thread.valid()) ++ops_on[op.thread.index()];
  }
  // Threads that only poll have no part in the step: the calls of those that launch or hold ops count.
  std::unordered_set<std::int64_t> started_work;
  for (const GpuOp& g : r.gpu_ops) started_work.insert(g.correlation);
  std::vector<bool> works(r.threads.size(), false);
  for (std::size_t t = 0; t < works.size(); ++t) works[t] = ops_on[t] > 0;
  for (const RuntimeCall& call : r.runtime_calls) {
    if (call.thread.valid() && call.correlation >= 0 && started_work.contains(call.correlation))
      works[call.thread.index()] = true;
  }
  const bool nobody_works = std::find(works.begin(), works.end(), true) == works.end();
  for (const RuntimeCall& call : r.runtime_calls) {
    if (!nobody_works && !(call.thread.valid() && works[call.thread.index()])) continue;
    cover(call.start, call.end());
    if (call.thread.valid() && r.cpu_ops.empty()) ++ops_on[call.thread.index()];
  }
  if (r.cpu_ops.empty() && r.runtime_calls.empty()) {
    for (const GpuOp& g : r.gpu_ops) cover(g.start, g.end());
  }
  if (!ops_on.empty())
    step.main_thread =
        static_cast<std::int32_t>(std::max_element(ops_on.begin(), ops_on.end()) - ops_on.begin());
  return step;
}

namespace {

// Operators of calls and GPU work that lie inside none on their thread, from "External id" where that names the
// operator: calls of helper threads, launches that are not in the file.
void link_operators(RankGraph& g) {
  const RecordedRank& r = *g.recorded;
  const auto external_id_of = [&](const GpuWork& w) { return r.gpu_ops[w.recorded].external_id; };
  for (GpuWork& w : g.gpu) {
    if (w.call != kNone) w.op = g.calls[static_cast<std::size_t>(w.call)].op;
  }
  const bool all_known = std::all_of(
      g.gpu.begin(), g.gpu.end(), [&](const GpuWork& w) { return w.op != kNone || external_id_of(w) == -1; });
  if (all_known || external_id_meaning(r) != ExternalIdMeaning::op) return;
  std::unordered_map<std::int64_t, std::int32_t> op_of_id;
  for (std::size_t i = 0; i < r.cpu_ops.size(); ++i) {
    if (r.cpu_ops[i].external_id != -1)
      op_of_id.emplace(r.cpu_ops[i].external_id, static_cast<std::int32_t>(i));
  }
  std::unordered_map<std::uint32_t, std::uint8_t> name_role;
  for (GpuWork& w : g.gpu) {
    if (w.op != kNone) continue;
    const auto op = op_of_id.find(external_id_of(w));
    if (op == op_of_id.end()) continue;
    w.op = op->second;
    if (w.call == kNone) continue;
    Call& call = g.calls[static_cast<std::size_t>(w.call)];
    const OpContext context = context_of(r, g.parent_of_op, w.op, name_role);
    call.op = w.op;
    call.comm_op = context.comm_op;
    call.in_library_annotation = context.in_library_annotation;
  }
}

// Older profilers write whole microseconds.
double gpu_clock_step_us(const RecordedRank& r) {
  const bool whole = std::all_of(r.gpu_ops.begin(), r.gpu_ops.end(), [](const GpuOp& op) {
    return op.start.count() % 1000 == 0 && op.duration.count() % 1000 == 0;
  });
  return whole ? kClockToleranceUs : 1e-3;
}

}  // namespace

RankGraph link_rank(const RecordedRank& r, const RecordedStep& step, Nanoseconds origin) {
  RankGraph g;
  g.recorded = &r;
  g.origin = origin;
  g.rank = r.rank.value_or(0);
  g.window = {step.number, g.us(step.start), g.us(step.end), step.main_thread};

  Nesting nesting = nest(r);
  g.parent_of_op = std::move(nesting.parent_of_op);
  g.calls_of_thread.resize(r.threads.size());

  g.begins_with_file = true;
  g.clock_step_us = gpu_clock_step_us(r);

  // Calls of the window. A call that spans the window's begin belongs to the time before.
  std::unordered_map<std::int64_t, std::int32_t> call_of_correlation;
  std::unordered_map<std::int64_t, bool> launched_elsewhere;  // correlation -> launched after the window
  std::unordered_map<std::uint32_t, std::uint8_t> name_role;
  for (std::size_t i = 0; i < r.runtime_calls.size(); ++i) {
    const RuntimeCall& call = r.runtime_calls[i];
    if (!call.thread.valid()) continue;
    if (call.start < step.start || call.start >= step.end) {
      if (call.correlation >= 0) launched_elsewhere[call.correlation] = call.start >= step.end;
      continue;
    }
    Call c;
    c.recorded = static_cast<std::uint32_t>(i);
    c.thread = call.thread.index();
    c.kind = kind_of_call(r.names.text(call.name));
    c.start_us = g.us(call.start);
    c.end_us = g.us(call.end());
    c.op = nesting.op_of_call[i];
    const OpContext context = context_of(r, g.parent_of_op, c.op, name_role);
    c.comm_op = context.comm_op;
    c.in_library_annotation = context.in_library_annotation;
    const auto index = static_cast<std::int32_t>(g.calls.size());
    // A correlation may be shared by two calls (hipArray3DCreate + hipMemsetAsync): the later one is the
    // launch.
    if (call.correlation >= 0) call_of_correlation[call.correlation] = index;
    g.calls_of_thread[c.thread].push_back(index);
    g.calls.push_back(std::move(c));
  }

  // GPU work launched in the window, and what is left over from before. Work launched after it does not
  // belong here.
  std::vector<std::size_t> left_over;
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
    w.communication = op.kind == GpuOp::Kind::kernel && (op.collective >= 0 || is_communication_kernel(name));
    w.kernel_class = w.communication                  ? KernelClass::communication
                     : op.kind == GpuOp::Kind::kernel ? classify_kernel(name)
                                                      : KernelClass::memory;
    last_end_us = std::max(last_end_us, w.end_us);
    g.gpu.push_back(w);
  };
  for (std::size_t i = 0; i < r.gpu_ops.size(); ++i) {
    const GpuOp& op = r.gpu_ops[i];
    const auto it = call_of_correlation.find(op.correlation);
    if (op.correlation >= 0 && it != call_of_correlation.end()) {
      // Integer clocks may show GPU work a little before its launch, never much: else the correlation was
      // reused.
      if (g.us(op.start) + kClockToleranceUs >= g.calls[static_cast<std::size_t>(it->second)].start_us) {
        add(i, it->second);
        continue;
      }
    }
    left_over.push_back(i);
  }
  for (const std::size_t i : left_over) {
    const GpuOp& op = r.gpu_ops[i];
    const auto elsewhere = launched_elsewhere.find(op.correlation);
    const bool launched_before = elsewhere != launched_elsewhere.end() && !elsewhere->second;
    if (op.end() <= step.start || launched_before) g.begins_with_file = false;
    if (op.end() <= step.start || g.us(op.start) >= last_end_us) continue;
    if (elsewhere != launched_elsewhere.end() && elsewhere->second) continue;  // launched after the window
    if (elsewhere == launched_elsewhere.end() && op.start >= step.end)
      continue;  // no launch in the file, runs after it
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
  link_operators(g);
  return g;
}

bool runs_beside(const RankGraph& g, const GpuWork& running, const GpuWork& next) {
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
