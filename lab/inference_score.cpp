#include "lab/inference_score.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "lab/simulated_trace.h"

namespace stepcast {
namespace {

// GPU ops as positions on their streams.
class StreamOrder {
 public:
  explicit StreamOrder(const RecordedRank& recorded) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> number;
    for (std::uint32_t i = 0; i < recorded.gpu_ops.size(); ++i) {
      const GpuOp& op = recorded.gpu_ops[i];
      const auto [it, fresh] =
          number.try_emplace({op.device, op.stream}, static_cast<std::uint32_t>(ops_.size()));
      if (fresh) ops_.emplace_back();
      stream_.push_back(it->second);
      position_.push_back(static_cast<std::int64_t>(ops_[it->second].size()));
      ops_[it->second].push_back(i);
    }
  }

  // Whether the order of streams and `edges` without the one numbered `without` put edge.source before
  // edge.destination.
  [[nodiscard]] bool implied(EventEdge edge, std::span<const EventEdge> edges, std::size_t without) const {
    std::vector<std::int64_t> before(ops_.size(),
                                     -1);  // [stream] ops up to this position come before the destination
    std::vector<std::pair<std::uint32_t, std::int64_t>> open;
    const auto reach = [&](std::uint32_t op) { open.emplace_back(stream_[op], position_[op]); };
    const auto reach_sources = [&](std::uint32_t op) {
      const auto [first, last] = incoming_.equal_range(op);
      for (auto it = first; it != last; ++it)
        if (it->second != without) reach(edges[it->second].source);
    };
    reach_sources(edge.destination);
    if (position_[edge.destination] > 0)
      open.emplace_back(stream_[edge.destination], position_[edge.destination] - 1);
    while (!open.empty()) {
      const auto [stream, position] = open.back();
      open.pop_back();
      for (std::int64_t p = before[stream] + 1; p <= position; ++p)
        reach_sources(ops_[stream][static_cast<std::size_t>(p)]);
      before[stream] = std::max(before[stream], position);
    }
    return before[stream_[edge.source]] >= position_[edge.source];
  }

  void index(std::span<const EventEdge> edges) {
    incoming_.clear();
    for (std::size_t e = 0; e < edges.size(); ++e) incoming_.emplace(edges[e].destination, e);
  }

  // Without the edges that the others imply.
  [[nodiscard]] std::vector<EventEdge> effective(std::span<const EventEdge> edges) {
    std::vector<EventEdge> kept(edges.begin(), edges.end());
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (std::size_t e = 0; e < kept.size();) {
      index(kept);
      if (implied(kept[e], kept, e))
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(e));
      else
        ++e;
    }
    return kept;
  }

 private:
  std::vector<std::uint32_t> stream_;                             // [op]
  std::vector<std::int64_t> position_;                            // [op] on its stream
  std::vector<std::vector<std::uint32_t>> ops_;                   // [stream]
  std::unordered_multimap<std::uint32_t, std::size_t> incoming_;  // destination -> edge
};

}  // namespace

double InferenceScore::recall() const {
  return true_edges == 0 ? 1 : static_cast<double>(found) / static_cast<double>(true_edges);
}
double InferenceScore::precision() const {
  return inferred_edges == 0 ? 1 : static_cast<double>(right) / static_cast<double>(inferred_edges);
}
InferenceScore& InferenceScore::operator+=(const InferenceScore& other) {
  true_edges += other.true_edges;
  found += other.found;
  inferred_edges += other.inferred_edges;
  right += other.right;
  return *this;
}

InferenceScore score_event_edges(const RecordedRank& recorded, std::span<const EventEdge> truth,
                                 std::span<const EventEdge> inferred) {
  constexpr auto kAll = static_cast<std::size_t>(-1);
  StreamOrder order{recorded};
  const std::vector<EventEdge> true_edges = order.effective(truth),
                               inferred_edges = order.effective(inferred);
  InferenceScore score{.true_edges = true_edges.size(), .inferred_edges = inferred_edges.size()};
  order.index(inferred_edges);
  for (const EventEdge& e : true_edges)
    if (order.implied(e, inferred_edges, kAll))
      ++score.found;
    else
      score.missed.push_back(e);
  order.index(true_edges);
  for (const EventEdge& e : inferred_edges)
    if (order.implied(e, true_edges, kAll))
      ++score.right;
    else
      score.wrong.push_back(e);
  return score;
}

std::vector<EventEdge> event_edges(const RecordedProgram& program, std::size_t rank) {
  const Block& block = program.program.block_of(RankClassId{rank}, InstanceId{0});
  std::vector<EventEdge> edges;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (!is_gpu_work(block.tasks()[t].kind)) continue;
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
      const EdgeOrigin origin = block.edge_infos()[e].origin;
      if (origin != EdgeOrigin::event && origin != EdgeOrigin::tensor) continue;
      const std::uint32_t source = block.sources()[e] / 2;
      if (source >= block.task_count() || !is_gpu_work(block.tasks()[source].kind)) continue;
      edges.push_back({block.tasks()[source].recorded_event, block.tasks()[t].recorded_event});
    }
  }
  return edges;
}

std::vector<EventEdge> recorded_event_edges(const RecordedRank& recorded) {
  std::unordered_map<std::int64_t, std::size_t> call_of_correlation;
  for (std::size_t i = 0; i < recorded.runtime_calls.size(); ++i)
    if (recorded.runtime_calls[i].correlation >= 0)
      call_of_correlation[recorded.runtime_calls[i].correlation] = i;
  // Works of a stream in the order of their launches.
  std::map<std::int64_t, std::vector<std::pair<std::size_t, std::uint32_t>>> launched;  // [stream] (call, op)
  for (std::uint32_t i = 0; i < recorded.gpu_ops.size(); ++i) {
    const auto it = call_of_correlation.find(recorded.gpu_ops[i].correlation);
    if (it != call_of_correlation.end()) launched[recorded.gpu_ops[i].stream].emplace_back(it->second, i);
  }
  for (auto& [stream, list] : launched) std::ranges::sort(list);

  std::vector<EventEdge> edges;
  for (const StreamSync& sync : recorded.stream_syncs) {
    if (sync.kind != StreamSync::Kind::stream_wait_event || sync.stream == sync.wait_on_stream) continue;
    const auto wait = call_of_correlation.find(sync.correlation);
    const auto from = launched.find(sync.wait_on_stream), to = launched.find(sync.stream);
    if (wait == call_of_correlation.end() || from == launched.end() || to == launched.end()) continue;
    const auto record = call_of_correlation.find(sync.wait_on_event_record_correlation);
    const std::size_t recorded_at = record == call_of_correlation.end() ? wait->second : record->second;
    const auto source = std::partition_point(from->second.begin(), from->second.end(),
                                             [&](const auto& w) { return w.first < recorded_at; });
    const auto destination = std::partition_point(to->second.begin(), to->second.end(),
                                                  [&](const auto& w) { return w.first < wait->second; });
    if (source == from->second.begin() || destination == to->second.end()) continue;
    edges.push_back({std::prev(source)->second, destination->second});
  }
  return edges;
}

RecordedRank without_sync_records(RecordedRank recorded) {
  recorded.stream_syncs.clear();
  return recorded;
}

}  // namespace stepcast
