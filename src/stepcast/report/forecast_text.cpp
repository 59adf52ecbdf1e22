#include "stepcast/report/forecast_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/report/spread_text.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr auto kLeft = TextTable::Align::left;

// Of a step of so many ms and its parts.
int decimals(double step_ms) { return step_ms < 10 ? 3 : 1; }

std::string duration(double seconds) {
  if (seconds < 3600) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

// 0 where the layout does not say.
std::int64_t number(const Forecast& f, std::string_view name) {
  for (const Setting& setting : f.layout) {
    const double* value = std::get_if<double>(&setting.value);
    if (setting.name == name && value != nullptr) return static_cast<std::int64_t>(*value);
  }
  return 0;
}

std::string subject(const Forecast& f) {
  std::string line = in_one_line(f.model ? *f.model : f.traces.value_or("a step"));
  if (f.parameters) line += fmt::format(" ({} parameters)", table_count(*f.parameters));
  line += fmt::format(" on {} x {}", f.n_gpus, f.gpu.value_or("GPU"));
  if (f.platform) line += fmt::format(" ({})", *f.platform);
  return line;
}

std::string layout_line(const Forecast& f) {
  const std::int64_t virtual_stages = number(f, "virtual_stages"), expert = number(f, "expert_parallel");
  return fmt::format(
      "tensor {} x pipeline {}{} x context {} x data {}{}; {} x {} tokens per micro-batch, {} sequences per "
      "step",
      number(f, "tensor_parallel"), number(f, "pipeline_parallel"),
      virtual_stages > 1 ? fmt::format(" ({} virtual stages)", virtual_stages) : "",
      number(f, "context_parallel"), number(f, "data_parallel"),
      expert > 1 ? fmt::format(", expert {}", expert) : "", number(f, "micro_batch_sequences"),
      number(f, "seq_len_tokens"), number(f, "global_batch_sequences"));
}

std::string_view word(const Forecast& f, std::string_view name) {
  for (const Setting& setting : f.layout) {
    const std::string* value = std::get_if<std::string>(&setting.value);
    if (setting.name == name && value != nullptr) return *value;
  }
  return {};
}

// The assumed framework: it affects the time as much as the layout does.
std::string software_line(const Forecast& f) {
  if (word(f, "framework").empty()) return {};
  return fmt::format("as {} runs it, in {}, {} attention, sharding {}, recomputation {}",
                     word(f, "framework"), word(f, "dtype"), word(f, "attention"), word(f, "sharding"),
                     word(f, "recompute"));
}

std::string breakdown(const Forecast& f) {
  const ForecastClass& c = f.critical();
  std::string title = "where the time goes";
  if (f.classes.size() > 1) title += fmt::format(" on {}", c.name);
  TextTable table{{{std::move(title), kLeft}, {"ms"}, {"%"}}};
  for (const NamedTime& part : c.parts()) {
    if (part.time_ms < 0.0005 * c.window_ms) continue;
    table.row({part_text(part.key), table_number(part.time_ms, decimals(c.window_ms)),
               table_number(100 * part.time_ms / c.window_ms, 1)});
  }
  return table.text(2);
}

// Recorded ranks side by side; nothing for other forecasts and for one rank.
std::string ranks(const Forecast& f) {
  if (f.classes.size() < 2 || !f.classes.front().rank) return {};
  TextTable table{{{"rank", kLeft},
                   {"step ms"},
                   {"begins"},
                   {"computation"},
                   {"exposed comm."},
                   {"waits for CPU"},
                   {"for ranks"},
                   {"other idle"}}};
  for (const ForecastClass& c : f.classes) {
    const double cpu = time_ms(c.idle_ms, "cpu"), others = time_ms(c.idle_ms, "other_rank");
    table.row({c.name, table_number(c.window_ms, 2), table_number(c.start_offset_ms, 2),
               table_number(c.computation_ms, 2), table_number(c.exposed_comm_ms, 2), table_number(cpu, 2),
               table_number(others, 2), table_number(sum_ms(c.idle_ms) - cpu - others, 2)});
  }
  return table.text(2);
}

std::string throughput(const ForecastThroughput& t) {
  std::vector<std::string> parts;
  if (t.tokens_per_s && t.tokens_per_s_per_gpu) {
    parts.push_back(fmt::format("{} tokens/s, {} per GPU", table_number(*t.tokens_per_s, 0),
                                table_number(*t.tokens_per_s_per_gpu, 0)));
  } else if (t.samples_per_s) {
    parts.push_back(fmt::format("{} samples/s", table_number(*t.samples_per_s, 0)));
  }
  if (t.tflops_per_gpu) {
    parts.push_back(fmt::format("{} TFLOP/s per GPU", table_number(*t.tflops_per_gpu, 1)));
  } else if (t.hardware_tflops_per_gpu && *t.hardware_tflops_per_gpu >= 0.05) {
    parts.push_back(fmt::format("{} TFLOP/s per GPU run", table_number(*t.hardware_tflops_per_gpu, 1)));
  }
  if (t.mfu && t.hfu) parts.push_back(fmt::format("MFU {:.1f} %, HFU {:.1f} %", 100 * *t.mfu, 100 * *t.hfu));
  std::string line;
  for (const std::string& part : parts) line += (line.empty() ? "  " : "; ") + part;
  return line.empty() ? line : line + "\n";
}

std::string coverage(const ForecastCoverage& c) {
  const std::array<std::pair<const char*, double>, 4> shares{
      {{"measured", c.measured}, {"fitted", c.fitted}, {"analytic", c.analytic}, {"assumed", c.assumed}}};
  std::string line;
  for (const auto& [source, share] : shares) {
    if (share < 0.005) continue;
    line += fmt::format("{} {} {:.0f} %", line.empty() ? "" : ",", source, 100 * share);
  }
  if (line.empty()) return line;
  std::string text = fmt::format("  the time of the work rests on what is{}\n", line);
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < c.unmodelled.size() && i < kShown; ++i) {
    const ForecastUnmodelled& work = c.unmodelled[i];
    text += fmt::format("  no model: {}, {} times, {} ms\n", shorten(work.name, 60), table_count(work.n),
                        table_number(work.time_ms, 2));
  }
  return text;
}

// Whether it fits: what somebody has to know before the time.
std::string memory(const ForecastMemory& m) {
  if (m.worst_stage >= m.stages.size()) return {};
  const ForecastStageMemory& s = m.stages[m.worst_stage];
  const auto gib = [](double value) { return table_number(value, 1); };
  std::string text = fmt::format(
      "\nMemory: {}; {} GiB of {} GiB on stage {}, {} GiB {}\n  (weights {}, gradients {}, optimizer {}, "
      "activations {}, working {}, buffers and reserve {})\n",
      m.verdict, gib(m.peak_memory_GiB), gib(m.available_GiB), m.worst_stage, gib(std::abs(m.margin_GiB)),
      m.margin_GiB < 0 ? "too many" : "to spare", gib(s.weights_GiB), gib(s.gradients_GiB),
      gib(s.optimizer_GiB), gib(s.activations_GiB), gib(s.working_GiB),
      gib(s.communication_GiB + s.reserve_GiB));
  if (!m.worst_imbalance || !m.fits_to_imbalance || !s.worst_imbalance_GiB) return text;
  const bool holds_all = *m.fits_to_imbalance >= *m.worst_imbalance;
  text += fmt::format(
      "  (tokens at their experts {} of it; none is dropped: {} GiB if all went to one rank, {})\n",
      gib(s.dispatched_GiB), gib(*s.worst_imbalance_GiB),
      holds_all                  ? "which fits"
      : *m.fits_to_imbalance < 1 ? "balanced ones do not fit"
                                 : fmt::format("fits to {:.2f} times the mean rank", *m.fits_to_imbalance));
  return text;
}

std::string expert_load(const ForecastExpertLoad& l, double step_ms) {
  return fmt::format(
      "  experts loaded {}: the busiest rank has {:.2f} times the mean, which costs {} ms ({:.1f} %) against "
      "balanced ones\n",
      l.load, l.busiest_over_mean, table_number(l.cost_ms, 1), step_ms > 0 ? 100 * l.cost_ms / step_ms : 0);
}

std::string training(const ForecastTraining& t) {
  std::string out = "\nTraining";
  if (t.tokens) out += fmt::format(" on {} tokens", table_number(*t.tokens, 0));
  if (t.samples) out += fmt::format(" on {} samples", table_number(*t.samples, 0));
  out += fmt::format(": {} steps, {}, {} GPU-hours", table_number(t.iterations, 0), duration(t.time_s),
                     table_number(t.gpu_hours, 0));
  if (t.price) out += fmt::format(", price {}", table_number(*t.price, 0));
  if (t.energy_MWh) out += fmt::format(", {} MWh", table_number(*t.energy_MWh, 1));
  return out + "\n";
}

}  // namespace

std::string part_text(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kIdle{
      {{"idle: cpu", "idle: waits for the CPU"},
       {"idle: other_stream", "idle: waits for another stream"},
       {"idle: other_rank", "idle: waits for another rank"},
       {"idle: pipeline", "idle: pipeline bubble"},
       {"idle: between_steps", "idle: between steps"},
       {"idle: rest", "idle: rest"}}};
  for (const auto& [idle, text] : kIdle) {
    if (key == idle) return std::string{text};
  }
  return std::string{key};
}

std::string throughput_text(const Forecast& forecast) { return throughput(forecast.throughput); }

std::string training_text(const Forecast& forecast) {
  return forecast.training ? training(*forecast.training) : std::string{};
}

std::vector<std::string> forecast_subject(const Forecast& f) {
  std::vector<std::string> lines{subject(f)};
  if (number(f, "tensor_parallel") <= 0) return lines;
  lines.push_back(layout_line(f));
  if (std::string software = software_line(f); !software.empty()) lines.push_back(std::move(software));
  return lines;
}

std::string forecast_text(const Forecast& f) {
  std::string out;
  for (const std::string& line : forecast_subject(f)) out += line + "\n";
  if (f.memory) out += memory(*f.memory);
  // What a number rests on stands before it.
  if (!f.notes.empty()) out += "\n";
  for (const std::string& note : f.notes) out += fmt::format("note: {}\n", note);
  const int digits = decimals(f.step_time_ms);
  out += fmt::format("\nStep time {} ms (p10 {}, p90 {}); {}\n\n", table_number(f.step_time_ms, digits),
                     table_number(f.step_time_p10_ms, digits), table_number(f.step_time_p90_ms, digits),
                     to_string(f.source));
  if (!f.classes.empty()) out += breakdown(f) + "\n";
  if (const std::string table = ranks(f); !table.empty()) out += table + "\n";
  if (f.expert_load) out += expert_load(*f.expert_load, f.step_time_ms);
  out += throughput(f.throughput) + coverage(f.coverage);
  if (f.published) {
    out += fmt::format("\nComposed as published from the same prices (docs/published-method.md): {} ms\n",
                       table_number(f.published->step_time_ms, 1));
  }
  if (f.series) out += series_text(*f.series);
  if (f.scenarios) out += scenarios_text(*f.scenarios, f.classes);
  if (f.training) out += training(*f.training);
  return out;
}

std::string explained_text(const Forecast& forecast) {
  TextTable table{{{"item", kLeft},
                   {"what", kLeft},
                   {"n"},
                   {"us"},
                   {"hidden"},
                   {"p10"},
                   {"p90"},
                   {"GFLOP"},
                   {"MB"},
                   {"from", kLeft}}};
  for (const ForecastItemList& list : forecast.explained) {
    table.row({list.name});
    table.rule();
    for (const ForecastItem& item : list.items) {
      const bool by_record = !item.record.empty() && item.source != EstimateSource::assumed;
      table.row({(item.overlapped ? "| " : "") + item.name, shorten(item.what, 70), table_number(item.n, 0),
                 table_number(item.time_us, 1), table_number_or_blank(item.hidden_us, 1),
                 table_number(item.alone_p10_us, 1), table_number(item.alone_p90_us, 1),
                 table_number_or_blank(item.flops * 1e-9, 1), table_number(item.bytes * 1e-6, 1),
                 by_record ? item.record : std::string{to_string(item.source)}});
    }
    table.row({"", "sum of what nothing hides", "", table_number(list.gpu_us, 1)});
    if (list.host_us > 0) table.row({"", "waiting for launches", "", table_number(list.host_us, 1)});
    table.row({""});
  }
  return "One micro-batch on one rank, times include overlapped work; `|` overlaps the next operation.\n\n" +
         table.text();
}

}  // namespace stepcast
