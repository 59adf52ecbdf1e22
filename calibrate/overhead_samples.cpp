#include "calibrate/overhead_samples.h"

#include "stepcast/base/statistics.h"
#include "stepcast/cost/host_overheads.h"

namespace stepcast {

void OverheadSamples::add(OverheadType type, std::string_view op, OverheadSample sample) {
  of[{type, std::string{overhead_name(op)}}].push_back(sample);
}

void OverheadSamples::add(const OverheadSamples& more) {
  for (const auto& [key, samples] : more.of) {
    std::vector<OverheadSample>& mine = of[key];
    mine.insert(mine.end(), samples.begin(), samples.end());
  }
  for (const auto& [op, sequences] : more.launches)
    for (const auto& [calls, n] : sequences) launches[op][calls] += n;
}

double OverheadSamples::sum_us() const {
  double sum = 0;
  for (const auto& [key, samples] : of)
    for (const OverheadSample& sample : samples) sum += sample.duration_us;
  return sum;
}

Fences outlier_fences(const std::vector<double>& times_us) {
  constexpr double kInterquartileRanges = 1.5;
  const double low = quantile(times_us, 0.25), high = quantile(times_us, 0.75);
  const double beyond = kInterquartileRanges * (high - low);
  return {low - beyond, high + beyond};
}

OverheadSamples recorded_overheads(const RecordedProgram& recorded, std::span<const RankClassId> ranks) {
  OverheadSamples samples;
  const StringTable& names = recorded.program.names;
  for (const RankClassId rank : ranks) {
    const RecordedHost& host = recorded.host[rank.index()];
    for (const HostPiece& piece : host.pieces) {
      samples.add(piece.type, piece.op.valid() ? names.text(piece.op) : kStepEnd,
                  {piece.duration_us, piece.profiler_events});
    }
    for (const HostOperator& op : host.operators) {
      std::vector<std::string> calls;
      for (std::uint32_t i = 0; i < op.n_launches; ++i)
        calls.emplace_back(names.text(host.launches[op.first_launch + i]));
      ++samples.launches[std::string{overhead_name(names.text(op.op))}][std::move(calls)];
    }
  }
  return samples;
}

OverheadSamples recorded_overheads(const RecordedProgram& recorded) {
  std::vector<RankClassId> ranks;
  for (std::size_t r = 0; r < recorded.host.size(); ++r) ranks.emplace_back(r);
  return recorded_overheads(recorded, ranks);
}

}  // namespace stepcast
