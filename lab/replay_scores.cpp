#include "lab/replay_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "stepcast/analyze/culprits.h"
#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/parallel.h"
#include "stepcast/predict/replay.h"
#include "stepcast/rebuild/pipeline_program.h"
#include "stepcast/sources/recorded_steps.h"

#include "lab/simulated_trace.h"

namespace stepcast {
namespace {

// Positions of GPU ops on their streams.
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

  // Whether the order of streams and `edges` (without the edge at index `without`) put edge.source before edge.destination.
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

  // The edges that the others do not imply.
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
  // Work of a stream in the order of launches.
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

namespace {

namespace fs = std::filesystem;

constexpr double kUsPerS = 1e6;

// Reads "result-ST.json.gz" from the folder of "timeline-ST.json.gz".
std::optional<JsonValue> published_results(const fs::path& timeline) {
  constexpr std::string_view kWord = "timeline";
  std::string name = timeline.filename().string();
  const std::size_t at = name.find(kWord);
  if (at == std::string::npos) return std::nullopt;
  const fs::path file = timeline.parent_path() / name.replace(at, kWord.size(), "result");
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  const Result<std::string> text = read_file(file, std::uint64_t{1} << 24);
  if (!text.ok()) return std::nullopt;
  Result<JsonValue> root = parse_json(*text, file.string());
  if (!root.ok()) return std::nullopt;
  return std::move(root).value();
}

Result<TimePair> replayed_step(const PipelineTimeline& timeline, std::int64_t step,
                               const LaunchDelays& delays) {
  STEPCAST_ASSIGN(const RecordedProgram recorded, pipeline_program(timeline, step, delays));
  STEPCAST_ASSIGN(const ReplayScores scores, score_replay(recorded, Costs{recorded.program}));
  return scores.global_window;
}

}  // namespace

Result<std::vector<PipelineStepScore>> score_pipeline(const fs::path& file) {
  STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline(file));
  const std::optional<JsonValue> results = published_results(file);
  const JsonValue* published = results ? results->find("step_t_nodelay") : nullptr;
  std::array<std::vector<std::int64_t>, 2> halves;
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) halves[i % 2].push_back(timeline.steps[i]);
  const std::array<LaunchDelays, 2> delays_for{learn_launch_delays(timeline, halves[1]),
                                               learn_launch_delays(timeline, halves[0])};
  std::vector<PipelineStepScore> scores;
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) {
    PipelineStepScore score{.step = timeline.steps[i]};
    STEPCAST_ASSIGN(score.delayed, replayed_step(timeline, score.step, delays_for[i % 2]));
    const JsonValue* time_s = published != nullptr ? published->find(std::to_string(score.step)) : nullptr;
    if (time_s != nullptr && time_s->is_number()) {
      STEPCAST_ASSIGN(const TimePair free, replayed_step(timeline, score.step, {}));
      score.without_delay = TimePair{time_s->number() * kUsPerS, free.simulated_us};
    }
    scores.push_back(score);
  }
  return scores;
}

namespace {

constexpr std::array<std::int64_t, 4> kMostApartUs = {10, 50, 200, 1000};

void move_by(RecordedRank& rank, std::int64_t us) {
  const Nanoseconds by{us * 1000};
  for (CpuOp& op : rank.cpu_ops) op.start = op.start + by;
  for (RuntimeCall& call : rank.runtime_calls) call.start = call.start + by;
  for (GpuOp& op : rank.gpu_ops) op.start = op.start + by;
  for (StreamSync& sync : rank.stream_syncs) sync.start = sync.start + by;
  for (AllocatorState& state : rank.allocator_states) state.start = state.start + by;
}

Result<StepCulprits> culprits_of(const TraceSet& set, std::span<const RecordedRank> ranks,
                                 const std::optional<std::int64_t>& step) {
  std::vector<RecordedInput> inputs = set.inputs();
  for (std::size_t r = 0; r < inputs.size(); ++r) inputs[r].kineto = &ranks[r];
  ReplayOptions how;
  how.rebuild.step = step;
  STEPCAST_ASSIGN(const Replay replayed, replay(inputs, how));
  return culprits_of(replayed);
}

struct Named {
  std::uint32_t collectives = 0;
  std::optional<RankClassId> worst;
  double share = 0;  // of the waiting time
};
Named named_by(const StepCulprits& culprits) {
  Named named{.collectives = culprits.collectives, .worst = {}};
  if (const RankCulprits* worst = culprits.worst()) {
    named.worst = worst->rank_class;
    named.share = worst->caused_wait_us / culprits.all_waiting_us();
  }
  return named;
}

void count(const Named& recorded, const Named& drawn, ClockDraws& all) {
  const auto off = [&](std::uint32_t n) { return std::abs(static_cast<double>(n) - recorded.collectives); };
  if (off(drawn.collectives) > off(all.most_other)) all.most_other = drawn.collectives;
  if (!drawn.worst) {
    ++all.said_not_known;
    return;
  }
  if (*drawn.worst != *recorded.worst) return;
  const double error = std::abs(drawn.share - recorded.share);
  all.largest_share_error = std::max(all.largest_share_error, error);
  if (error <= kShareWithin) ++all.named_right;
}

}  // namespace

Result<StepCulprits> culprits_of(const Replay& replayed) {
  STEPCAST_ASSIGN(const ReplayTimes times, replay_times(replayed));
  std::vector<Interval> steps;
  for (const ReplayedRank& rank : replayed.ranks) steps.push_back(rank.simulated_step);
  return find_culprits({.flat = times.flat,
                        .times = times.simulated,
                        .costs = times.costs,
                        .windows = steps,
                        .rank_start_us = replayed.recorded.start_offset_us,
                        .tie_us = replayed.recorded.clock_uncertainty_us});
}

Result<std::vector<ClockDraws>> draw_clock_offsets(const TraceSet& set, std::size_t draws, unsigned threads) {
  std::optional<std::int64_t> step;
  for (const std::int64_t one : common_steps(set)) step = one;
  STEPCAST_ASSIGN(const StepCulprits as_recorded, culprits_of(set, set.ranks, step));
  const Named recorded = named_by(as_recorded);
  std::vector<ClockDraws> all;
  if (!recorded.worst) return all;
  std::mt19937_64 random{31};
  for (const std::int64_t most_us : kMostApartUs) {
    std::vector<std::vector<RecordedRank>> moved(draws, set.ranks);
    for (std::vector<RecordedRank>& ranks : moved)
      for (RecordedRank& rank : ranks)
        move_by(rank, std::uniform_int_distribution<std::int64_t>{0, most_us}(random));
    std::vector<Named> named(draws);
    STEPCAST_TRY(parallel_for(draws, threads, [&](std::size_t i) -> Status {
      STEPCAST_ASSIGN(const StepCulprits culprits, culprits_of(set, moved[i], step));
      named[i] = named_by(culprits);
      return Ok{};
    }));
    ClockDraws& drawn = all.emplace_back(ClockDraws{.most_us = most_us,
                                                    .draws = draws,
                                                    .collectives = recorded.collectives,
                                                    .most_other = recorded.collectives});
    for (const Named& one : named) count(recorded, one, drawn);
  }
  return all;
}

}  // namespace stepcast
