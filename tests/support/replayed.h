// Recorded ranks rebuilt and simulated, for tests that look at single tasks.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast::test {

struct Replayed {
  RecordedProgram recorded;
  Timeline timeline;

  [[nodiscard]] const Block& block(std::size_t rank) const {
    return recorded.program.block_of(RankClassId{rank}, InstanceId{0});
  }
  // The n-th task of this name on a rank.
  [[nodiscard]] std::optional<TaskId> find(std::size_t rank, std::string_view name, int n = 0,
                                           std::optional<TaskKind> kind = {}) const {
    const Block& b = block(rank);
    for (std::uint32_t t = 0; t < b.task_count(); ++t) {
      if (recorded.program.names.text(b.tasks()[t].name) != name) continue;
      if (kind && b.tasks()[t].kind != *kind) continue;
      if (n-- == 0) return TaskId{t};
    }
    return std::nullopt;
  }
  [[nodiscard]] Interval at(std::size_t rank, std::string_view name, int n = 0,
                            std::optional<TaskKind> kind = {}) const {
    const auto task = find(rank, name, n, kind);
    EXPECT_TRUE(task) << name;
    return task ? timeline.instance(RankClassId{rank}, 0, InstanceId{0})[task->index()] : Interval{};
  }
};

inline Replayed replay(const std::vector<RecordedRank>& ranks, const RebuildOptions& options = {},
                       const std::function<void(const Program&, Costs&, std::vector<double>&)>& change = {}) {
  std::vector<RecordedInput> input;
  for (const RecordedRank& r : ranks) input.push_back({&r, nullptr});
  auto recorded = rebuild_program(input, options);
  EXPECT_TRUE(recorded.ok()) << (recorded.ok() ? "" : recorded.error().message());
  Replayed out{std::move(*recorded), {}};
  const auto plan = Plan::compile(out.recorded.program);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message());
  Costs costs{out.recorded.program};
  SimulateOptions simulate;
  simulate.start_offset_us = out.recorded.start_offset_us;
  if (change) change(out.recorded.program, costs, simulate.start_offset_us);
  auto timeline = plan->simulate(costs, simulate);
  EXPECT_TRUE(timeline.ok());
  out.timeline = std::move(*timeline);
  return out;
}

inline void scale_kernels(const Program& program, Costs& costs, double factor) {
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const auto durations = costs.duration_us(BlockId{b});
    for (std::size_t t = 0; t < durations.size(); ++t) {
      if (program.blocks()[b].tasks()[t].kind == TaskKind::kernel) durations[t] *= factor;
    }
  }
}

// When the first thread of this rank is through, with kernels that take `factor` times as long as recorded.
inline double step_with_kernels(const RecordedRank& rank, double factor) {
  const Replayed r =
      replay({rank}, {}, [&](const Program& p, Costs& c, auto&) { scale_kernels(p, c, factor); });
  return r.timeline.lane_free_us(RankClassId{0})[0];
}

}  // namespace stepcast::test
