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
#include "stepcast/predict/replay.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/recorded_source.h"
#include "stepcast/sources/trace_set.h"

#include "lab/recorded_job.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kLaws = {"physical", "monotonic", "overlap", "verdict",
                                                   "unchanged"};
constexpr std::array<std::string_view, 5> kParts = {"host", "gpu", "compute", "memory_bound",
                                                    "communication"};
constexpr std::array<double, 7> kSpeeds = {0.01, 0.5, 0.99, 1.01, 2, 8, 100};
// Sums of doubles in another order.
constexpr double kRounding = 1e-7;
// Of the step: resources that save as much as each other.
constexpr double kTie = 0.01;

// The longest work of one lane of GPU work that the step launched, in microseconds.
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
    if (const Result<ReplayScores> scores = score_replay(recorded_, Costs{recorded_.program}); scores.ok()) {
      const double replayed = scores->longest_step_us();
      check("unchanged", std::abs(*unchanged - replayed) > kRounding * replayed, "as recorded", *unchanged,
            replayed);
    }
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
  // What the verdict names saves as much as the what-if that saves most.
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
};

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
  for (WhatIfLaws& one : of_step) {
    laws.steps += one.steps;
    laws.answers += one.answers;
    for (const auto& [law, n] : one.checked) laws.checked[law] += n;
    std::move(one.broken.begin(), one.broken.end(), std::back_inserter(laws.broken));
    std::move(one.refused.begin(), one.refused.end(), std::back_inserter(laws.refused));
  }
}

// Traces of the other kinds, which are one job a folder.
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

Result<WhatIfLaws> check_what_if_laws(const fs::path& data, unsigned threads) {
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
      check_other_kind(*listing, relative_name(folder, data), threads, laws);
      continue;
    }
    std::vector<TraceListing::Other> not_read;
    for (const TraceSet& set : read_trace_sets(*listing, {.ranks = {}, .threads = threads}, not_read))
      check_profiler_set(set, relative_name(set.name, data), threads, laws);
    for (const TraceListing::Other& other : not_read)
      laws.refused.push_back(fmt::format("{}: {}", relative_name(other.file, data), other.why));
  }
  if (laws.steps == 0) return Error::at(data.string(), "no trace here or in a folder below");
  return laws;
}

std::string what_if_laws_text(const WhatIfLaws& laws) {
  std::string text =
      fmt::format("{} steps, {} answers\n\n  {:<12}  checked  broken\n", laws.steps, laws.answers, "law");
  for (const std::string_view law : kLaws) {
    const auto checked = laws.checked.find(std::string{law});
    text += fmt::format("  {:<12}  {:>7}  {:>6}\n", law, checked == laws.checked.end() ? 0 : checked->second,
                        laws.count(law));
  }
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
