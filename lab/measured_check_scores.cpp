#include "lab/measured_check_scores.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/analyze/measured_check.h"

namespace stepcast {
namespace {

// A wrong description of the job, and the cause that a correct check names. Empty: not applicable to this job.
struct Falsified {
  Layout layout;
  std::string_view cause;  // a part of MeasuredCause::what
};
constexpr std::size_t kKinds = 6;

Falsified falsified(const Layout& layout, std::size_t kind) {
  Falsified job{layout, ""};
  Layout& l = job.layout;
  switch (kind) {
    case 0:
      if (l.layer.recompute.kind == Recompute::full) {
        l.layer.recompute = {};
        job.cause = "all activations are recomputed";
      } else {
        job.cause = l.layer.recompute.kind == Recompute::none ? "no activation" : "selectively";
        l.layer.recompute = {.kind = Recompute::full};
      }
      break;
    case 1:
      l.batch.global_batch_sequences *= 2;
      job.cause = "global batch is half";
      break;
    case 2:
      if (l.batch.global_batch_sequences % 2 != 0) break;
      l.batch.global_batch_sequences /= 2;
      job.cause = "global batch is twice";
      break;
    case 3:
      l.batch.seq_len_tokens *= 2;
      job.cause = "sequences are half";
      break;
    case 4: {
      Precision& precision = l.layer.precision;
      const bool is_fp8 = precision.compute == DType::fp8;
      if (!is_fp8 && precision.compute != DType::bf16) break;
      job.cause = is_fp8 ? "GEMMs run in fp8" : "GEMMs run in bf16";
      precision = precision_for(is_fp8 ? DType::bf16 : DType::fp8);
      break;
    }
    default:  // falsified: four times as many samples for each GPU
      l.batch.global_batch_sequences *= 4;
      job.cause = "global batch is a quarter";
  }
  return job;
}

struct Counts {
  double normal = 0, normal_right = 0, falsified = 0, falsified_right = 0, first = 0, named = 0;
};

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

TestScore score_measured_checks(const std::vector<const LlmRun*>& runs, RunPlatforms& platforms) {
  constexpr std::size_t kMost = 24;
  std::map<std::string, std::vector<const LlmRun*>> groups;
  for (const LlmRun* run : runs) groups[run->set + " " + run->gpu].push_back(run);
  TestScore result{.test = "measured_check", .protocol = "shipped", .unit = "ms", .relative = false};
  for (const auto& [name, members] : groups) {
    SetScore set{.set = name};
    Counts n;
    const std::size_t stride = (members.size() + kMost - 1) / kMost;
    for (std::size_t i = 0; i < members.size(); i += stride) {
      const LlmRun& run = *members[i];
      const Result<StepModel*> steps = platforms.model_for(run);
      if (!steps) continue;
      const Result<MeasuredCheck> truth = check_measured(**steps, run.model, run.layout, run.iter_time_ms);
      if (!truth) continue;
      ++n.normal;
      if (truth->verdict == "normal") ++n.normal_right;
      Falsified wrong = falsified(run.layout, i / stride % kKinds);
      if (wrong.cause.empty()) wrong = falsified(run.layout, 1);
      const Result<MeasuredCheck> said = check_measured(**steps, run.model, wrong.layout, run.iter_time_ms);
      if (!said) continue;
      ++n.falsified;
      set.rows.push_back({.row = fmt::format("line {} {}: {}", run.line, run.model.name, wrong.cause),
                          .measured = run.iter_time_ms,
                          .predicted = said->forecast_ms});
      if (said->verdict == "normal") continue;
      ++n.falsified_right;
      const auto is_right = [&](const MeasuredCause& cause) {
        return cause.what.find(wrong.cause) != std::string::npos;
      };
      if (!said->causes.empty() && is_right(said->causes.front())) ++n.first;
      if (std::ranges::any_of(said->causes, is_right)) ++n.named;
    }
    set.extras = {{"right_n", n.normal_right + n.falsified_right, ExtraMetric::Over::sum},
                  {"normal_right", percent(n.normal_right, n.normal)},
                  {"falsified_right", percent(n.falsified_right, n.falsified)},
                  {"first_cause_right", percent(n.first, n.falsified_right)},
                  {"cause_right", percent(n.named, n.falsified_right)},
                  {"steps_n", n.normal + n.falsified, ExtraMetric::Over::sum}};
    result.sets.push_back(std::move(set));
  }
  result.finish();
  return result;
}

}  // namespace stepcast
