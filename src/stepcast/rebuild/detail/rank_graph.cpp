// Links the events of one rank in the window of a step: operators, runtime calls and GPU work. Calls and GPU
// work are linked by correlation id; ids can be reused, so the times are checked, too.
#include "stepcast/rebuild/detail/rank_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "stepcast/rebuild/detail/item.h"

namespace stepcast::detail {
namespace {

// The kind by the end of the name, which covers CUDA and HIP. Launches are recognised later by their GPU
// work.
CallKind kind_of_call(std::string_view name) {
  const auto ends_with = [name](std::string_view suffix) { return name.ends_with(suffix); };
  if (ends_with("StreamWaitEvent")) return CallKind::stream_wait;
  if (ends_with("EventRecord") || ends_with("EventRecordWithFlags")) return CallKind::event_record;
  if (ends_with("StreamSynchronize")) return CallKind::stream_sync;
  if (ends_with("DeviceSynchronize") || ends_with("CtxSynchronize")) return CallKind::device_sync;
  if (ends_with("EventSynchronize")) return CallKind::event_sync;
  return CallKind::other;
}

// Copies to pageable host memory return only after the data has arrived (CUDA runtime API, "API
// synchronization behavior"). cudaMemcpy and hipMemcpyWithStream always wait.
bool waits_for_own_copy(std::string_view call_name, std::string_view gpu_name, MemcpyKind copy) {
  if (copy == MemcpyKind::device_to_host) {
    if (gpu_name.find("Pageable") != std::string_view::npos) return true;
    if (call_name.find("Async") == std::string_view::npos) return true;
  }
  return call_name == "cudaMemcpy" || call_name == "hipMemcpyWithStream" || call_name == "hipMemcpy";
}

// Sets the operator of calls and GPU work. If no operator is open on the thread, "External id" is used. This
// covers calls of helper threads and launches that are not in the file.
void link_operators(RankGraph& g) {
  const RecordedRank& r = *g.recorded;
  for (GpuWork& w : g.gpu)
    if (w.call != kNone) w.op = item(g.calls, w.call).op;
  for (GpuWork& w : g.gpu) {
    if (w.op != kNone) continue;
    w.op = g.index->op_with_external_id(r.gpu_ops[w.recorded].external_id);
    if (w.op == kNone || w.call == kNone) continue;
    Call& call = item(g.calls, w.call);
    const OpContext context = g.index->context_of(w.op);
    call.op = w.op;
    call.comm_op = context.comm_op;
    call.in_library_annotation = context.in_library_annotation;
  }
}

// Links calls, GPU work and streams of one rank in a window, in this order.
class RankLinker {
 public:
  RankLinker(std::shared_ptr<const TraceIndex> index, const RecordedStep& step, Nanoseconds origin)
      : index_(std::move(index)), r_(index_->recorded()), step_(step), in_window_(index_->calls_of(step)) {
    g_.recorded = &r_;
    g_.origin = origin;
    g_.rank = r_.rank.value_or(0);
    g_.window = {step.number, g_.us(step.start), g_.us(step.end), step.main_thread};
    g_.parent_of_op = index_->parent_of_op();
    g_.calls_of_thread.resize(r_.threads.size());
    g_.begins_with_file = !index_->shows_work_before(step.start);
    g_.clock_step_us = index_->clock_step_us();
    last_end_us_ = g_.window.end_us;
  }

  RankGraph link() {
    add_calls();
    add_work();
    const std::vector<std::int32_t> by_start = order_of_work();
    add_streams(by_start);
    for (const std::int32_t i : by_start) add_to_call(i);
    g_.index = std::move(index_);
    link_operators(g_);
    return std::move(g_);
  }

 private:
  // Adds the calls of the window. A call that spans the start of the window belongs to the time before.
  void add_calls() {
    g_.calls.reserve(in_window_.last - in_window_.first);
    for (std::size_t i = in_window_.first; i < in_window_.last; ++i) {
      const RuntimeCall& call = r_.runtime_calls[i];
      if (!call.thread.valid()) continue;
      Call c;
      c.recorded = static_cast<std::uint32_t>(i);
      c.thread = call.thread.index();
      c.kind = kind_of_call(r_.names.text(call.name));
      c.start_us = g_.us(call.start);
      c.end_us = g_.us(call.end());
      c.op = index_->op_of_call()[i];
      const OpContext context = index_->context_of(c.op);
      c.comm_op = context.comm_op;
      c.in_library_annotation = context.in_library_annotation;
      const std::int32_t number = next_position(g_.calls);
      // Two calls may share a correlation id (hipArray3DCreate and hipMemsetAsync); the later one is the
      // launch.
      if (call.correlation >= 0) call_of_correlation_[call.correlation] = number;
      g_.calls_of_thread[c.thread].push_back(number);
      g_.calls.push_back(std::move(c));
    }
  }

  // Adds the GPU work launched in the window, and work left over from before. Work launched after the window
  // is not added.
  void add_work() {
    const std::vector<Launched> launched = launched_work();
    for (const auto& [i, call] : launched) add(i, call);
    auto next = launched.begin();
    for (std::size_t i = index_->first_work_running_at(step_.start); i < r_.gpu_ops.size(); ++i) {
      const GpuOp& op = r_.gpu_ops[i];
      if (g_.us(op.start) >= last_end_us_) break;
      while (next != launched.end() && next->first < i) ++next;
      const bool is_launched = next != launched.end() && next->first == i;
      if (!is_launched && is_left_over(op)) add(i, kNone);
    }
    g_.gpu.shrink_to_fit();
  }

  using Launched = std::pair<std::size_t, std::int32_t>;  // GPU work and its call
  // GPU work launched by calls of the window, in the order of the file.
  [[nodiscard]] std::vector<Launched> launched_work() const {
    std::vector<Launched> launched;
    for (const auto& [correlation, call] : call_of_correlation_) {
      for (const auto& [same, i] : index_->work_of(correlation)) {
        // Clocks with integer microseconds can show GPU work slightly before its launch. A larger difference
        // means that the correlation id was reused.
        if (g_.us(item(r_.gpu_ops, i).start) + kClockToleranceUs >= item(g_.calls, call).start_us)
          launched.emplace_back(static_cast<std::size_t>(i), call);
      }
    }
    std::ranges::sort(launched);
    return launched;
  }

  // Whether work without a launch in the window still runs in it.
  [[nodiscard]] bool is_left_over(const GpuOp& op) const {
    if (op.end() <= step_.start) return false;
    const auto elsewhere = index_->call_outside(op.correlation, in_window_);
    if (elsewhere) return r_.runtime_calls[*elsewhere].start < step_.end;  // launched before the window
    return op.start < step_.end;  // no launch in the file: only if it starts before the end of the window
  }

  // Adds a piece of GPU work. `call` is its launching call, kNone if there is none in the window.
  void add(std::size_t i, std::int32_t call) {
    const GpuOp& op = r_.gpu_ops[i];
    GpuWork w{.recorded = static_cast<std::uint32_t>(i),
              .call = call,
              .start_us = g_.us(op.start),
              .end_us = g_.us(op.end()),
              .kind = op.kind};
    const std::string_view name = r_.names.text(op.name);
    w.left_over = call == kNone && index_->call_outside(op.correlation, in_window_).has_value();
    w.copy = op.kind == GpuOp::Kind::memcpy ? memcpy_kind(name) : MemcpyKind::none;
    w.pageable = op.kind == GpuOp::Kind::memcpy && name.find("Pageable") != std::string_view::npos;
    w.kernel_class = op.kind == GpuOp::Kind::kernel ? index_->kernel_class(op.name) : KernelClass::memory;
    w.communication = op.kind == GpuOp::Kind::kernel &&
                      (op.collective >= 0 || w.kernel_class == KernelClass::communication);
    if (w.communication) w.kernel_class = KernelClass::communication;
    last_end_us_ = std::max(last_end_us_, w.end_us);
    g_.gpu.push_back(w);
  }

  // By start; ties keep the order of the file.
  [[nodiscard]] std::vector<std::int32_t> order_of_work() const {
    std::vector<std::int32_t> order(g_.gpu.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      const GpuWork& x = item(g_.gpu, a);
      const GpuWork& y = item(g_.gpu, b);
      return x.start_us != y.start_us ? x.start_us < y.start_us : x.recorded < y.recorded;
    });
    return order;
  }

  // Assigns work to streams in order of start. Also decides whether work without a launch is left over: it
  // starts before the first call, or directly after such work.
  void add_streams(const std::vector<std::int32_t>& by_start) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> stream_index;
    double first_call_us = -std::numeric_limits<double>::infinity();
    if (!g_.calls.empty()) first_call_us = std::ranges::min_element(g_.calls, {}, &Call::start_us)->start_us;
    const bool shows_launches = std::ranges::any_of(g_.gpu, [](const GpuWork& w) { return w.call != kNone; });
    for (const std::int32_t i : by_start) {
      GpuWork& w = item(g_.gpu, i);
      const GpuOp& op = r_.gpu_ops[w.recorded];
      const auto [it, fresh] = stream_index.try_emplace({op.device, op.stream}, next_position(g_.streams));
      if (fresh) g_.streams.push_back({op.device, op.stream, {}});
      w.stream = it->second;
      auto& on_stream = item(g_.streams, w.stream).work;
      if (!on_stream.empty()) w.previous = on_stream.back();
      on_stream.push_back(i);
      const GpuWork* before = w.previous != kNone ? &item(g_.gpu, w.previous) : nullptr;
      if (w.call != kNone)
        w.queued_us = item(g_.calls, w.call).start_us;
      else if (before != nullptr)
        w.queued_us = before->queued_us;
      if (w.call != kNone || w.left_over) continue;
      w.left_over = !shows_launches
                        ? w.start_us < g_.window.start_us
                        : w.start_us <= first_call_us || (before != nullptr && before->left_over &&
                                                          w.start_us <= before->end_us + kLateUs);
    }
  }

  void add_to_call(std::int32_t i) {
    const GpuWork& w = item(g_.gpu, i);
    if (w.call == kNone) return;
    Call& call = item(g_.calls, w.call);
    call.kind = CallKind::launch;
    call.gpu.push_back(i);
    if (w.kind == GpuOp::Kind::memcpy &&
        waits_for_own_copy(r_.names.text(r_.runtime_calls[call.recorded].name),
                           r_.names.text(r_.gpu_ops[w.recorded].name), w.copy)) {
      call.blocking_copy = true;
    }
  }

  std::shared_ptr<const TraceIndex> index_;
  const RecordedRank& r_;
  const RecordedStep& step_;
  IndexRange in_window_;
  RankGraph g_;
  std::unordered_map<std::int64_t, std::int32_t> call_of_correlation_;
  double last_end_us_ = 0;
};

}  // namespace

RankGraph link_rank(std::shared_ptr<const TraceIndex> index, const RecordedStep& step, Nanoseconds origin) {
  return RankLinker{std::move(index), step, origin}.link();
}

RankGraph link_rank(const RecordedRank& recorded, const RecordedStep& step, Nanoseconds origin) {
  return link_rank(std::make_shared<const TraceIndex>(recorded), step, origin);
}

bool overlaps(const RankGraph& g, const GpuWork& running, const GpuWork& next) {
  return running.length_us() > 0 && running.end_us - next.start_us > g.clock_step_us;
}

bool is_later_node(const RankGraph& graph, std::size_t work) {
  const GpuWork& w = graph.gpu[work];
  return w.call != kNone && item(graph.calls, w.call).gpu.front() != static_cast<std::int32_t>(work);
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
