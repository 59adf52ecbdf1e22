#include "stepcast/retrace/host_prices.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// Host time that two jobs share, from which on it says how fast a part of the host is: assumed, some dozen operators.
constexpr double kLeastSharedUs = 100;
// What a process does and waits for while it reads its next batch says nothing of the host elsewhere: it has other
// operators, on other tensors.
constexpr std::string_view kDataLoader = "enumerate(DataLoader)";

const Block& block_of(const RecordedProgram& recorded, RankClassId c) {
  return recorded.program.block_of(c, InstanceId{0});
}
// The open operator of a stack that has this name, outermost of several: one frame per call of an operator.
StackId call_of(const OpStacks& stacks, StackId stack, NameId op) {
  StackId found{};
  for (; stack.valid(); stack = stacks.parent(stack)) {
    if (stacks.name(stack) == op) found = stack;
  }
  return found;
}

// Cuts the tasks of one CPU thread into stretches.
class LaneStretches {
 public:
  LaneStretches(const Program& program, const Block& block) : program_(program), block_(block) {}

  void add(std::uint32_t t) {
    const TaskInfo& task = block_.tasks()[t];
    const HostWork* work = program_.works.host(task.work);
    if (work == nullptr || work->activity != HostWork::Activity::overhead) return;
    if (work->type == OverheadType::t1) {
      close();
      gap_.push_back(t);
      return;
    }
    if (work->type == OverheadType::t4) {
      out_.push_back(
          {.type = OverheadType::t4, .op = work->op, .after = {}, .n = 1, .anchor = t, .tasks = {t}});
      if (!is_launch(work->op)) return;
      if (op_.valid() && call_of(program_.stacks, task.stack, op_) == call_) {
        launches_.push_back(work->op);
      } else {
        early_.push_back({work->op, task.stack});
      }
      return;
    }
    const StackId call = call_of(program_.stacks, task.stack, work->op);
    if (!op_.valid() || !(call_ == call) || op_ != work->op) {
      close();
      open(t, work->op, call);
    }
    tasks_of(work->type).push_back(t);
  }

  std::vector<HostStretch> finish() {
    close();
    if (!gap_.empty()) end_gap(NameId{}, gap_.front());
    return std::move(out_);
  }

 private:
  std::vector<std::uint32_t>& tasks_of(OverheadType type) {
    return type == OverheadType::t2 ? before_ : type == OverheadType::t3 ? behind_ : between_;
  }

  bool is_launch(NameId call) {
    const auto [it, fresh] = launch_names_.try_emplace(call.index(), false);
    if (fresh) {
      const std::string_view family = overhead_family(OverheadType::t4, program_.names.text(call));
      it->second = family != "(other call)" && family != "(set-up)";
    }
    return it->second;
  }

  void end_gap(NameId op, std::uint32_t anchor) {
    out_.push_back({.type = OverheadType::t1,
                    .op = op,
                    .after = last_op_,
                    .n = 1,
                    .anchor = anchor,
                    .tasks = std::move(gap_)});
    gap_.clear();
  }

  void open(std::uint32_t t, NameId op, StackId call) {
    op_ = op;
    call_ = call;
    anchor_ = t;
    end_gap(op, t);
    last_op_ = op;
    // Launches at the very begin of the operator came before any time of its own.
    for (const EarlyLaunch& launch : early_) {
      if (call_of(program_.stacks, launch.stack, op) == call) launches_.push_back(launch.call);
    }
    early_.clear();
  }

  void close() {
    if (!op_.valid()) return;
    const auto add = [&](OverheadType type, std::vector<std::uint32_t>& tasks, std::uint32_t n) {
      out_.push_back(
          {.type = type, .op = op_, .after = {}, .n = n, .anchor = anchor_, .tasks = std::move(tasks)});
      tasks.clear();
    };
    const bool launches = !launches_.empty() || !before_.empty() || !behind_.empty();
    const std::size_t first = out_.size();
    const auto n = static_cast<std::uint32_t>(launches_.size());
    if (launches) {
      add(OverheadType::t2, before_, 1);
      if (n > 1 || !between_.empty()) add(OverheadType::t5, between_, std::max<std::uint32_t>(2, n) - 1);
      add(OverheadType::t3, behind_, 1);
    } else {
      add(OverheadType::t5, between_, 1);
    }
    out_[first].begins_call = true;
    out_[first].launches = std::move(launches_);
    launches_.clear();
    op_ = NameId{};
  }

  const Program& program_;
  const Block& block_;
  std::vector<HostStretch> out_;
  std::vector<std::uint32_t> gap_, before_, between_, behind_;
  NameId op_{}, last_op_{};
  StackId call_{};
  std::uint32_t anchor_ = 0;
  struct EarlyLaunch {
    NameId call;
    StackId stack;
  };
  std::vector<EarlyLaunch> early_;
  std::vector<NameId> launches_;
  std::unordered_map<std::uint32_t, bool> launch_names_;
};

// The names that statistics go by.
struct NamedStretch {
  std::string op, after, family;
  bool in_data_loader = false;
  // What times are learned by.
  [[nodiscard]] std::string learned_as() const {
    return in_data_loader ? fmt::format("{} {}", kDataLoader, op) : op;
  }
};
NamedStretch named(const Program& program, const Block& block, const HostStretch& stretch) {
  const StringTable& names = program.names;
  const auto text = [&](NameId id) { return id.valid() ? names.text(id) : std::string_view{}; };
  NamedStretch out;
  if (stretch.type == OverheadType::t4) {
    out.op = text(stretch.op);
  } else if (stretch.op.valid()) {
    out.op = overhead_name(text(stretch.op));
  } else {
    out.op = kStepEnd;
  }
  if (stretch.after.valid()) out.after = overhead_name(text(stretch.after));
  out.family = overhead_family(stretch.type, out.op);
  for (StackId s = block.tasks()[stretch.anchor].stack; s.valid(); s = program.stacks.parent(s))
    if (names.text(program.stacks.name(s)).starts_with(kDataLoader)) out.in_data_loader = true;
  return out;
}

void set_time(const HostStretch& stretch, double us, std::span<double> durations) {
  for (const std::uint32_t t : stretch.tasks) durations[t] += us / static_cast<double>(stretch.tasks.size());
  if (stretch.tasks.empty()) durations[stretch.anchor] += us;
}

// Puts `time_of(stretch)` in place of the recorded time of every stretch it answers for.
template <class TimeOf>
void put(const RecordedProgram& recorded, RankClassId c, Costs& costs, TimeOf time_of) {
  const std::span<double> durations = costs.duration_us(detail::block_id(recorded, c));
  const std::vector<HostStretch> stretches = host_stretches(recorded.program, block_of(recorded, c));
  std::vector<std::optional<double>> times;
  times.reserve(stretches.size());
  for (const HostStretch& stretch : stretches) {
    times.push_back(time_of(stretch));
    if (!times.back()) continue;
    for (const std::uint32_t t : stretch.tasks) durations[t] = 0;
  }
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (times[i]) set_time(stretches[i], *times[i], durations);
  }
}

}  // namespace

std::vector<HostStretch> host_stretches(const Program& program, const Block& block) {
  std::vector<std::optional<LaneStretches>> lanes(block.lanes().size());
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const std::size_t lane = block.lane_codes()[t];
    if (block.lanes()[lane].kind != LaneKind::cpu_thread) continue;
    if (!lanes[lane]) lanes[lane].emplace(program, block);
    lanes[lane]->add(t);
  }
  std::vector<HostStretch> all;
  for (std::optional<LaneStretches>& lane : lanes) {
    if (!lane) continue;
    for (HostStretch& stretch : lane->finish()) all.push_back(std::move(stretch));
  }
  return all;
}

LaunchTable launches_of(const RecordedProgram& recorded, std::span<const RankClassId> classes) {
  std::map<std::string, std::map<std::vector<std::string>, std::uint64_t>> seen;
  const StringTable& names = recorded.program.names;
  for (const RankClassId c : classes) {
    for (const HostStretch& stretch : host_stretches(recorded.program, block_of(recorded, c))) {
      if (!stretch.begins_call) continue;
      std::vector<std::string> calls;
      for (const NameId call : stretch.launches) calls.emplace_back(names.text(call));
      ++seen[std::string{overhead_name(names.text(stretch.op))}][std::move(calls)];
    }
  }
  LaunchTable table;
  for (const auto& [op, sequences] : seen) {
    OpLaunches& of_op = table[op];
    std::uint64_t most = 0;
    double calls = 0;
    for (const auto& [sequence, n] : sequences) {
      of_op.n += n;
      calls += static_cast<double>(n) * static_cast<double>(sequence.size());
      if (n <= most) continue;
      most = n;
      of_op.calls = sequence;
    }
    of_op.mean_calls = of_op.n > 0 ? calls / static_cast<double>(of_op.n) : 0;
  }
  return table;
}

const HostTimes::Statistic* HostTimes::find(const Key& key) const {
  const auto found = by_op_.find(key);
  return found == by_op_.end() ? nullptr : &found->second;
}

HostTimes HostTimes::learn(const RecordedProgram& recorded, std::span<const RankClassId> classes) {
  HostTimes times;
  for (const RankClassId c : classes) {
    const Block& block = block_of(recorded, c);
    for (const HostStretch& stretch : host_stretches(recorded.program, block)) {
      double us = 0;
      for (const std::uint32_t t : stretch.tasks) us += block.duration_us()[t];
      const NamedStretch name = named(recorded.program, block, stretch);
      const std::string op = name.learned_as();
      times.by_family_[{stretch.type, name.family, {}}].count(us, stretch.n);
      times.by_op_[{stretch.type, op, {}}].count(us, stretch.n);
      if (stretch.type == OverheadType::t1)
        times.by_op_[{stretch.type, op, "after " + name.after}].count(us, stretch.n);
    }
    for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
      const EdgeInfo& edge = block.edge_infos()[e];
      if (!is_host_delay(recorded, edge)) continue;
      times.delays_[describe(recorded.delays.of(edge.delay), recorded.program.names)].count(
          block.delay_us()[e], 1);
    }
  }
  return times;
}

void HostTimes::add(const HostTimes& more) {
  for (const auto& [key, statistic] : more.by_op_) by_op_[key].count(statistic.sum_us, statistic.n);
  for (const auto& [key, statistic] : more.by_family_) by_family_[key].count(statistic.sum_us, statistic.n);
  for (const auto& [delay, statistic] : more.delays_) delays_[delay].count(statistic.sum_us, statistic.n);
}

HostTimes HostTimes::pooled(std::span<const HostTimes> jobs) {
  std::map<Key, std::vector<double>> by_op, by_family;
  std::map<std::string, std::vector<double>> delays;
  const auto middle = [](const std::vector<double>& means) {
    Statistic statistic;
    statistic.count(median(means), 1);
    return statistic;
  };
  HostTimes pool;
  for (const HostTimes& job : jobs) {
    const HostSpeed speed = pool.speed_of(job);
    for (const auto& [key, statistic] : job.by_op_) {
      std::vector<double>& means = by_op[key];
      means.push_back(statistic.mean_us() / speed.of(key.type));
      pool.by_op_[key] = middle(means);
    }
    for (const auto& [key, statistic] : job.by_family_) {
      std::vector<double>& means = by_family[key];
      means.push_back(statistic.mean_us() / speed.of(key.type));
      pool.by_family_[key] = middle(means);
    }
    for (const auto& [delay, statistic] : job.delays_) {
      std::vector<double>& means = delays[delay];
      means.push_back(statistic.mean_us() / speed.in_ops);
      pool.delays_[delay] = middle(means);
    }
  }
  return pool;
}

HostTimes HostTimes::by_family_alone() const {
  HostTimes families = *this;
  families.by_op_.clear();
  return families;
}

AppliedHostTimes HostTimes::apply(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs,
                                  const HostSpeed& speed) const {
  AppliedHostTimes applied;
  const Block& block = block_of(recorded, rank_class);
  put(recorded, rank_class, costs, [&](const HostStretch& stretch) -> std::optional<double> {
    const NamedStretch name = named(recorded.program, block, stretch);
    const std::string op = name.learned_as();
    const Statistic* known = nullptr;
    if (stretch.type == OverheadType::t1) known = find({stretch.type, op, "after " + name.after});
    if (known == nullptr) known = find({stretch.type, op, {}});
    const bool own = known != nullptr;
    if (!own) {
      ++applied.unknown_ops[name.op];
      const auto of_family = by_family_.find({stretch.type, name.family, {}});
      if (of_family == by_family_.end()) return std::nullopt;  // nothing like it was learned: as recorded
      known = &of_family->second;
    }
    const double us =
        known->mean_us() * stretch.n * (name.in_data_loader ? speed.data_loader : speed.of(stretch.type));
    (own ? applied.own_us : applied.default_us) += us;
    return us;
  });
  const std::span<double> delays = costs.delay_us(detail::block_id(recorded, rank_class));
  for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
    const EdgeInfo& edge = block.edge_infos()[e];
    if (!is_host_delay(recorded, edge)) continue;
    const auto known = delays_.find(describe(recorded.delays.of(edge.delay), recorded.program.names));
    if (known != delays_.end()) delays[e] = known->second.mean_us() * speed.in_ops;
  }
  return applied;
}

HostSpeed HostTimes::speed_of(const HostTimes& times) const {
  struct Shared {
    double theirs_us = 0, ours_us = 0;
  };
  std::array<Shared, 3> parts{};  // between operators, in them, calls
  Shared all;
  std::vector<double> in_data_loader;
  for (const auto& [key, statistic] : times.by_op_) {
    // Gaps count by the operators on both sides, as apply() takes them.
    if ((key.type == OverheadType::t1) == key.after.empty()) continue;
    const Statistic* own = find(key);
    if (own == nullptr) own = find({key.type, key.op, {}});
    if (own == nullptr || own->n == 0) continue;
    if (key.op.starts_with(kDataLoader)) {
      if (key.type != OverheadType::t1 && own->sum_us > 0 && statistic.n > 0)
        in_data_loader.push_back(statistic.mean_us() / own->mean_us());
      continue;
    }
    const std::size_t part = key.type == OverheadType::t1 ? 0 : key.type == OverheadType::t4 ? 2 : 1;
    const double ours_us = own->mean_us() * static_cast<double>(statistic.n);
    parts[part].theirs_us += statistic.sum_us;
    parts[part].ours_us += ours_us;
    if (part == 0) continue;  // what a program does between operators says nothing of the host as a whole
    all.theirs_us += statistic.sum_us;
    all.ours_us += ours_us;
  }
  const double whole = all.ours_us > 0 && all.theirs_us > 0 ? all.theirs_us / all.ours_us : 1;
  // A part of little time is no measure of its own.
  const auto of = [&](const Shared& part) {
    const double prior_us = kLeastSharedUs;
    return (part.theirs_us + whole * prior_us) / (part.ours_us + prior_us);
  };
  return {of(parts[0]), of(parts[1]), of(parts[2]),
          in_data_loader.empty() ? 1 : median(std::move(in_data_loader))};
}

double HostTimes::share_known(const HostTimes& times) const {
  double known = 0, all = 0;
  for (const auto& [key, statistic] : times.by_op_) {
    if (!key.after.empty()) continue;
    all += static_cast<double>(statistic.n);
    if (find(key) != nullptr) known += static_cast<double>(statistic.n);
  }
  return all > 0 ? known / all : 0;
}

AppliedHostTimes apply_host_overheads(const HostOverheads& overheads, const RecordedProgram& recorded,
                                      RankClassId rank_class, Costs& costs, double factor) {
  AppliedHostTimes applied;
  const Block& block = block_of(recorded, rank_class);
  put(recorded, rank_class, costs, [&](const HostStretch& stretch) -> std::optional<double> {
    const NamedStretch name = named(recorded.program, block, stretch);
    const HostOverhead known = overheads.time(stretch.type, name.op);
    if (known.ground == OverheadTimeSource::none) {
      ++applied.unknown_ops[name.op];
      return std::nullopt;
    }
    if (known.ground != OverheadTimeSource::own) ++applied.unknown_ops[name.op];
    const double us = known.mean_us * stretch.n * factor;
    (known.ground == OverheadTimeSource::own ? applied.own_us : applied.default_us) += us;
    return us;
  });
  return applied;
}

bool is_host_delay(const RecordedProgram& recorded, const EdgeInfo& edge) {
  return edge.kept && edge.delay.valid() &&
         (edge.origin == EdgeOrigin::thread_handoff || edge.origin == EdgeOrigin::launch) &&
         edge.delay.index() < recorded.delays.size();
}

void scale_host_time(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs, double factor) {
  const BlockId id = detail::block_id(recorded, rank_class);
  const Block& block = recorded.program.block(id);
  const std::span<double> durations = costs.duration_us(id), delays = costs.delay_us(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t)
    if (recorded.program.works.host(block.tasks()[t].work) != nullptr) durations[t] *= factor;
  for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
    if (is_host_delay(recorded, block.edge_infos()[e])) delays[e] *= factor;
  }
}

}  // namespace stepcast
