#include "lab/what_if_laws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/step_binding.h"
#include "stepcast/base/error_text.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/statistics.h"
#include "stepcast/predict/replay.h"
#include "stepcast/predict/step_orbit.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/retrace/host_prices.h"
#include "stepcast/retrace/recorded_base.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/recorded_source.h"
#include "stepcast/sources/trace_set.h"

#include "lab/recorded_job.h"
#include "lab/trace_mutants.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kLaws = {"physical", "monotonic", "upper", "overlap",
                                                   "verdict",  "unchanged", "band",  "cadence"};
constexpr std::array<std::string_view, 5> kParts = {"host", "gpu", "compute", "memory_bound",
                                                    "communication"};
constexpr std::array<double, 7> kSpeeds = {0.01, 0.5, 0.99, 1.01, 2, 8, 100};
// Tolerance for sums of doubles in another order.
constexpr double kRounding = 1e-7;
// Tolerance for resources with equal savings, as a share of the step.
constexpr double kTie = 0.01;
// Factors by which all parts are made faster.
constexpr std::array<int, 3> kAllFaster = {2, 10, 100};
// A step is called measured if its prediction is off by less.
constexpr double kMeasuredWithin = 0.01;
// A cadence needs this number of ordinary steps with at most this spread. The last number is the largest error of the
// answer.
constexpr std::size_t kCadenceSteps = 4;
constexpr double kCadenceSpread = 0.03, kCadenceWithin = 0.04;

// The work of the busiest GPU lane launched by the step, in microseconds.
double busiest_us(const RecordedProgram& recorded, const Costs& costs) {
  double busiest = 0;
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const BlockId id = recorded.program.rank_class(RankClassId{c}).instances.front().block;
    const Block& block = recorded.program.block(id);
    const std::vector<bool> left_over = left_over_tasks(block);
    std::vector<double> of_lane(block.lanes().size(), 0.0);
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const std::uint16_t lane = block.lane_codes()[t];
      if (block.lanes()[lane].kind == LaneKind::gpu_stream && !left_over[t])
        of_lane[lane] += costs.duration_us(id)[t];
    }
    for (const double us : of_lane) busiest = std::max(busiest, us);
  }
  return busiest;
}

class LawCheck {
 public:
  LawCheck(const RecordedProgram& recorded, std::string set, WhatIfLaws& laws)
      : recorded_(recorded), set_(std::move(set)), laws_(laws) {}

  void run() {
    ++laws_.steps;
    const std::optional<double> unchanged = answer("as recorded", {});
    if (!unchanged) return;
    check_unchanged(*unchanged);
    if (is_far_off_) {
      ++laws_.far_off;
      return;
    }
    check_upper(*unchanged);
    for (const std::string_view part : kParts) {
      std::optional<double> slower;
      for (const double speed : kSpeeds) {
        TracePredictionOptions how;
        const std::string what_if = fmt::format("{}={}x", part, speed);
        if (!apply_what_if(std::span{&what_if, 1}, how.assumptions).ok()) continue;
        const std::optional<double> us = answer(what_if, how);
        if (!us) continue;
        keep_order(what_if, *us,
                   speed > 1 ? std::min(*unchanged, slower.value_or(*unchanged)) : slower.value_or(*us),
                   speed < 1 ? *unchanged : 0);
        slower = us;
      }
    }
    check_verdict(*unchanged);
    for (const OverlapChange overlap : {OverlapChange::none, OverlapChange::perfect}) {
      TracePredictionOptions how;
      how.overlap = overlap;
      const std::string what_if = fmt::format("overlap {}", to_string(overlap));
      const std::optional<double> us = answer(what_if, how);
      if (!us) continue;
      const double longer = overlap == OverlapChange::none ? *us : *unchanged;
      const double shorter = overlap == OverlapChange::none ? *unchanged : *us;
      check("overlap", shorter > longer * (1 + kRounding), what_if, *us, *unchanged);
    }
  }

 private:
  // The prediction without a change equals the replay, its band includes the recorded step, and it is called measured only if
  // it is within kMeasuredWithin of the recorded step.
  void check_unchanged(double us) {
    if (const Result<ReplayScores> scores = score_replay(recorded_, Costs{recorded_.program}); scores.ok()) {
      const double replayed = scores->longest_step_us();
      check("unchanged", std::abs(us - replayed) > kRounding * replayed, "as recorded", us, replayed);
    }
    const Result<TracePrediction> predicted = predict_recorded(recorded_, {});
    if (!predicted.ok() || !(predicted->base.measured_us > 0)) return;
    const double measured = predicted->base.measured_us;
    const Estimate& step = predicted->step;
    const bool outside =
        measured < step.p10.value() * (1 - kRounding) || measured > step.p90.value() * (1 + kRounding);
    check("band", outside, "as recorded", us, measured);
    check("band", step.source == EstimateSource::measured && std::abs(us / measured - 1) > kMeasuredWithin,
          "called measured", us, measured);
    TracePredictionOptions how;
    how.assumptions.host_factor = 0.5;
    is_far_off_ = !check_base(predicted->base, how).ok();
  }
  // With all durations divided by k, the step takes at most step / k plus (1 - 1 / k) of the step without any durations
  // (delays only): a path takes at most the sum of what it takes in both.
  void check_upper(double unchanged) {
    Costs nothing{recorded_.program};
    for (std::size_t c = 0; c < recorded_.facts.size(); ++c) {
      scale_host_time(recorded_, RankClassId{c}, nothing, 0);
      const BlockId id = recorded_.program.rank_class(RankClassId{c}).instances.front().block;
      std::ranges::fill(nothing.duration_us(id), 0.0);
    }
    nothing.rescale_shared_delays(recorded_.program);
    const Result<StepPeriod> remainder = StepOrbit{recorded_}.period(nothing);
    if (!remainder.ok()) return;
    laws_.remainders.push_back(remainder->us / unchanged);
    for (const int k : kAllFaster) {
      TracePredictionOptions how;
      std::vector<std::string> faster;
      for (const char* part : {"host", "gpu", "communication"})
        faster.push_back(fmt::format("{}={}x", part, k));
      if (!apply_what_if(faster, how.assumptions).ok()) continue;
      const std::string what_if = fmt::format("all {}x", k);
      const std::optional<double> us = answer(what_if, how);
      const double most = unchanged / k + (1 - 1.0 / k) * remainder->us;
      if (us) check("upper", *us > most * (1 + kRounding), what_if, *us, most);
    }
  }
  std::optional<double> answer(const std::string& what_if, const TracePredictionOptions& how) {
    const Result<TracePrediction> predicted = predict_recorded(recorded_, how);
    if (!predicted.ok()) {
      laws_.refused.push_back(fmt::format("{} {}: {}", set_, what_if, predicted.error().message()));
      return std::nullopt;
    }
    ++laws_.answers;
    const double us = predicted->step.time.value();
    const double busiest = busiest_us(predicted->recorded, predicted->costs);
    check("physical", us < busiest * (1 - kRounding), what_if, us, busiest);
    return us;
  }
  // The resource named by the verdict saves as much as the best what-if.
  void check_verdict(double unchanged) {
    const Costs costs{recorded_.program};
    const Result<ReplayScores> scores = score_replay(recorded_, costs);
    if (!scores.ok()) return;
    const Result<StepBinding> binding = step_binding(recorded_, costs, scores->timeline);
    if (!binding.ok()) {
      laws_.refused.push_back(fmt::format("{} verdict: {}", set_, binding.error().message()));
      return;
    }
    const StepResource named = binding->gains.front().resource;
    double most = 0, of_named = 0;
    for (const StepResource resource : {StepResource::gpu, StepResource::host, StepResource::communication}) {
      TracePredictionOptions how;
      const std::string what_if = fmt::format("{}=2x", to_string(resource));
      if (!apply_what_if(std::span{&what_if, 1}, how.assumptions).ok()) continue;
      const double saved = unchanged - answer(what_if, how).value_or(unchanged);
      most = std::max(most, saved);
      if (resource == named) of_named = saved;
    }
    check("verdict", most - of_named > kTie * unchanged, std::string{binding->bound_by()}, of_named, most);
  }
  void keep_order(const std::string& what_if, double us, double at_most, double at_least) {
    check("monotonic", us > at_most * (1 + kRounding), what_if, us, at_most);
    check("monotonic", us < at_least * (1 - kRounding), what_if, us, at_least);
  }
  void check(std::string_view law, bool broken, const std::string& what_if, double us, double bound_us) {
    ++laws_.checked[std::string{law}];
    if (broken) laws_.broken.push_back({std::string{law}, set_, what_if, us * 1e-3, bound_us * 1e-3});
  }

  const RecordedProgram& recorded_;
  std::string set_;
  WhatIfLaws& laws_;
  bool is_far_off_ = false;
};

void add(WhatIfLaws one, WhatIfLaws& laws) {
  laws.steps += one.steps;
  laws.answers += one.answers;
  laws.far_off += one.far_off;
  for (const auto& [law, n] : one.checked) laws.checked[law] += n;
  std::move(one.broken.begin(), one.broken.end(), std::back_inserter(laws.broken));
  std::move(one.refused.begin(), one.refused.end(), std::back_inserter(laws.refused));
  std::move(one.remainders.begin(), one.remainders.end(), std::back_inserter(laws.remainders));
}

// Compares the prediction for the typical step with the time from step to step.
void check_cadence(const TraceSet& set, const std::string& name, WhatIfLaws& laws) {
  const RecordedRank& rank = set.ranks.front();
  std::vector<const CpuOp*> steps;
  for (const CpuOp& op : rank.cpu_ops) {
    const std::optional<std::int64_t> number = profiler_step_number(rank.names.text(op.name));
    if (op.kind == CpuOp::Kind::step && number &&
        std::ranges::find(rank.special_steps, *number, &SpecialStep::number) == rank.special_steps.end())
      steps.push_back(&op);
  }
  if (steps.size() < kCadenceSteps) return;
  const auto [shortest, longest] = std::ranges::minmax(steps, {}, &CpuOp::duration);
  if (static_cast<double>(longest->duration.count()) >
      (1 + kCadenceSpread) * static_cast<double>(shortest->duration.count()))
    return;
  const double cadence_us = static_cast<double>((steps.back()->start - steps.front()->start).count()) * 1e-3 /
                            static_cast<double>(steps.size() - 1);
  // Excludes sequences with skipped steps in between.
  if (cadence_us > (1 + kCadenceSpread) * static_cast<double>(longest->duration.count()) * 1e-3) return;
  const Result<TracePrediction> predicted = predict_trace(set.inputs(), {});
  if (!predicted.ok()) return;
  const double us = predicted->step.time.value();
  laws.cadence_errors.push_back(us / cadence_us - 1);
  ++laws.checked["cadence"];
  if (std::abs(us / cadence_us - 1) > kCadenceWithin)
    laws.broken.push_back({"cadence", name, "as recorded", us * 1e-3, cadence_us * 1e-3});
}

void check_mutants(const TraceSet& set, const std::string& name, unsigned threads, WhatIfLaws& laws) {
  const std::span<const TraceMutation> mutations = trace_mutations();
  std::vector<WhatIfLaws> of_mutant(mutations.size());
  (void)parallel_for(mutations.size(), threads, [&](std::size_t i) -> Status {
    if (!mutations[i].fits(set.ranks)) return Ok{};
    const std::string mutant = fmt::format("{}, {}", name, mutations[i].name);
    TraceSet changed = set;
    mutations[i].apply(changed.ranks);
    const Result<RecordedProgram> recorded = rebuild_program(changed.inputs());
    if (recorded.ok())
      check_what_if_laws(*recorded, mutant, of_mutant[i]);
    else
      of_mutant[i].refused.push_back(fmt::format("{}: {}", mutant, message_without_file(recorded.error())));
    return Ok{};
  });
  for (WhatIfLaws& one : of_mutant) {
    laws.mutants += one.steps;
    add(std::move(one), laws);
  }
}

void check_profiler_set(const TraceSet& set, const std::string& name, unsigned threads, WhatIfLaws& laws) {
  std::vector<std::optional<std::int64_t>> steps;
  for (const std::int64_t step : common_steps(set)) steps.emplace_back(step);
  if (steps.empty()) steps.emplace_back();  // the whole trace
  std::vector<RecordedInput> inputs = set.inputs();
  for (RecordedInput& input : inputs) input.index = index_trace(input);
  std::vector<WhatIfLaws> of_step(steps.size());
  const Status done = parallel_for(steps.size(), threads, [&](std::size_t i) -> Status {
    const std::string step_name = steps[i] ? fmt::format("{} step {}", name, *steps[i]) : name;
    const Result<RecordedProgram> recorded = rebuild_program(inputs, {.step = steps[i]});
    if (recorded.ok())
      check_what_if_laws(*recorded, step_name, of_step[i]);
    else
      of_step[i].refused.push_back(fmt::format("{}: {}", step_name, message_without_file(recorded.error())));
    return Ok{};
  });
  if (!done.ok()) laws.refused.push_back(fmt::format("{}: {}", name, message_without_file(done.error())));
  for (WhatIfLaws& one : of_step) add(std::move(one), laws);
  check_cadence(set, name, laws);
}

// Checks traces of the other kinds, with one job in each folder.
void check_other_kind(const TraceListing& listing, const std::string& name, unsigned threads,
                      WhatIfLaws& laws) {
  const SourceKind& kind = source_kind(listing.kind());
  const Result<std::unique_ptr<RecordedSource>> source =
      kind.open(listing, {.ranks = {}, .threads = threads});
  if (!source.ok()) {
    laws.refused.push_back(fmt::format("{}: {}", name, message_without_file(source.error())));
    return;
  }
  const Result<RecordedProgram> recorded = (*source)->program({});
  if (recorded.ok())
    check_what_if_laws(*recorded, name, laws);
  else
    laws.refused.push_back(fmt::format("{}: {}", name, message_without_file(recorded.error())));
}

}  // namespace

std::size_t WhatIfLaws::count(std::string_view law) const {
  return static_cast<std::size_t>(
      std::count_if(broken.begin(), broken.end(), [&](const BrokenLaw& one) { return one.law == law; }));
}

void check_what_if_laws(const RecordedProgram& recorded, const std::string& set, WhatIfLaws& laws) {
  LawCheck{recorded, set, laws}.run();
}

Result<WhatIfLaws> check_what_if_laws(const fs::path& data, const LawOptions& options) {
  const unsigned threads = options.threads;
  STEPCAST_ASSIGN(const std::vector<fs::path> folders, folders_of(data));
  WhatIfLaws laws;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> place{folder};
    const Result<TraceListing> listing = list_traces(place);
    if (!listing.ok()) {
      if (folder == data) return listing.error();
      continue;
    }
    if (listing->files().empty()) continue;
    if (listing->kind() != SourceKindId::profiler) {
      if (options.recorded) check_other_kind(*listing, relative_name(folder, data), threads, laws);
      continue;
    }
    std::vector<TraceListing::Other> not_read;
    for (const TraceSet& set : read_trace_sets(*listing, {.ranks = {}, .threads = threads}, not_read)) {
      const std::string name = relative_name(set.name, data);
      if (options.recorded) check_profiler_set(set, name, threads, laws);
      if (options.mutants) check_mutants(set, name, threads, laws);
    }
    for (const TraceListing::Other& other : not_read)
      laws.refused.push_back(fmt::format("{}: {}", relative_name(other.file, data), other.why));
  }
  if (laws.steps == 0) return Error::at(data.string(), "no trace here or in a folder below");
  return laws;
}

std::string what_if_laws_text(const WhatIfLaws& laws) {
  std::string text = fmt::format("{} steps, {} of them of mutants, {} answers\n\n  {:<12}  checked  broken\n",
                                 laws.steps, laws.mutants, laws.answers, "law");
  for (const std::string_view law : kLaws) {
    const auto checked = laws.checked.find(std::string{law});
    text += fmt::format("  {:<12}  {:>7}  {:>6}\n", law, checked == laws.checked.end() ? 0 : checked->second,
                        laws.count(law));
  }
  if (!laws.remainders.empty())
    text += fmt::format("\nwithout any duration a step takes {:.1f} % of itself (median; at most {:.1f} %)\n",
                        100 * median(laws.remainders), 100 * std::ranges::max(laws.remainders));
  if (!laws.cadence_errors.empty()) {
    std::vector<double> off;
    for (const double error : laws.cadence_errors) off.push_back(std::abs(error));
    text += fmt::format(
        "against the time from step to step answers are off by {:.2f} % (median of {}; at most {:.1f} %)\n",
        100 * median(off), off.size(), 100 * std::ranges::max(off));
  }
  if (laws.far_off > 0)
    text += fmt::format("{} steps are replayed too far off their record for a what-if\n", laws.far_off);
  if (!laws.broken.empty()) text += "\n";
  for (const BrokenLaw& one : laws.broken) {
    text += fmt::format("  {}: {}, {}: {:.4f} ms against {:.4f}\n", one.law, one.set, one.what_if,
                        one.step_ms, one.bound_ms);
  }
  if (!laws.refused.empty())
    text +=
        fmt::format("\n{} answers were refused, the first: {}\n", laws.refused.size(), laws.refused.front());
  return text;
}

}  // namespace stepcast
