#include "stepcast/report/step_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "stepcast/report/json_writer.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr double kGiB = 1073741824.0;
constexpr std::array kSources = {EstimateSource::measured, EstimateSource::fitted, EstimateSource::analytic,
                                 EstimateSource::assumed};

struct Share {
  std::string name;  // as JSON has it
  std::string text;
  double us = 0;
};

// In the order of the report; they add up to the step.
std::vector<Share> shares_of(const StepPrediction& p) {
  std::vector<Share> shares;
  for (std::size_t i = 0; i < p.shares.class_us.size(); ++i) {
    const std::string name{to_string(static_cast<KernelClass>(i))};
    shares.push_back({"computation_" + name, "computation: " + name, p.shares.class_us[i]});
  }
  for (std::size_t i = 0; i < p.shares.exposed_us.size(); ++i) {
    const std::string name{to_string(static_cast<GroupKind>(i))};
    shares.push_back({"exposed_comm_" + name, "exposed communication: " + name, p.shares.exposed_us[i]});
  }
  shares.push_back({"host", "waiting for launches", p.shares.host_us});
  shares.push_back({"bubble", "pipeline bubble", p.shares.bubble_us});
  shares.push_back({"optimizer", "optimizer", p.shares.optimizer_us});
  shares.push_back({"fixed", "between steps", p.shares.fixed_us});
  std::erase_if(shares, [](const Share& s) { return s.us <= 0; });
  return shares;
}

std::string duration(double seconds) {
  if (seconds < 3600) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

struct Cost {
  double steps = 0, seconds = 0, gpu_hours = 0;
  std::optional<double> price, energy_MWh;
};

std::optional<Cost> cost_of(const StepReport& r) {
  if (!r.budget.tokens) return std::nullopt;
  const StepPrediction& p = *r.prediction;
  Cost cost;
  cost.steps = *r.budget.tokens / p.tokens_per_step;
  cost.seconds = cost.steps * p.step.time.value() * 1e-6;
  cost.gpu_hours = cost.seconds / 3600 * static_cast<double>(p.n_gpus);
  if (r.budget.price_per_gpu_hour) cost.price = cost.gpu_hours * *r.budget.price_per_gpu_hour;
  if (r.budget.power_per_gpu_W) cost.energy_MWh = cost.gpu_hours * *r.budget.power_per_gpu_W * 1e-6;
  return cost;
}

std::string layout_line(const Layout& l) {
  return fmt::format(
      "tensor {} x pipeline {}{} x context {} x data {}{}; {} x {} tokens per micro-batch, {} sequences per "
      "step",
      l.degrees.tensor, l.degrees.pipeline,
      l.degrees.virtual_stages > 1 ? fmt::format(" ({} virtual stages)", l.degrees.virtual_stages) : "",
      l.degrees.context, l.degrees.data,
      l.degrees.expert > 1 ? fmt::format(", expert {}", l.degrees.expert) : "", l.batch.micro_batch_sequences,
      l.batch.seq_len_tokens, l.batch.global_batch_sequences);
}

}  // namespace

std::string step_text(const StepReport& r) {
  const StepPrediction& p = *r.prediction;
  const ParameterCount parameters = parameter_count(*r.model);
  const double ms = p.step.time.value() / 1e3;
  std::string out = fmt::format("{} ({} parameters) on {} x {} ({})\n{}\n\n", r.model->name,
                                table_count(static_cast<std::uint64_t>(parameters.total())), p.n_gpus,
                                r.platform->device.name, r.platform->name, layout_line(*r.layout));
  out += fmt::format("Step time {} ms (p10 {}, p90 {}); {}\n\n", table_number(ms, 1),
                     table_number(p.step.p10.value() / 1e3, 1), table_number(p.step.p90.value() / 1e3, 1),
                     to_string(p.step.source));
  TextTable table{{{"where the time goes", TextTable::Align::left}, {"ms"}, {"%"}}};
  for (const Share& share : shares_of(p)) {
    if (share.us < 0.0005 * p.step.time.value()) continue;
    table.row(
        {share.text, table_number(share.us / 1e3, 1), table_number(100 * share.us / p.step.time.value(), 1)});
  }
  out += table.text(2) + "\n";
  out += fmt::format("  {} tokens/s, {} per GPU; {} TFLOP/s per GPU", table_number(p.tokens_per_second(), 0),
                     table_number(p.tokens_per_second() / static_cast<double>(p.n_gpus), 0),
                     table_number(p.flops_per_second_per_gpu() * 1e-12, 1));
  if (const auto mfu = p.model_flops_utilization()) {
    out += fmt::format("; MFU {:.1f} %, HFU {:.1f} %", 100 * *mfu, 100 * *p.hardware_flops_utilization());
  }
  out += "\n  computation rests on times that are";
  const char* separator = "";
  for (std::size_t i = 0; i < kSources.size(); ++i) {
    if (p.source_shares[i] < 0.005) continue;
    out += fmt::format("{} {} {:.0f} %", separator, to_string(kSources[i]), 100 * p.source_shares[i]);
    separator = ",";
  }
  out += "\n";
  if (r.memory != nullptr) {
    const MemoryForecast& m = *r.memory;
    const StageMemory& s = m.stages[m.worst_stage];
    const auto gib = [](Bytes b) { return table_number(b.value() / kGiB, 1); };
    out += fmt::format(
        "\nMemory: {}; {} GiB of {} GiB on stage {} (weights {}, gradients {}, optimizer {}, activations {}, "
        "working {}, buffers and reserve {}); margin {} GiB\n",
        to_string(m.verdict), gib(m.peak()), gib(m.available), m.worst_stage, gib(s.weights),
        gib(s.gradients), gib(s.optimizer), gib(s.activations), gib(s.working),
        gib(s.communication + s.reserve), gib(m.margin()));
  }
  if (const auto cost = cost_of(r)) {
    out +=
        fmt::format("\nTraining on {} tokens: {} steps, {}, {} GPU-hours", table_number(*r.budget.tokens, 0),
                    table_number(cost->steps, 0), duration(cost->seconds), table_number(cost->gpu_hours, 0));
    if (cost->price) out += fmt::format(", price {}", table_number(*cost->price, 0));
    if (cost->energy_MWh) out += fmt::format(", {} MWh", table_number(*cost->energy_MWh, 1));
    out += "\n";
  }
  if (!r.notes.empty()) out += "\n";
  for (const std::string& note : r.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string step_json(const StepReport& r) {
  const StepPrediction& p = *r.prediction;
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object();
  json.field("model", r.model->name);
  json.field("parameters", parameter_count(*r.model).total());
  json.field("platform", r.platform->name);
  json.field("gpu", r.platform->device.name);
  json.field("n_gpus", p.n_gpus);
  json.key("layout").begin_object();
  json.field("tensor_parallel", r.layout->degrees.tensor);
  json.field("pipeline_parallel", r.layout->degrees.pipeline);
  json.field("virtual_stages", r.layout->degrees.virtual_stages);
  json.field("context_parallel", r.layout->degrees.context);
  json.field("expert_parallel", r.layout->degrees.expert);
  json.field("data_parallel", r.layout->degrees.data);
  json.field("sharding", to_string(r.layout->sharding.kind));
  json.field("sequence_parallel", r.layout->layer.sequence_parallel);
  json.field("micro_batch_sequences", r.layout->batch.micro_batch_sequences);
  json.field("global_batch_sequences", r.layout->batch.global_batch_sequences);
  json.field("seq_len_tokens", r.layout->batch.seq_len_tokens);
  json.field("recompute", to_string(r.layout->layer.recompute.kind));
  json.field("framework", to_string(r.layout->software.framework));
  json.end_object();
  json.fixed_field("step_time_ms", p.step.time.value() / 1e3, 4);
  json.fixed_field("step_time_p10_ms", p.step.p10.value() / 1e3, 4);
  json.fixed_field("step_time_p90_ms", p.step.p90.value() / 1e3, 4);
  json.field("source", to_string(p.step.source));
  json.key("shares_ms").begin_object();
  for (const Share& share : shares_of(p)) json.fixed_field(share.name, share.us / 1e3, 4);
  json.end_object();
  json.key("computation_sources").begin_object();
  for (std::size_t i = 0; i < kSources.size(); ++i)
    json.fixed_field(to_string(kSources[i]), p.source_shares[i], 5);
  json.end_object();
  json.fixed_field("tokens_per_s", p.tokens_per_second(), 3);
  json.fixed_field("tokens_per_s_per_gpu", p.tokens_per_second() / static_cast<double>(p.n_gpus), 3);
  json.fixed_field("tflops_per_gpu", p.flops_per_second_per_gpu() * 1e-12, 3);
  const auto share_or_null = [&](std::string_view name, const std::optional<double>& value) {
    json.key(name);
    value ? json.fixed(*value, 5) : json.null();
  };
  share_or_null("mfu", p.model_flops_utilization());
  share_or_null("hfu", p.hardware_flops_utilization());
  if (r.memory != nullptr) {
    const MemoryForecast& m = *r.memory;
    json.key("memory").begin_object();
    json.field("verdict", to_string(m.verdict));
    json.fixed_field("peak_memory_GiB", m.peak().value() / kGiB, 4);
    json.fixed_field("available_GiB", m.available.value() / kGiB, 4);
    json.fixed_field("margin_GiB", m.margin().value() / kGiB, 4);
    json.key("stages").begin_array();
    for (const StageMemory& s : m.stages) {
      json.begin_object();
      json.fixed_field("weights_GiB", s.weights.value() / kGiB, 4);
      json.fixed_field("gradients_GiB", s.gradients.value() / kGiB, 4);
      json.fixed_field("optimizer_GiB", s.optimizer.value() / kGiB, 4);
      json.fixed_field("activations_GiB", s.activations.value() / kGiB, 4);
      json.fixed_field("working_GiB", s.working.value() / kGiB, 4);
      json.fixed_field("communication_GiB", s.communication.value() / kGiB, 4);
      json.fixed_field("reserve_GiB", s.reserve.value() / kGiB, 4);
      json.fixed_field("total_GiB", s.total().value() / kGiB, 4);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  if (const auto cost = cost_of(r)) {
    json.key("training").begin_object();
    json.field("tokens", *r.budget.tokens);
    json.fixed_field("steps", cost->steps, 2);
    json.fixed_field("time_s", cost->seconds, 2);
    json.fixed_field("gpu_hours", cost->gpu_hours, 2);
    json.field("price", cost->price);
    json.field("energy_MWh", cost->energy_MWh);
    json.end_object();
  }
  json.key("notes").begin_array();
  for (const std::string& note : r.notes) json.value(note);
  json.end_array();
  json.end_object();
  return std::move(json).text();
}

std::string explain_text(std::span<const ExplainedList> lists) {
  TextTable table{{{"item", TextTable::Align::left},
                   {"what", TextTable::Align::left},
                   {"n"},
                   {"us"},
                   {"hidden"},
                   {"p10"},
                   {"p90"},
                   {"GFLOP"},
                   {"MB"},
                   {"from", TextTable::Align::left}}};
  for (const ExplainedList& list : lists) {
    table.row({list.title});
    table.rule();
    for (const ExplainedItem& item : list.items) {
      const bool by_record = !item.record.empty() && item.alone.source != EstimateSource::assumed;
      table.row({(item.beside ? "| " : "") + item.name, shorten(item.what, 70),
                 table_number(static_cast<double>(item.count), 0), table_number(item.duration_us, 1),
                 table_number_or_blank(item.hidden_us, 1), table_number(item.alone.p10.value(), 1),
                 table_number(item.alone.p90.value(), 1), table_number_or_blank(item.flops * 1e-9, 1),
                 table_number(item.bytes * 1e-6, 1),
                 by_record ? item.record : std::string{to_string(item.alone.source)}});
    }
    table.row({"", "sum of what nothing hides", "", table_number(list.gpu_us, 1)});
    if (list.host_us > 0) table.row({"", "waiting for launches", "", table_number(list.host_us, 1)});
    table.row({""});
  }
  return "One micro-batch on one rank, times with what runs beside; `|` runs beside the next operation.\n\n" +
         table.text();
}

}  // namespace stepcast
