#include "stepcast/analyze/critical_path.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "stepcast/analyze/binding.h"

namespace stepcast {
namespace {

struct Place {
  RankClassId rank_class;
  std::size_t task = kNoTask;
};

// Whose arrival decided when member `m` could begin its transfer.
std::size_t deciding_member(const Collective& collective, const std::vector<CollectiveStretch>& stretches,
                            std::size_t m) {
  const auto later = [&](std::size_t a, std::size_t b) {  // a, unless b came later
    return stretches[b].arrival_us > stretches[a].arrival_us + kTimeToleranceUs ? b : a;
  };
  if (collective.kind == CollectiveKind::rooted_from) return later(m, collective.root);
  std::size_t last = m;  // on a tie the path stays on its rank
  for (std::size_t other = 0; other < stretches.size(); ++other) last = later(last, other);
  return last;
}

std::vector<PathShare> sorted(const std::map<std::string, PathShare>& shares) {
  std::vector<PathShare> list;
  for (const auto& [what, share] : shares) list.push_back({what, share.time_us, share.steps});
  std::stable_sort(list.begin(), list.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time_us > b.time_us; });
  return list;
}

// Steps with equal keys have equal names; several keys may have the same one. `key` is asked of every step,
// `name` of few.
template <class Key, class Name>
std::vector<PathShare> share_by(const CriticalPath& path, const Key& key, const Name& name) {
  std::map<std::string, PathShare> shares;
  std::unordered_map<std::uint64_t, PathShare*> known;
  for (const PathStep& step : path.steps) {
    PathShare*& share = known[key(step)];
    if (share == nullptr) share = &shares[name(step)];
    share->time_us += step.time.length_us();
    ++share->steps;
  }
  return sorted(shares);
}

// Of step_class().
std::uint64_t class_key(const FlatProgram& flat, const PathStep& step) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  if (step.kind == PathStep::Kind::edge) return number(step.kind) | number(step.edge.origin) << 8U;
  if (step.kind != PathStep::Kind::task) return number(step.kind);
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  return number(step.kind) | number(info.kind) << 8U | number(info.kernel_class) << 16U;
}

// Of path_step_name().
std::uint64_t name_key(const FlatProgram& flat, const PathStep& step) {
  if (step.kind != PathStep::Kind::task) return class_key(flat, step);
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  const std::uint64_t op = info.stack.valid() ? flat.program().stacks.name(info.stack).index() + 1 : 0;
  return std::uint64_t{1} << 63U | op << 32U | info.name.index();
}

std::string step_class(const FlatProgram& flat, const PathStep& step) {
  switch (step.kind) {
    case PathStep::Kind::edge: return fmt::format("delay: {}", to_string(step.edge.origin));
    case PathStep::Kind::start_offset: return "late start";
    case PathStep::Kind::unexplained: return "unexplained";
    case PathStep::Kind::task: break;
  }
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  switch (info.kind) {
    case TaskKind::cpu_segment:
    case TaskKind::cpu_call:
    case TaskKind::sync_enter:
    case TaskKind::sync_return: return "cpu";
    case TaskKind::memcpy:
    case TaskKind::memset: return "copies";
    case TaskKind::collective: return "communication";
    case TaskKind::wait: return "waiting";
    case TaskKind::kernel: break;
  }
  if (info.kernel_class == KernelClass::communication) return "communication";
  return fmt::format("kernels: {}", to_string(info.kernel_class));
}

}  // namespace

CriticalPath critical_path(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                           std::span<const double> rank_start_us, const CriticalPathOptions& options) {
  const Program& program = flat.program();
  CriticalPath path;
  double first_start = std::numeric_limits<double>::infinity();
  for (const double start : rank_start_us) first_start = std::min(first_start, start);
  if (rank_start_us.empty()) first_start = 0;
  path.time = {first_start, first_start};

  Place at;
  double until = -std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < flat.class_count(); ++c) {
    if (options.to_rank && options.to_rank->index() != c) continue;
    if (options.to_task) {
      const Interval& target = times.at(RankClassId{c}, *options.to_task);
      at = {RankClassId{c}, *options.to_task};
      until = options.to_start ? target.start_us : target.end_us;
      continue;
    }
    const std::span<const Interval> of_class = times.of(RankClassId{c});
    for (std::size_t t = 0; t < of_class.size(); ++t) {
      if (of_class[t].end_us > until + kTimeToleranceUs) {
        until = of_class[t].end_us;
        at = {RankClassId{c}, t};
      }
    }
  }
  if (at.task == kNoTask) return path;  // a Program without tasks
  path.time.end_us = until;
  path.last_rank = at.rank_class;

  // From the end of a task (`through` it), or from its start, back to what bound it.
  bool through = !(options.to_task && options.to_start);
  while (true) {
    double start = times.at(at.rank_class, at.task).start_us;
    if (through) {
      double begin = start;
      Place arrived = at;
      if (const CollectiveId id = flat.collective_of(at.rank_class, at.task); id.valid()) {
        const Collective& collective = program.collectives()[id.index()];
        const std::vector<CollectiveStretch> stretches = collective_stretches(flat, times, id);
        std::size_t own = 0;
        for (std::size_t m = 0; m < collective.members.size(); ++m) {
          const CollectiveMember& member = collective.members[m];
          if (member.rank_class != at.rank_class) continue;
          const TaskRef ref{
              .rank_class = member.rank_class, .rank = 0, .instance = member.instance, .task = member.task};
          if (flat.flat(ref) == at.task) own = m;
        }
        const std::size_t last = deciding_member(collective, stretches, own);
        const CollectiveMember& member = collective.members[last];
        arrived = {member.rank_class, flat.flat({.rank_class = member.rank_class,
                                                 .rank = 0,
                                                 .instance = member.instance,
                                                 .task = member.task})};
        begin = stretches[last].arrival_us;
      }
      path.steps.push_back({.kind = PathStep::Kind::task,
                            .rank_class = at.rank_class,
                            .task = at.task,
                            .edge = {},
                            .time = {begin, until}});
      at = arrived;
      start = begin;
    }
    const Binding binding =
        binding_of(flat, times, costs, at.rank_class, at.task, rank_start_us[at.rank_class.index()]);
    if (start > binding.arrival_us + kTimeToleranceUs) {
      path.steps.push_back({.kind = PathStep::Kind::unexplained,
                            .rank_class = at.rank_class,
                            .task = at.task,
                            .edge = {},
                            .time = {binding.arrival_us, start}});
    }
    until = std::min(start, binding.arrival_us);
    const bool at_rank_start = binding.kind == Binding::Kind::rank_start || binding.source.task == kNoTask;
    if (binding.kind == Binding::Kind::edge && binding.source.delay_us > 0) {
      path.steps.push_back({.kind = PathStep::Kind::edge,
                            .rank_class = at.rank_class,
                            .task = at.task,
                            .edge = binding.source.info,
                            .time = {until - binding.source.delay_us, until}});
      until -= binding.source.delay_us;
    }
    if (at_rank_start) {
      if (until > first_start + kTimeToleranceUs) {
        path.steps.push_back({.kind = PathStep::Kind::start_offset,
                              .rank_class = at.rank_class,
                              .task = at.task,
                              .edge = {},
                              .time = {first_start, until}});
      }
      break;
    }
    if (options.from_us && until <= *options.from_us) {
      path.time.start_us = std::max(first_start, until);
      break;
    }
    through = binding.source.from_end;
    at.task = binding.source.task;
  }
  std::reverse(path.steps.begin(), path.steps.end());
  return path;
}

std::vector<PathShare> path_by_class(const FlatProgram& flat, const CriticalPath& path) {
  return share_by(
      path, [&](const PathStep& step) { return class_key(flat, step); },
      [&](const PathStep& step) { return step_class(flat, step); });
}

std::vector<PathShare> path_by_rank(const FlatProgram& flat, const CriticalPath& path) {
  const auto key = [](const PathStep& step) {
    const bool late = step.kind == PathStep::Kind::start_offset;
    return std::uint64_t{step.rank_class.index()} * 2 + (late ? 1 : 0);
  };
  return share_by(path, key, [&](const PathStep& step) {
    const std::string& rank = flat.program().rank_class(step.rank_class).name;
    return step.kind == PathStep::Kind::start_offset ? fmt::format("late start of {}", rank) : rank;
  });
}

std::string path_step_name(const FlatProgram& flat, const PathStep& step) {
  if (step.kind != PathStep::Kind::task) return step_class(flat, step);
  const Program& program = flat.program();
  const TaskInfo& info = flat.info(step.rank_class, step.task);
  const std::string_view name = program.names.text(info.name);
  if (!info.stack.valid()) return std::string{name};
  const std::string_view op = program.names.text(program.stacks.name(info.stack));
  return op == name || name.empty() ? std::string{op} : fmt::format("{} ({})", op, name);
}

std::vector<PathShare> path_by_name(const FlatProgram& flat, const CriticalPath& path) {
  return share_by(
      path, [&](const PathStep& step) { return name_key(flat, step); },
      [&](const PathStep& step) { return path_step_name(flat, step); });
}

}  // namespace stepcast
