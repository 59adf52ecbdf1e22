#include "lab/foreign_hosts.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/statistics.h"
#include "stepcast/operation/overhead_name.h"

namespace stepcast {
namespace {

// Least shared host time of two jobs that determines the speed of a part of the host. Assumed; some dozen operators.
constexpr double kLeastSharedUs = 100;

// True for records of all operators or of all operators of a family.
bool is_of_many(const OverheadRecord& record) { return record.op.empty() || record.op.starts_with('('); }
bool is_of_one(const OverheadRecord& record) { return record.op == kStepEnd || !is_of_many(record); }

struct Shared {
  double theirs_us = 0, ours_us = 0;
};

HostSpeed speed_over(const OverheadFit& job, const HostOverheads& others) {
  std::array<Shared, 3> parts{};  // between operators, in them, calls
  Shared all;
  std::vector<double> loaders;
  for (const OverheadRecord& record : job.records) {
    const HostOverhead own = others.time(record.type, record.op);
    // Gaps are counted by the operators on both sides, as they are applied.
    if (record.type == OverheadType::t1 && record.op != kStepEnd && !names_both_sides(record.op)) continue;
    if (!is_of_one(record) || own.ground != OverheadTimeSource::own) continue;
    if (is_in_data_loader(record.op)) {
      if (record.type != OverheadType::t1 && own.mean_us > 0) loaders.push_back(record.mean_us / own.mean_us);
      continue;
    }
    const std::size_t part = record.type == OverheadType::t1 ? 0 : record.type == OverheadType::t4 ? 2 : 1;
    const Shared shared{record.mean_us * static_cast<double>(record.n),
                        own.mean_us * static_cast<double>(record.n)};
    // Times between operators depend on the program, not on the host as a whole.
    for (Shared* sum : {&parts[part], part == 0 ? nullptr : &all}) {
      if (sum == nullptr) continue;
      sum->theirs_us += shared.theirs_us;
      sum->ours_us += shared.ours_us;
    }
  }
  const double whole = all.ours_us > 0 && all.theirs_us > 0 ? all.theirs_us / all.ours_us : 1;
  // A part with little shared time gets the ratio of the whole.
  const auto of = [&](const Shared& part) {
    return (part.theirs_us + whole * kLeastSharedUs) / (part.ours_us + kLeastSharedUs);
  };
  return {of(parts[0]), of(parts[1]), of(parts[2]), loaders.empty() ? 1 : median(std::move(loaders))};
}

// Pools several jobs with equal weights.
class PooledMeans {
 public:
  void add(const OverheadFit& job, const HostSpeed& speed) {
    for (const OverheadRecord& record : job.records)
      us_[{record.type, record.op}].push_back(record.mean_us / speed.of(record.type));
  }
  [[nodiscard]] OverheadFit medians() const {
    OverheadFit fit;
    for (const auto& [key, us] : us_)
      fit.records.push_back({.type = key.first, .op = key.second, .mean_us = median(us), .n = 1});
    return fit;
  }

 private:
  std::map<std::pair<OverheadType, std::string>, std::vector<double>> us_;
};

}  // namespace

HostSpeed speed_of(const OverheadFit& job, const OverheadFit& others) {
  return speed_over(job, others.host());
}

double share_known(const OverheadFit& others, const OverheadFit& job) {
  const HostOverheads host = others.host();
  double known = 0, all = 0;
  for (const OverheadRecord& record : job.records) {
    if (!is_of_one(record) || names_both_sides(record.op)) continue;
    all += static_cast<double>(record.n);
    if (host.time(record.type, record.op).ground == OverheadTimeSource::own)
      known += static_cast<double>(record.n);
  }
  return all > 0 ? known / all : 0;
}

OverheadFit pooled_jobs(std::span<const OverheadFit> jobs) {
  PooledMeans means;
  OverheadFit pool;
  for (const OverheadFit& job : jobs) {
    means.add(job, speed_of(job, pool));
    pool = means.medians();
  }
  return pool;
}

OverheadFit median_costs(std::span<const OverheadFit> jobs) {
  PooledMeans means;
  for (const OverheadFit& job : jobs) means.add(job, {});
  return means.medians();
}

OverheadFit by_family_alone(OverheadFit fit) {
  std::erase_if(fit.records, [](const OverheadRecord& record) { return is_of_one(record); });
  return fit;
}

}  // namespace stepcast
