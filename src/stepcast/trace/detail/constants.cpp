#include "stepcast/trace/detail/constants.h"

#include <algorithm>

namespace stepcast::detail {
namespace {

DelayEnd end_of(const GpuWork& w) {
  if (w.communication) return DelayEnd::collective;
  if (w.kind == GpuOp::Kind::memcpy) return DelayEnd::copy;
  if (w.kind == GpuOp::Kind::memset) return DelayEnd::fill;
  return DelayEnd::kernel;
}

DelayEnd end_of(MemcpyKind kind) {
  switch (kind) {
    case MemcpyKind::host_to_device: return DelayEnd::copy_to_device;
    case MemcpyKind::device_to_host: return DelayEnd::copy_to_host;
    case MemcpyKind::device_to_device: return DelayEnd::copy_on_device;
    default: return DelayEnd::copy;
  }
}

DelayEnd end_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::none:
    case WaitKind::held: break;
    case WaitKind::stream_sync: return DelayEnd::stream_sync;
    case WaitKind::device_sync: return DelayEnd::device_sync;
    case WaitKind::event_sync: return DelayEnd::event_sync;
    case WaitKind::blocking_copy: return DelayEnd::blocking_copy;
  }
  return DelayEnd::none;
}

const Call& call_of(const RankGraph& g, const GpuWork& w) {
  return g.calls[static_cast<std::size_t>(w.call)];
}

}  // namespace

DelayClass launch_class(DelayKind kind, const RankGraph& g, const GpuWork& w) {
  return {.kind = kind,
          .call = call_of(g, w).name,
          .to = w.kind == GpuOp::Kind::memcpy ? end_of(w.copy) : end_of(w),
          .pageable = w.pageable};
}

DelayClass gap_class(const GpuWork& previous, const GpuWork& next) {
  return {.kind = DelayKind::stream_gap, .from = end_of(previous), .to = end_of(next)};
}

DelayClass event_class(const GpuWork& from, const GpuWork& to) {
  return {.kind = DelayKind::event,
          .from = from.communication ? DelayEnd::collective : DelayEnd::computation,
          .to = to.communication ? DelayEnd::collective : DelayEnd::computation};
}

DelayClass return_class(WaitKind kind) { return {.kind = DelayKind::sync_return, .to = end_of(kind)}; }
DelayClass base_class(WaitKind kind) { return {.kind = DelayKind::wait_base, .to = end_of(kind)}; }

bool starts_inside_call(const RankGraph& g, const GpuWork& w) {
  const Call& c = call_of(g, w);
  return c.blocking_copy || w.start_us < c.end_us;
}

std::vector<std::vector<std::int32_t>> edges_into(const RankGraph& g) {
  std::vector<std::vector<std::int32_t>> into(g.gpu.size());
  for (std::size_t e = 0; e < g.gpu_edges.size(); ++e)
    into[static_cast<std::size_t>(g.gpu_edges[e].to)].push_back(static_cast<std::int32_t>(e));
  return into;
}

bool launched_clean(const RankGraph& g, std::size_t work,
                    const std::vector<std::vector<std::int32_t>>& sources) {
  const GpuWork& w = g.gpu[work];
  const Call& c = call_of(g, w);
  // A call that runs long before its work begins holds the work itself: what ended meanwhile did not.
  const bool held_by_call = !c.blocking_copy && w.start_us < c.end_us;
  const double over_by = held_by_call ? std::max(c.start_us, w.start_us - kLateUs) : c.start_us;
  if (w.previous != kNone && g.gpu[static_cast<std::size_t>(w.previous)].end_us > over_by) return false;
  return std::ranges::all_of(sources[work], [&](std::int32_t e) {
    const std::int32_t from = g.gpu_edges[static_cast<std::size_t>(e)].from;
    return g.gpu[static_cast<std::size_t>(from)].end_us <= over_by;
  });
}

}  // namespace stepcast::detail
