#include "curve_effect.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/formats/resolve_job.h"
#include "stepcast/predict/step_model.h"

namespace stepcast::cli {
namespace {

struct CurveQuestion {
  Job job;
  std::string flags;
};

// Layouts with collectives over `n_gpus` GPUs.
std::vector<CurveQuestion> curve_questions(std::int64_t n_gpus) {
  constexpr std::int64_t kMostTensorParallel = 8;
  using S = JobSettings;
  std::vector<CurveQuestion> out;
  const auto add = [&](std::string model, const std::string& flags, const auto& set) {
    CurveQuestion q{{.model = std::move(model), .n_gpus = n_gpus}, {}};
    q.job.settings.micro_batch_sequences = 1;
    q.job.settings.global_batch_sequences = 2 * n_gpus;
    set(q.job.settings);
    q.flags = fmt::format("--model {} --gpus {} --mbs 1 --gbs {} {}", q.job.model, n_gpus, 2 * n_gpus, flags);
    out.push_back(std::move(q));
  };
  if (n_gpus <= kMostTensorParallel) {
    add("llama-3-8b", fmt::format("--tp {}", n_gpus), [&](S& s) { s.tensor = n_gpus; });
    add("llama-3-8b", fmt::format("--tp {} --sp", n_gpus), [&](S& s) {
      s.tensor = n_gpus;
      s.sequence_parallel = true;
    });
    add("mixtral-8x7b", fmt::format("--ep {}", n_gpus), [&](S& s) { s.expert = n_gpus; });
  }
  add("llama-3-8b", "--tp 1", [](S& s) { s.tensor = 1; });
  add("llama-3-8b", "--zero 1", [](S& s) { s.sharding = Sharding::zero1; });
  add("llama-3-8b", "--zero 3", [](S& s) { s.sharding = Sharding::zero3; });
  if (n_gpus % 2 == 0) add("llama-3-8b", "--pp 2", [](S& s) { s.pipeline = 2; });
  return out;
}

// The step time; nothing if the layout does not fit the platform.
std::optional<double> step_ms(const StepModel& steps, const CurveQuestion& question) {
  const Result<ResolvedJob> job = resolve(question.job);
  if (!job) return std::nullopt;
  const Result<StepPrediction> step = steps.predict(job->model, job->layout);
  if (!step) return std::nullopt;
  return step->step.time.value() * 1e-3;
}

std::string why_unused(const CollectiveCurve& curve, const Node& node) {
  if (curve.n_nodes > 1 && curve.n_ranks <= node.gpus_per_node) {
    return fmt::format(
        "a node of the platform has {} GPUs, so {} GPUs are inside one node; if these hosts share one node, "
        "give the "
        "measurements {} GPUs per node",
        node.gpus_per_node, curve.n_ranks, curve.n_ranks);
  }
  return "no layout that was tried has this collective on such a group";
}

}  // namespace

CurveEffects effects_of_curves(const Platform& before, const Platform& after) {
  constexpr double kChange = 1e-9;
  CurveEffects effects;
  const StepModel base{before};
  double most = kChange;
  std::map<std::string, double> base_ms;  // by flags
  for (const CollectiveCurve& curve : after.curves) {
    if (std::ranges::find(before.curves, curve) != before.curves.end()) continue;
    Platform one = before;
    std::erase_if(one.curves, [&](const CollectiveCurve& old) {  // the curves that `after` has replaced
      return std::ranges::find(after.curves, old) == after.curves.end() && old.collective == curve.collective;
    });
    one.set(curve);
    const StepModel measured{one};
    bool is_used = false;
    for (const CurveQuestion& question : curve_questions(curve.n_ranks)) {
      if (!base_ms.contains(question.flags)) base_ms[question.flags] = step_ms(base, question).value_or(0);
      const double was = base_ms[question.flags], is = step_ms(measured, question).value_or(0);
      if (was <= 0 || is <= 0 || std::abs(is / was - 1) <= kChange) continue;
      is_used = true;
      if (std::abs(is / was - 1) <= most) continue;
      most = std::abs(is / was - 1);
      effects.largest = fmt::format("{}: step {:.1f} ms before, {:.1f} ms with {}", question.flags, was, is,
                                    to_string(curve.collective));
    }
    if (is_used) continue;
    std::string text = fmt::format("{} of {} x {} GPUs: {}", to_string(curve.collective), curve.n_nodes,
                                   curve.gpus_per_node, why_unused(curve, before.node));
    if (std::ranges::find(effects.unused, text) == effects.unused.end())
      effects.unused.push_back(std::move(text));
  }
  return effects;
}

}  // namespace stepcast::cli
