// Any bytes as a profiler trace: an error, or a rank that keeps its promises and survives being written and
// read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/trace_summary.h"

#include "lab/kineto_writer.h"

namespace {

using stepcast::CpuOp;
using stepcast::GpuOp;
using stepcast::NameId;
using stepcast::RecordedRank;
using stepcast::RuntimeCall;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Events>
void require_sorted(const Events& events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    require(events[i].duration.count() >= 0);
    require(events[i].end() >= events[i].start);
    if (i == 0) continue;
    require(events[i - 1].start < events[i].start ||
            (events[i - 1].start == events[i].start && events[i - 1].duration >= events[i].duration));
  }
}

void check(const RecordedRank& rank) {
  require_sorted(rank.cpu_ops);
  require_sorted(rank.runtime_calls);
  require_sorted(rank.gpu_ops);
  const auto valid_name = [&](NameId id) { return id.valid() && id.index() < rank.names.size(); };
  const auto valid_collective = [&](std::int32_t index) {
    return index >= -1 && index < static_cast<std::int64_t>(rank.collective_infos.size());
  };
  for (const CpuOp& op : rank.cpu_ops) {
    require(valid_name(op.name) && op.thread.index() < rank.threads.size() &&
            valid_collective(op.collective));
    require(!op.input_shapes.valid() || valid_name(op.input_shapes));
  }
  for (const RuntimeCall& call : rank.runtime_calls) {
    require(valid_name(call.name) && call.thread.index() < rank.threads.size());
  }
  for (const GpuOp& op : rank.gpu_ops) require(valid_name(op.name) && valid_collective(op.collective));

  std::uint64_t counted =
      rank.cpu_ops.size() + rank.runtime_calls.size() + rank.gpu_ops.size() + rank.stream_syncs.size();
  for (const auto& [reason, count] : rank.skipped) counted += count;
  require(counted == rank.event_count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content{reinterpret_cast<const char*>(data), size};
  const auto rank = stepcast::parse_kineto(content, "fuzz");
  if (!rank.ok()) {
    require(!rank.error().message().empty());
    return 0;
  }
  check(*rank);
  const stepcast::RankSummary summary = stepcast::summarize(*rank, stepcast::can_be_replayed);
  require(summary.gpu_events == rank->gpu_ops.size() && summary.runtime_calls == rank->runtime_calls.size());
  const auto back = stepcast::parse_kineto(stepcast::to_kineto_json(*rank), "written");
  require(back.ok());
  check(*back);
  require(back->runtime_calls.size() == rank->runtime_calls.size());
  require(back->gpu_ops.size() == rank->gpu_ops.size());
  require(back->stream_syncs.size() == rank->stream_syncs.size());
  return 0;
}
