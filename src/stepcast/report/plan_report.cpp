#include "stepcast/report/plan_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/units.h"
#include "stepcast/base/version.h"
#include "stepcast/describe/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr auto kLeft = TextTable::Align::left;
constexpr std::size_t kMostReasons = 12;

std::string count(std::uint64_t n) { return table_count(n); }

// Where the time goes, of the whole, in percent: computation, communication, bubble, the rest.
struct Parts {
  double computation, communication, bubble, rest;
};
Parts parts_of(const StepPrediction& step) {
  const StepShares& s = step.shares;
  const double whole = std::max(1e-9, s.total_us()) / 100;
  return {s.computation_us() / whole, s.exposed_communication_us() / whole, s.bubble_us / whole,
          (s.host_us + s.optimizer_us + s.fixed_us) / whole};
}

double tokens_per_gpu(const StepPrediction& step) {
  return step.tokens_per_second() / static_cast<double>(step.n_gpus);
}

std::string space_text(const LayoutPlan& plan) {
  const SearchedLayouts& found = plan.found;
  std::string text = fmt::format("Space: {} layouts\n", count(plan.space.size()));
  for (const auto& [name, list] : plan.space.lines()) text += fmt::format("  {:<19}{}\n", name, list);
  text += fmt::format(
      "{} cannot run, {} are another one of them, {} do not fit {:.1f} GiB, {} were priced: all that are "
      "left\n",
      count(found.n_rejected), count(found.n_same), count(found.n_too_large), plan.memory.value() / kGiB,
      count(found.priced.size()));
  return text;
}

std::string reasons_text(const SearchedLayouts& found) {
  TextTable table{{{"layouts"}, {"why not", kLeft}, {"for example", kLeft}, {"nearest that runs", kLeft}}};
  std::size_t n = 0, left = 0;
  const auto add = [&](const std::vector<LayoutRejection>& reasons) {
    for (const LayoutRejection& r : reasons) {
      if (n++ < kMostReasons) {
        table.row({count(r.count), shorten(r.reason, 100), shorten(r.example, 90), shorten(r.cure, 80)});
      } else {
        ++left;
      }
    }
  };
  add(found.too_large);
  add(found.rejections);
  add(found.same);
  std::string text = table.empty() ? std::string{} : "\n" + table.text();
  if (left > 0) text += fmt::format("and {} more reasons (--json)\n", left);
  return text;
}

std::string layouts_text(const LayoutPlan& plan, std::size_t top) {
  TextTable table{{{"#"},
                   {"layout", kLeft},
                   {"step\nms"},
                   {"p10\nms"},
                   {"p90\nms"},
                   {"tokens/s\nper GPU"},
                   {"MFU\n%"},
                   {"memory\nGiB"},
                   {"compute\n%"},
                   {"transfers\n%"},
                   {"bubble\n%"},
                   {"rest\n%"},
                   {"", kLeft}}};
  const std::vector<RankedLayout>& all = plan.ranking.layouts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= top && i != plan.ranking.chosen) continue;
    const RankedLayout& l = all[i];
    const Parts parts = parts_of(l.step);
    const auto mfu = l.step.model_flops_utilization();
    std::string mark = l.alike ? "~" : "";
    if (l.memory.verdict == MemoryVerdict::tight) mark += " tight";
    if (i == plan.ranking.chosen) mark += " chosen";
    table.row({std::to_string(i + 1), to_string(l.point), table_number(l.step_ms(), 1),
               table_number(l.step.step.p10.value() * 1e-3, 1),
               table_number(l.step.step.p90.value() * 1e-3, 1), table_number(tokens_per_gpu(l.step), 0),
               mfu ? table_number(100 * *mfu, 1) : "-", table_number(l.memory.peak().value() / kGiB, 1),
               table_number(parts.computation, 1), table_number(parts.communication, 1),
               table_number(parts.bubble, 1), table_number(parts.rest, 1), mark});
  }
  return table.text();
}

std::string choice_text(const LayoutPlan& plan, const PlanSubject& subject) {
  const LayoutRanking& ranking = plan.ranking;
  const RankedLayout& first = ranking.layouts.front();
  const RankedLayout& chosen = ranking.layouts[ranking.chosen];
  std::string text;
  if (ranking.n_alike == 1) {
    text += "~ The fastest is faster than every other layout beyond the uncertainty of the forecast.\n";
  } else {
    text += fmt::format(
        "~ {}{} layouts cannot be told from the fastest: errors common to both cancel, and the rest of the\n "
        " difference is within its uncertainty.\n",
        ranking.more_alike ? "More than " : "", ranking.n_alike);
  }
  text += fmt::format("Chosen: #{}, {}", ranking.chosen + 1, to_string(chosen.point));
  if (!plan.jittered.empty()) {
    text += ": the steadiest.\n";
  } else if (ranking.chosen == 0) {
    text += ranking.n_alike > 1 ? ": the fastest, and none of the others is plainer with as safe a memory.\n"
                                : ".\n";
  } else {
    text += fmt::format(
        ": {:.1f} % behind #1 by the forecast, and {}.\n",
        100 * chosen.behind_us / first.step.step.time.value(),
        first.memory.verdict == MemoryVerdict::tight && chosen.memory.verdict != MemoryVerdict::tight
            ? "with memory to spare"
        : chosen.memory.margin() > first.memory.margin() ? "plainer or with more memory to spare"
                                                         : "plainer");
  }
  const StageMemory& m = chosen.memory.stages[chosen.memory.worst_stage];
  text += fmt::format(
      "Memory of stage {}: {:.1f} GiB of {:.1f}: weights {:.1f}, gradients {:.1f}, optimizer {:.1f}, "
      "activations "
      "{:.1f}, working {:.1f}, rest {:.1f}\n",
      chosen.memory.worst_stage, m.total().value() / kGiB, chosen.memory.available.value() / kGiB,
      m.weights.value() / kGiB, m.gradients.value() / kGiB, m.optimizer.value() / kGiB,
      m.activations.value() / kGiB, m.working.value() / kGiB,
      (m.communication + m.context + m.reserve).value() / kGiB);
  const auto megatron = megatron_text(chosen.point, chosen.layout, plan.prototypes);
  const auto torchtitan = torchtitan_text(chosen.layout, plan.prototypes.model());
  const auto deepspeed = deepspeed_text(chosen.layout);
  const Framework framework = plan.prototypes.framework();
  if (framework == Framework::torchtitan && torchtitan) {
    text += fmt::format("\nTorchTitan:\n{}", *torchtitan);
  } else if (framework == Framework::deepspeed && deepspeed) {
    text += fmt::format("\nDeepSpeed:\n{}", *deepspeed);
  } else if (megatron) {
    text += fmt::format("\nMegatron-LM ({} --platform {} understands them, too):\n  {}\n",
                        "`stepcast predict`", subject.platform, *megatron);
  } else {
    text += "\nNo flags of Megatron-LM say this layout.\n";
  }
  return text;
}

// How the layouts stand GPUs that differ, the steadiest first.
std::string jitter_text(const LayoutPlan& plan, const PlanSubject& subject) {
  if (plan.jittered.empty()) return {};
  std::vector<JitteredLayout> steady = plan.jittered;
  std::stable_sort(steady.begin(), steady.end(),
                   [](const JitteredLayout& a, const JitteredLayout& b) { return a.p90_ms < b.p90_ms; });
  TextTable table{
      {{"#"}, {"layout", kLeft}, {"mean\nms"}, {"p50\nms"}, {"p90\nms"}, {"slower\n%"}, {"", kLeft}}};
  for (std::size_t i = 0; i < std::min(subject.top, steady.size()); ++i) {
    const JitteredLayout& j = steady[i];
    const RankedLayout& layout = plan.ranking.layouts[j.of];
    table.row({std::to_string(j.of + 1), to_string(layout.point), table_number(j.mean_ms, 1),
               table_number(j.p50_ms, 1), table_number(j.p90_ms, 1), table_number(100 * (j.slowdown - 1), 1),
               fmt::format("{}{}", layout.alike ? "~" : "", j.of == plan.ranking.chosen ? " chosen" : "")});
  }
  return fmt::format(
      "\nWith GPUs that differ from step to step ({} scenarios), by what nine of ten steps take at most; "
      "chosen is the "
      "first\nof those that cannot be told from the fastest without, and whose memory is not tight:\n{}",
      JitterOptions{}.scenarios, table.text());
}

// Time against memory to spare.
std::string pareto_text(const LayoutPlan& plan) {
  std::vector<PricedLayout> front = pareto_of(plan.found.priced);
  // Nobody pays more than twice the time for room.
  std::erase_if(front,
                [&](const PricedLayout& l) { return l.step_us > 2 * plan.found.priced.front().step_us; });
  if (front.size() < 2) return {};
  constexpr std::size_t kMost = 8;
  TextTable table{{{"step\nms"}, {"GiB to\nspare"}, {"layout", kLeft}}};
  // The fastest, the smallest, and of those between as many as there is room for, evenly.
  const std::size_t n = std::min(kMost, front.size());
  for (std::size_t i = 0; i < n; ++i) {
    const PricedLayout& layout = front[i * (front.size() - 1) / (n - 1)];
    table.row({table_number(layout.step_us * 1e-3, 1),
               table_number((plan.memory.value() - layout.peak_bytes) / kGiB, 1), to_string(layout.point)});
  }
  return fmt::format("\nTime against memory: no layout is faster and leaves more; {} of {}\n{}", n,
                     front.size(), table.text());
}

constexpr std::size_t kMostRefinedShown = 5;

std::string join(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, "; ")); }

// What was tried on the best layouts and made them faster.
std::string refined_text(const LayoutPlan& plan) {
  if (plan.refined.empty()) return {};
  TextTable table{{{"#"}, {"step\nms"}, {"before\nms"}, {"memory\nGiB"}, {"changed", kLeft}}};
  for (std::size_t i = 0; i < std::min(kMostRefinedShown, plan.refined.size()); ++i) {
    const RefinedLayout& r = plan.refined[i];
    table.row({std::to_string(r.of + 1), table_number(r.step.step.time.value() * 1e-3, 1),
               table_number(plan.ranking.layouts[r.of].step_ms(), 1),
               table_number(r.memory.peak().value() / kGiB, 1), shorten(join(r.changes), 150)});
  }
  std::string text = fmt::format(
      "\nRefined: uneven stages, recomputation of some layers, overlap inside layers; {} of the best {} came "
      "out "
      "faster\n",
      plan.refined.size(), std::min(kMostRefined, plan.ranking.layouts.size()));
  text += table.text();
  const RefinedLayout& best = plan.refined.front();
  if (best.step.step.time.value() * 1e-3 >= plan.ranking.layouts[plan.ranking.chosen].step_ms()) {
    return text + "none of them is faster than the layout chosen\n";
  }
  if (plan.prototypes.framework() == Framework::megatron || plan.prototypes.framework() == Framework::nemo)
    text += fmt::format("Megatron-LM, #{} refined:\n  {}\n", best.of + 1, megatron_flags_of(best.settings));
  return text;
}

void write_refined(JsonWriter& json, const LayoutPlan& plan) {
  json.key("refined").begin_array();
  for (const RefinedLayout& r : plan.refined) {
    json.begin_object();
    json.field("of", r.of)
        .field("step_time_ms", r.step.step.time.value() * 1e-3)
        .field("step_time_p10_ms", r.step.step.p10.value() * 1e-3)
        .field("step_time_p90_ms", r.step.step.p90.value() * 1e-3)
        .field("peak_memory_GiB", r.memory.peak().value() / kGiB);
    json.key("changes").begin_array();
    for (const std::string& change : r.changes) json.value(change);
    json.end_array();
    json.key("layers_per_stage").begin_array();
    for (const std::int64_t n : r.layout.pipeline.layers_per_stage) json.value(n);
    json.end_array();
    json.field("megatron_flags", megatron_flags_of(r.settings));
    json.end_object();
  }
  json.end_array();
}

// Better layouts near the one that runs.
std::string now_text(const LayoutNow& now) {
  std::string text = fmt::format("\nNow: {}, ", to_string(now.point));
  if (!now.why_not.empty()) return text + "not priced: " + now.why_not + "\n";
  text += fmt::format("{:.1f} ms by the forecast\n", now.step_us * 1e-3);
  if (now.nearby.empty()) return text + "No layout of the space is faster.\n";
  TextTable table{{{"changes"}, {"step\nms"}, {"of now\n%"}, {"memory\nGiB"}, {"which", kLeft}}};
  for (const NearbyLayout& n : now.nearby) {
    table.row({std::to_string(n.changes), table_number(n.layout.step_us * 1e-3, 1),
               table_number(100 * n.layout.step_us / now.step_us, 1),
               table_number(n.layout.peak_bytes / kGiB, 1), difference(now.point, n.layout.point)});
  }
  return text + table.text();
}

void write_rejections(JsonWriter& json, std::string_view name, const std::vector<LayoutRejection>& all) {
  json.key(name).begin_array();
  for (const LayoutRejection& r : all) {
    json.begin_object();
    json.field("layouts", r.count)
        .field("reason", r.reason)
        .field("example", r.example)
        .field("cure", r.cure);
    json.end_object();
  }
  json.end_array();
}

void write_point(JsonWriter& json, const LayoutPoint& p) {
  json.field("tensor_parallel", p.tensor)
      .field("pipeline_parallel", p.pipeline)
      .field("virtual_stages", p.virtual_stages)
      .field("schedule", to_string(p.schedule))
      .field("context_parallel", p.context)
      .field("data_parallel", p.data)
      .field("expert_parallel", p.expert)
      .field("expert_tensor_parallel", p.expert_tensor == 0 ? p.tensor : p.expert_tensor)
      .field("micro_batch_sequences", p.micro_batch)
      .field("sharding", to_string(p.sharding))
      .field("recompute", to_string(p.recompute))
      .field("sequence_parallel", p.sequence_parallel)
      .field("dtype", to_string(p.dtype));
}

void write_priced(JsonWriter& json, const LayoutPlan& plan, const PricedLayout& l) {
  json.begin_object().field("layout", to_string(l.point));
  write_point(json, l.point);
  json.field("step_time_ms", l.step_us * 1e-3)
      .field("peak_memory_GiB", l.peak_bytes / kGiB)
      .field("memory_margin_GiB", (plan.memory.value() - l.peak_bytes) / kGiB);
  json.end_object();
}

void write_now(JsonWriter& json, const LayoutPlan& plan, const LayoutNow& now) {
  json.key("now").begin_object().field("layout", to_string(now.point));
  write_point(json, now.point);
  json.key("step_time_ms");
  now.why_not.empty() ? json.value(now.step_us * 1e-3) : json.null();
  json.field("why_no_time", now.why_not.empty() ? std::optional<std::string>{} : now.why_not);
  json.key("nearby").begin_array();
  for (const NearbyLayout& n : now.nearby) {
    json.begin_object().field("changes", n.changes).field("which", difference(now.point, n.layout.point));
    json.key("becomes");
    write_priced(json, plan, n.layout);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_layout(JsonWriter& json, const LayoutPlan& plan, const RankedLayout& l) {
  json.begin_object();
  json.field("layout", to_string(l.point));
  write_point(json, l.point);
  json.field("step_time_ms", l.step_ms())
      .field("step_time_p10_ms", l.step.step.p10.value() * 1e-3)
      .field("step_time_p90_ms", l.step.step.p90.value() * 1e-3)
      .field("behind_fastest_ms", l.behind_us * 1e-3)
      .field("uncertainty_of_difference_ms", l.uncertain_us * 1e-3)
      .field("cannot_be_told_from_fastest", l.alike)
      .field("tokens_per_s_per_gpu", tokens_per_gpu(l.step));
  if (const auto mfu = l.step.model_flops_utilization()) json.field("mfu", *mfu);
  const Parts parts = parts_of(l.step);
  json.key("percent_of_step").begin_object();
  json.field("computation", parts.computation)
      .field("exposed_communication", parts.communication)
      .field("bubble", parts.bubble)
      .field("rest", parts.rest);
  json.end_object();
  json.field("peak_memory_GiB", l.memory.peak().value() / kGiB)
      .field("memory_margin_GiB", l.memory.margin().value() / kGiB)
      .field("worst_stage", l.memory.worst_stage)
      .field("memory_verdict", to_string(l.memory.verdict));
  if (const auto text = megatron_text(l.point, l.layout, plan.prototypes))
    json.field("megatron_flags", *text);
  if (const auto text = torchtitan_text(l.layout, plan.prototypes.model()))
    json.field("torchtitan_toml", *text);
  if (const auto text = deepspeed_text(l.layout)) json.field("deepspeed_json", *text);
  json.end_object();
}

}  // namespace

std::string plan_text(const LayoutPlan& plan, const PlanSubject& subject) {
  std::string text =
      fmt::format("{} on {} x {} ({}): {} sequences of {} tokens per step\n\n", plan.prototypes.model().name,
                  count(static_cast<std::uint64_t>(plan.space.n_gpus)), subject.gpu, subject.platform,
                  plan.prototypes.global_batch(), plan.prototypes.seq_len());
  text += space_text(plan);
  text += reasons_text(plan.found);
  text += "\n" + layouts_text(plan, subject.top) + "\n" + choice_text(plan, subject);
  text += jitter_text(plan, subject);
  text += pareto_text(plan);
  text += refined_text(plan);
  if (!plan.notes.empty()) text += "\n";
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  if (subject.now) text += now_text(*subject.now);
  return text;
}

std::string plan_json(const LayoutPlan& plan, const PlanSubject& subject) {
  const SearchedLayouts& found = plan.found;
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.plan/1").field("version", version());
  json.field("model", plan.prototypes.model().name)
      .field("platform", subject.platform)
      .field("gpu", subject.gpu)
      .field("n_gpus", plan.space.n_gpus)
      .field("global_batch_sequences", plan.prototypes.global_batch())
      .field("seq_len_tokens", plan.prototypes.seq_len())
      .field("memory_GiB", plan.memory.value() / kGiB);
  json.key("space").begin_object();
  for (const auto& [name, list] : plan.space.lines()) json.field(name, list);
  json.end_object();
  json.key("layouts_counted").begin_object();
  json.field("all", plan.space.size())
      .field("cannot_run", found.n_rejected)
      .field("same_as_another", found.n_same)
      .field("too_large", found.n_too_large)
      .field("priced", found.priced.size());
  json.end_object();
  write_rejections(json, "cannot_run", found.rejections);
  write_rejections(json, "same_as_another", found.same);
  write_rejections(json, "too_large", found.too_large);
  json.field("n_cannot_be_told_apart", plan.ranking.n_alike).field("chosen", plan.ranking.chosen);
  json.key("layouts").begin_array();
  for (const RankedLayout& layout : plan.ranking.layouts) write_layout(json, plan, layout);
  json.end_array();
  write_refined(json, plan);
  if (subject.now) write_now(json, plan, *subject.now);
  json.key("pareto").begin_array();
  for (const PricedLayout& layout : pareto_of(plan.found.priced)) write_priced(json, plan, layout);
  json.end_array();
  if (!plan.jittered.empty()) {
    json.key("jitter").begin_array();
    for (const JitteredLayout& j : plan.jittered) {
      json.begin_object()
          .field("of", j.of)
          .field("mean_ms", j.mean_ms)
          .field("p50_ms", j.p50_ms)
          .field("p90_ms", j.p90_ms)
          .field("slowdown", j.slowdown)
          .end_object();
    }
    json.end_array();
  }
  json.key("notes").begin_array();
  for (const std::string& note : plan.notes) json.value(note);
  json.end_array();
  json.end_object();
  return std::move(json).text() + "\n";
}

std::string plan_jsonl(const LayoutPlan& plan) {
  std::string text;
  for (const PricedLayout& layout : plan.found.priced) {
    JsonWriter json;
    write_priced(json, plan, layout);
    text += std::move(json).text() + "\n";
  }
  return text;
}

std::string plan_csv(const LayoutPlan& plan) {
  std::string text =
      "tensor,pipeline,virtual_stages,schedule,context,data,expert,expert_tensor,micro_batch_sequences,"
      "sharding,"
      "recompute,sequence_parallel,dtype,step_time_ms,peak_memory_GiB\n";
  for (const PricedLayout& l : plan.found.priced) {
    const LayoutPoint& p = l.point;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{:d},{},{:.4f},{:.3f}\n", p.tensor, p.pipeline,
                        p.virtual_stages, to_string(p.schedule), p.context, p.data, p.expert,
                        p.expert_tensor == 0 ? p.tensor : p.expert_tensor, p.micro_batch,
                        to_string(p.sharding), to_string(p.recompute), p.sequence_parallel,
                        to_string(p.dtype), l.step_us * 1e-3, l.peak_bytes / kGiB);
  }
  return text;
}

std::string training_text(const TrainingPlan& plan, const TrainingGoal& goal) {
  std::string text = fmt::format("Training on {:.4g} tokens", goal.tokens);
  if (goal.within_days) text += fmt::format(" within {:g} days", *goal.within_days);
  if (goal.price_per_gpu_hour) text += fmt::format(", {:g} a GPU-hour", *goal.price_per_gpu_hour);
  text += "\n\n";
  TextTable table{{{"platform", kLeft},
                   {"GPUs"},
                   {"step\nms"},
                   {"days"},
                   {"p90\ndays"},
                   {"GPU-hours"},
                   {"price"},
                   {"MWh"},
                   {"GiB to\nspare"},
                   {"", kLeft},
                   {"layout", kLeft}}};
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    if (!o.why_not.empty()) {
      table.row({o.platform, count(static_cast<std::uint64_t>(o.n_gpus)), "", "", "", "", "", "", "", "-",
                 shorten(o.why_not, 120)});
      continue;
    }
    std::string mark = o.meets ? (o.surely ? "in time" : "in time, not at p90") : "late";
    if (plan.fewest == i) mark += ", fewest GPUs";
    if (plan.cheapest == i) mark += o.price ? ", least money" : ", fewest GPU-hours";
    if (plan.least_energy == i) mark += ", least energy";
    if (o.best) mark += " *";
    table.row({o.platform, count(static_cast<std::uint64_t>(o.n_gpus)), table_number(o.step_ms, 1),
               table_number(o.days, 1), table_number(o.days_p90, 1), table_number(o.gpu_hours, 0),
               o.price ? table_number(*o.price, 0) : "-", o.energy_MWh ? table_number(*o.energy_MWh, 1) : "-",
               table_number(o.margin_GiB, 1), mark, o.layout});
  }
  text += table.text();
  text +=
      "* no other option is as fast, as cheap and as far from the limit of the memory, and better in one\n"
      "MWh: the GPUs alone at the power limit that the platform states for them, an upper bound\n";
  if (!plan.fewest) {
    text += "No option is in time: more GPUs, or a faster platform.\n";
    return text;
  }
  for (const auto& [name, index] :
       {std::pair{"Fewest GPUs", *plan.fewest}, std::pair{"Cheapest", *plan.cheapest}}) {
    const TrainingOption& o = plan.options[index];
    text +=
        fmt::format("{}: {} x {}: {}\n", name, o.n_gpus, o.platform, o.flags.empty() ? o.layout : o.flags);
    if (*plan.fewest == *plan.cheapest) break;
  }
  if (plan.wanted && plan.wanted != plan.fewest && plan.wanted != plan.cheapest) {
    const TrainingOption& o = plan.options[*plan.wanted];
    text +=
        fmt::format("As wanted: {} x {}: {}\n", o.n_gpus, o.platform, o.flags.empty() ? o.layout : o.flags);
  }
  return text;
}

std::string training_json(const TrainingPlan& plan, const TrainingGoal& goal) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.training_plan/1").field("version", version());
  json.field("train_tokens", goal.tokens);
  if (goal.within_days) json.field("within_days", *goal.within_days);
  if (goal.price_per_gpu_hour) json.field("price_per_gpu_hour", *goal.price_per_gpu_hour);
  json.key("options").begin_array();
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    json.begin_object().field("platform", o.platform).field("n_gpus", o.n_gpus);
    if (!o.why_not.empty()) {
      json.field("why_not", o.why_not).end_object();
      continue;
    }
    json.field("layout", o.layout)
        .field("megatron_flags", o.flags)
        .field("step_time_ms", o.step_ms)
        .field("days", o.days)
        .field("days_p90", o.days_p90)
        .field("gpu_hours", o.gpu_hours);
    if (o.price) json.field("price", *o.price);
    if (o.energy_MWh) json.field("energy_MWh", *o.energy_MWh);
    json.field("memory_margin_GiB", o.margin_GiB)
        .field("in_time", o.meets)
        .field("in_time_at_p90", o.surely)
        .field("fewest_gpus", plan.fewest == i)
        .field("cheapest", plan.cheapest == i)
        .field("least_energy", plan.least_energy == i)
        .field("wanted", plan.wanted == i)
        .field("pareto", o.best);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return std::move(json).text() + "\n";
}

}  // namespace stepcast
