// The JSON members of layouts and options of a plan (report/fields/field_list.h), for its JSON and its
// tables.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

// The choices of a layout. The table shows only the first member, which is short text.
void fields(auto& a, Is<LayoutPoint> auto& p) {
  a("layout", to_string(p), "layout in short form", TableColumn{"layout<"}.at(-1));
  a("tensor_parallel", p.tensor);
  a("pipeline_parallel", p.pipeline);
  a("virtual_stages", p.virtual_stages);
  a("schedule", p.schedule);
  a("context_parallel", p.context);
  a("data_parallel", p.data);
  a("expert_parallel", p.expert);
  a("expert_tensor_parallel", p.expert_tensor == 0 ? p.tensor : p.expert_tensor);
  a("micro_batch_sequences", p.micro_batch);
  a("sharding", to_string(p.sharding),
    "sharding: none, zero1, zero2, zero3, or hybrid:N (zero3 among the ranks of N nodes)");
  a("recompute", p.recompute);
  a("sequence_parallel", p.sequence_parallel);
  a("dtype", p.dtype);
}

constexpr std::string_view schema_name(const LayoutRejection*) { return "rejection"; }

// A reason why layouts were left out, with an example.
void fields(auto& a, Is<LayoutRejection> auto& r) {
  a("layouts", r.count, "number of layouts with this reason", {"layouts"});
  a("reason", r.reason, "", TableColumn::words("why not<", 100));
  a("example", r.example, "", TableColumn::words("for example<", 90));
  a("cure", r.cure, "nearest change that makes such a layout run; empty: unknown",
    TableColumn::words("nearest that runs<", 80));
}

// An option of a training plan. `carbon`: the table shows the CO2 emissions.
void fields(auto& a, Is<TrainingOption> auto& o, const TrainingPlan& plan, bool carbon) {
  const bool runs = o.why_not.empty();
  // Whether this option is the one at `index` of the plan; no key if the option cannot be run.
  const auto is = [&](const std::optional<std::size_t>& index) {
    return given_if(runs, index && &plan.options[*index] == &o);
  };
  a("platform", o.platform, "", {"platform<"});
  a("n_gpus", o.n_gpus, "", {"GPUs"});
  a("why_not", given_if(!runs, o.why_not), "why no layout runs and fits; the fields below are then null");
  a("layout", given_if(runs, o.layout), "layout that plan chooses, with its refinements");
  a("megatron_flags", given_if(runs, o.flags));
  a("step_time_ms", given_if(runs, o.step_ms),
    "expected step time of the layout (promised_step_time_ms), in ms", {"step\nms", 1});
  a("forecast_step_time_ms", given_if(runs, o.forecast_ms),
    "forecast step time of the layout (step_time_ms), in ms");
  a("days", given_if(runs, o.days), "", TableColumn::amount("days", 1));
  a("days_p90", given_if(runs, o.days_p90), "", TableColumn::amount("p90\ndays", 1));
  a("gpu_hours", given_if(runs, o.gpu_hours), "", TableColumn::amount("GPU-hours", 0));
  a("price_per_gpu_hour", if_any(o.price_per_gpu_hour));
  a("price", if_any(o.price), "", TableColumn::amount("price", 0));
  a("power_kW", if_any(o.power_kW), "power of nodes and the switches between them, in kW", {"kW"});
  a("energy_MWh", if_any(o.energy_MWh), "energy of nodes and switches, in MWh",
    TableColumn::amount("MWh", 1));
  a("co2_t", if_any(o.co2_t), "carbon emissions in tonnes of CO2, at the carbon intensity you gave",
    carbon ? TableColumn::amount("t CO2", 1) : TableColumn{});
  a("run", if_any(o.run), "run with interruptions; its losses are part of days, GPU-hours, price and energy");
  a("memory_margin_GiB", given_if(runs, o.margin_GiB), "", {"headroom\nGiB", 1});
  a("in_time", given_if(runs, o.meets), "whether the option meets the deadline and the power budget");
  a("in_time_at_p90", given_if(runs, o.surely));
  a("fewest_gpus", is(plan.fewest));
  a("cheapest", is(plan.cheapest));
  a("fastest", is(plan.fastest), "whether the option is the fastest by days_p90");
  a("least_energy", is(plan.least_energy));
  a("wanted", is(plan.wanted), "whether the option is the best by --objective");
  a("pareto", given_if(runs, o.best));
}

}  // namespace stepcast
