#include "stepcast/predict/scenario_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/base/scan.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {
namespace {

// Scenarios that a thread simulates together: the number in one tile of the engine.
constexpr std::size_t kTile = 8;

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Suitable for consecutive numbers as seeds.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mixed(seed) ^ mixed(~stream)) {}
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15U); }
  double unit() { return static_cast<double>((next() >> 11U) + 1) * 0x1p-53; }  // (0, 1]
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  // Standard normal, by the Box-Muller transform.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }
  std::uint64_t state_;
};

// The factor that applies to a task.
enum class Part : std::uint8_t { other, host, gpu, network };

// Transfers are network; other GPU work is gpu; work of the host is host. Waiting and unknown CPU tasks keep
// their time.
Part part_of(const Program& program, const TaskInfo& task) {
  if (task.kind == TaskKind::collective || task.kernel_class == KernelClass::communication)
    return Part::network;
  if (task.kind == TaskKind::kernel || task.kind == TaskKind::memcpy || task.kind == TaskKind::memset)
    return Part::gpu;
  return program.works.host(task.work) != nullptr ? Part::host : Part::other;
}

// The only block of a rank class in a recorded program.
BlockId block_id(const RecordedProgram& recorded, std::size_t c) {
  return recorded.program.rank_class(RankClassId{c}).instances.front().block;
}

// Applies factors to the times of a step. The same Costs can be reused for several draws.
class Scaling {
 public:
  Scaling(const RecordedProgram& recorded, const Costs& base) : recorded_(recorded), base_(base) {
    const Program& program = recorded.program;
    parts_.resize(recorded.facts.size());
    for (std::size_t c = 0; c < parts_.size(); ++c) {
      const Block& block = program.block(block_id(recorded, c));
      for (const TaskInfo& task : block.tasks()) parts_[c].push_back(part_of(program, task));
      for (const EdgeInfo& edge : block.edge_infos()) shares_ = shares_ || edge.share_of_source > 0;
    }
  }

  // `costs` must be a copy of the base costs, possibly after earlier calls. Sets all durations.
  void apply(const ScenarioDraw& draw, Costs& costs) const {
    for (std::size_t c = 0; c < parts_.size(); ++c) {
      const double factors[] = {1, draw.ranks[c].host, draw.ranks[c].gpu, draw.network};
      const BlockId id = block_id(recorded_, c);
      const std::span<const double> from = base_.duration_us(id);
      const std::span<double> to = costs.duration_us(id);
      for (std::size_t t = 0; t < to.size(); ++t)
        to[t] = from[t] * factors[static_cast<std::size_t>(parts_[c][t])];
    }
    if (shares_) costs.rescale_shared_delays(recorded_.program);
  }

 private:
  const RecordedProgram& recorded_;
  const Costs& base_;
  std::vector<std::vector<Part>> parts_;  // [rank class][task]
  bool shares_ = false;                   // some delay is a share of a duration
};

// Steps of public training runs relative to their median: medians over seven series of 261 to 9,528 single
// steps on A100 and H100 (docs/constants.md). Values more than a few percent above 1 are mostly evaluation,
// checkpoints and restarts.
struct StepQuantile {
  double share, factor;
};
constexpr StepQuantile kFieldSteps[] = {{0, 0.985},    {0.01, 0.988}, {0.05, 0.991},  {0.1, 0.992},
                                        {0.25, 0.994}, {0.5, 1},      {0.75, 1.008},  {0.9, 1.031},
                                        {0.95, 1.070}, {0.99, 1.159}, {0.999, 1.507}, {1, 1.507}};

// A thousand equally probable values: the quantiles at the midpoints of a thousand equal parts, linearly
// interpolated.
std::vector<Slowdown> field_steps() {
  constexpr std::size_t kValues = 1000;
  std::vector<Slowdown> values;
  const StepQuantile* above = kFieldSteps + 1;
  for (std::size_t i = 0; i < kValues; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / kValues;
    while (above->share < share) ++above;
    const StepQuantile& below = *(above - 1);
    const double within = (share - below.share) / (above->share - below.share);
    const double factor = below.factor + within * (above->factor - below.factor);
    values.push_back({factor, factor});
  }
  return values;
}

// Quotient, or 1 if one of the times is missing.
double ratio(double of, double to) { return to > 0 && of > 0 ? of / to : 1; }

}  // namespace

Result<Jitter> parse_jitter(const std::vector<std::string>& texts) {
  Jitter jitter;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    std::string number = equals == std::string::npos ? text : text.substr(equals + 1);
    const bool percent = number.ends_with('%');
    if (percent) number.pop_back();
    double value = scan<double>(number).value_or(-1);
    const bool known = name.empty() || name == "host" || name == "gpu" || name == "network";
    if (!known || !percent || !(value >= 0 && value <= 100)) {
      return Error::at("", "--jitter")
          .found(fmt::format("`{}`", text))
          .expected("5% (host and GPU), or host=, gpu= or network= with a percentage from 0 to 100");
    }
    value /= 100;
    if (name.empty() || name == "host") jitter.host = value;
    if (name.empty() || name == "gpu") jitter.gpu = value;
    if (name == "network") jitter.network = value;
  }
  return jitter;
}

std::vector<RankTimes> rank_times(const RecordedProgram& recorded, const Costs& costs) {
  std::vector<RankTimes> ranks(recorded.facts.size());
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    const BlockId id = block_id(recorded, c);
    const std::span<const TaskInfo> tasks = recorded.program.block(id).tasks();
    const std::span<const double> us = costs.duration_us(id);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      switch (part_of(recorded.program, tasks[t])) {
        case Part::host: ranks[c].host_us += us[t]; break;
        case Part::gpu: ranks[c].gpu_us += us[t]; break;
        case Part::network: ranks[c].network_us += us[t]; break;
        case Part::other: break;
      }
    }
  }
  return ranks;
}

SlowdownDraws draws_of_steps(const std::vector<std::vector<RankTimes>>& steps,
                             const std::vector<RankTimes>& base) {
  SlowdownDraws draws;
  draws.of_rank.resize(base.size());
  draws.from = fmt::format("{} steps, for every rank its own", steps.size());
  double base_network = 0;
  for (const RankTimes& rank : base) base_network += rank.network_us;
  for (const std::vector<RankTimes>& step : steps) {
    double network = 0;
    for (std::size_t c = 0; c < base.size() && c < step.size(); ++c) {
      network += step[c].network_us;
      draws.of_rank[c].push_back(
          {ratio(step[c].host_us, base[c].host_us), ratio(step[c].gpu_us, base[c].gpu_us)});
    }
    draws.network.push_back(ratio(network, base_network));
  }
  return draws;
}

SlowdownDraws draws_of_ranks(const std::vector<RankTimes>& base) {
  SlowdownDraws draws;
  if (base.size() == 1) {
    draws.from =
        "steps of public training runs around their median, since only one step of one rank was recorded";
    draws.of_rank.push_back(field_steps());
    return draws;
  }
  draws.from = fmt::format("the {} ranks of one step, interchanged at random", base.size());
  for (const RankTimes& rank : base) {
    std::vector<Slowdown>& of_rank = draws.of_rank.emplace_back();
    for (const RankTimes& other : base)
      of_rank.push_back({ratio(other.host_us, rank.host_us), ratio(other.gpu_us, rank.gpu_us)});
  }
  return draws;
}

ScenarioDraw draw_scenario(const SlowdownDraws& draws, std::size_t n_ranks, std::uint64_t seed,
                           std::uint64_t scenario) {
  Random random{seed, scenario};
  const auto jitter = [&](double sigma) {
    // Always drawn, so that the draws of one part do not depend on other parts.
    const double z = random.normal();
    return sigma > 0 ? std::exp(sigma * z) : 1;
  };
  ScenarioDraw draw;
  if (!draws.network.empty()) draw.network = draws.network[random.below(draws.network.size())];
  draw.network *= jitter(draws.jitter.network);
  for (std::size_t c = 0; c < n_ranks; ++c) {
    Slowdown slowdown;
    if (c < draws.of_rank.size() && !draws.of_rank[c].empty())
      slowdown = draws.of_rank[c][random.below(draws.of_rank[c].size())];
    slowdown.host *= jitter(draws.jitter.host);
    slowdown.gpu *= jitter(draws.jitter.gpu);
    draw.ranks.push_back(slowdown);
  }
  return draw;
}

ScenarioDraw mean_draw(const SlowdownDraws& draws, std::size_t n_ranks) {
  ScenarioDraw mean;
  mean.ranks.resize(n_ranks);
  for (std::size_t c = 0; c < n_ranks && c < draws.of_rank.size(); ++c) {
    const std::vector<Slowdown>& of_rank = draws.of_rank[c];
    if (of_rank.empty()) continue;
    mean.ranks[c] = {0, 0};
    for (const Slowdown& slowdown : of_rank) {
      mean.ranks[c].host += slowdown.host / static_cast<double>(of_rank.size());
      mean.ranks[c].gpu += slowdown.gpu / static_cast<double>(of_rank.size());
    }
  }
  if (!draws.network.empty()) {
    mean.network = 0;
    for (const double factor : draws.network)
      mean.network += factor / static_cast<double>(draws.network.size());
  }
  return mean;
}

Costs scenario_costs(const RecordedProgram& recorded, const Costs& costs, const ScenarioDraw& draw) {
  Costs scaled = costs;
  Scaling{recorded, costs}.apply(draw, scaled);
  return scaled;
}

Result<SweptScenarios> sweep_scenarios(const RecordedProgram& recorded, const Costs& costs,
                                       const SlowdownDraws& draws, const SweepOptions& options) {
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(recorded.program));
  const std::size_t n_ranks = recorded.facts.size();
  ScenarioOptions how;
  how.start_offset_us = recorded.start_offset_us;
  std::vector<std::optional<std::size_t>> watched(n_ranks);  // index into how.watched
  for (std::size_t c = 0; c < n_ranks; ++c) {
    const RecordedStepFacts& facts = recorded.facts[c];
    if (!facts.step_end_task.valid()) continue;
    watched[c] = how.watched.size();
    how.watched.push_back({RankClassId{c}, InstanceId{0U}, facts.step_end_task, facts.step_ends_at_start});
  }
  SweptScenarios swept;
  swept.step_us.resize(options.n);
  swept.rank_step_us.assign(n_ranks, std::vector<double>(options.n, 0.0));
  const Scaling scaling{recorded, costs};
  STEPCAST_TRY(
      parallel_for((options.n + kTile - 1) / kTile, options.threads, [&](std::size_t tile) -> Status {
        const std::size_t first = tile * kTile;
        std::vector<Costs> scenarios(std::min(kTile, options.n - first), costs);
        for (std::size_t s = 0; s < scenarios.size(); ++s)
          scaling.apply(draw_scenario(draws, n_ranks, options.seed, first + s), scenarios[s]);
        STEPCAST_ASSIGN(const ScenarioEnds ends, plan.simulate(scenarios, how));
        for (std::size_t s = 0; s < scenarios.size(); ++s) {
          double longest = 0;
          for (std::size_t c = 0; c < n_ranks; ++c) {
            const double end =
                watched[c] ? ends.watched_us(s)[*watched[c]] : ends.rank_end_us(s, RankClassId{c});
            const double step = end - recorded.facts[c].step_us.start_us;
            swept.rank_step_us[c][first + s] = step;
            longest = std::max(longest, step);
          }
          swept.step_us[first + s] = longest;
        }
        return Ok{};
      }));
  return swept;
}

}  // namespace stepcast
