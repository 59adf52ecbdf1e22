#include "lab/unseen_system.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/cost/collective_model.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/moved_curve.h"
#include "calibrate/related_systems_fit.h"

namespace stepcast {
namespace {

struct Machine {
  MeasuredSystem system;
  Platform bare;  // its platform without measurements of collectives
};

std::string family_of(const MeasuredSystem& s) {
  return fmt::format("{} {}", s.device.architecture, to_string(s.node.intra.kind));
}

std::vector<Machine> machines_of(const MeasuredCollectives& measured, std::vector<Skipped>& skipped) {
  std::vector<Machine> machines;
  std::map<std::string, std::optional<std::size_t>> index;
  for (const CollectiveMeasurements& m : measured.curves) {
    const auto [at, is_new] = index.emplace(m.platform, std::nullopt);
    if (is_new) {
      auto platform = load_platform(m.platform, m.gpu);
      if (!platform) {
        skipped.push_back({m.platform.empty() ? "a machine without a name" : m.platform,
                           "no shipped platform has this name: its links are not known", 1});
        continue;
      }
      at->second = machines.size();
      Machine machine{{m.platform, platform->device, platform->node, {}}, std::move(*platform)};
      machine.bare.curves.clear();
      std::erase_if(machine.bare.models,
                    [](const ModelRecord& r) { return r.name == RelatedSystems::kRecordName; });
      machines.push_back(std::move(machine));
    }
    if (at->second) machines[*at->second].system.curves.push_back(&m);
  }
  return machines;
}

SetScore new_set(const CollectiveMeasurements& m, const Machine& machine, std::uint64_t n_fit) {
  SetScore set{.set = m.name(), .group = family_of(machine.system), .n_fit = n_fit};
  return set;
}

ScoredRow scored_row(const CollectiveSample& s, const TimeCurve& curve) {
  const Estimate e = curve.at(Bytes{s.message_bytes});
  return {fmt::format("{} B", s.message_bytes), s.time_us, e.time.value(), e.p10.value(), e.p90.value(), {}};
}

struct Scores {
  std::vector<SetScore> inside, two_sizes, nodes;
};

// Scores one machine predicted from the machines of `known`.
Result<Scores> score_machine(const Machine& machine, const std::vector<MeasuredSystem>& known) {
  Scores scores;
  STEPCAST_ASSIGN(const RelatedSystems related, fit_related_systems(known));
  std::uint64_t n_fit = 0;
  for (const MeasuredSystem& s : known)
    for (const CollectiveMeasurements* m : s.curves) n_fit += m->samples.size();
  Platform platform = machine.bare;
  ModelRecord record{.name = std::string{RelatedSystems::kRecordName},
                     .kind = std::string{RelatedSystems::kRecordKind}};
  record.parameters = related.write();
  platform.set(std::move(record));
  const CollectiveModel model{platform};
  const Device& device = platform.device;
  const Node& node = platform.node;
  for (const CollectiveMeasurements* m : machine.system.curves) {
    auto resolved = model.resolve({.op = m->collective, .n_ranks = m->n_ranks, .n_nodes = m->n_nodes});
    if (!resolved) continue;  // the platform does not describe a network
    SetScore set = new_set(*m, machine, n_fit);
    for (const CollectiveSample& s : m->samples) set.rows.push_back(scored_row(s, resolved->curve));
    if (m->n_nodes > 1) {
      scores.nodes.push_back(std::move(set));
      continue;
    }
    scores.inside.push_back(std::move(set));
    const std::vector<CollectiveSample> few = two_sizes(*m);
    const TimeCurve moved =
        moved_curve(resolved->curve, few, related.moved, log2_link_ns(device, node, m->n_ranks, 0));
    SetScore after = new_set(*m, machine, n_fit + few.size());
    for (const CollectiveSample& s : m->samples) {
      const bool given = std::ranges::any_of(
          few, [&](const CollectiveSample& f) { return f.message_bytes == s.message_bytes; });
      if (!given) after.rows.push_back(scored_row(s, moved));
    }
    if (!after.rows.empty()) scores.two_sizes.push_back(std::move(after));
  }
  return scores;
}

void append(std::vector<SetScore>& to, std::vector<SetScore>&& from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

Result<std::vector<TestScore>> unseen_systems(const MeasuredCollectives& measured, unsigned threads,
                                              std::vector<Skipped>& skipped) {
  const std::vector<Machine> machines = machines_of(measured, skipped);
  TestScore one = refit_test("unseen_system"), one_two_sizes = refit_test("unseen_system_two_sizes"),
            generation = refit_test("unseen_system_generation"),
            generation_two_sizes = refit_test("unseen_system_generation_two_sizes"),
            nodes = refit_test("unseen_system_nodes");
  std::vector<Scores> without_it(machines.size()), without_family(machines.size());
  STEPCAST_TRY(parallel_for(machines.size(), threads, [&](std::size_t i) -> Status {
    std::vector<MeasuredSystem> others, strangers;
    for (std::size_t k = 0; k < machines.size(); ++k) {
      if (k == i) continue;
      others.push_back(machines[k].system);
      if (family_of(machines[k].system) != family_of(machines[i].system))
        strangers.push_back(machines[k].system);
    }
    // Without a related machine measured from start-up to full bandwidth there is nothing to score.
    if (auto scores = score_machine(machines[i], others)) without_it[i] = std::move(*scores);
    if (auto scores = score_machine(machines[i], strangers)) without_family[i] = std::move(*scores);
    return Ok{};
  }));
  for (std::size_t i = 0; i < machines.size(); ++i) {
    append(one.sets, std::move(without_it[i].inside));
    append(one_two_sizes.sets, std::move(without_it[i].two_sizes));
    append(nodes.sets, std::move(without_it[i].nodes));
    append(generation.sets, std::move(without_family[i].inside));
    append(generation_two_sizes.sets, std::move(without_family[i].two_sizes));
  }
  return finished({&one, &one_two_sizes, &generation, &generation_two_sizes, &nodes});
}

}  // namespace stepcast
