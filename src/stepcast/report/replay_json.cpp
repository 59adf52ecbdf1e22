// stepcast.replay/2: two forecasts, and what a comparison with the record adds to them.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/replay_diagnosis.h"
#include "stepcast/report/replay_report.h"
#include "stepcast/report/replay_verdict.h"

namespace stepcast {
namespace {

class JsonReport {
 public:
  explicit JsonReport(const ReplayAnalysis& analysis) : a_(analysis) {}

  std::string run() {
    json_.begin_object().field("schema", "stepcast.replay/2").field("version", version());
    const TimePair longest = longest_step();
    step("step_time_ms", "measured_step_time_ms", "step_error_percent", longest);
    json_.key("global_window_ms");
    pair(a_.global_window);
    spread("kernel_start_error_us", a_.kernel_start);
    json_.field("verdict", replay_verdict(a_));
    write_diagnosis(json_, a_);
    json_.field("warning", a_.warning);
    inputs();
    ranks();
    waits();
    baseline();
    variants();
    constants();
    json_.key("simulated");
    write_forecast(json_, a_.simulated);
    json_.key("measured");
    write_forecast(json_, a_.measured);
    json_.end_object();
    return std::move(json_).text();
  }

 private:
  static double ms(double us) { return us * 1e-3; }
  void time_ms(std::string_view key, double us) { json_.fixed_field(key, ms(us), 6); }
  void time_us(std::string_view key, double us) { json_.fixed_field(key, us, 3); }

  TimePair longest_step() const {
    TimePair longest;
    for (const ReplayedRank& rank : a_.ranks) {
      longest.measured_us = std::max(longest.measured_us, rank.step.measured_us);
      longest.simulated_us = std::max(longest.simulated_us, rank.step.simulated_us);
    }
    return longest;
  }

  void step(std::string_view simulated, std::string_view measured, std::string_view error,
            const TimePair& times) {
    time_ms(simulated, times.simulated_us);
    time_ms(measured, times.measured_us);
    json_.fixed_field(error, 100 * times.error(), 6);
  }

  void pair(const TimePair& times) {
    json_.begin_object();
    time_ms("measured", times.measured_us);
    time_ms("simulated", times.simulated_us);
    json_.fixed_field("error_percent", 100 * times.error(), 6);
    json_.end_object();
  }

  void spread(std::string_view key, const ErrorSpread& spread) {
    json_.key(key).begin_object().field("n", spread.n);
    time_us("median", spread.median_us);
    time_us("p95", spread.p95_us);
    time_us("max", spread.max_us);
    json_.end_object();
  }

  void inputs() {
    json_.key("inputs").begin_array();
    for (const ReplayInput& input : a_.inputs) {
      json_.begin_object();
      json_.field("rank", input.rank).field("world_size", input.world_size);
      json_.field("profiler", input.profiler).field("execution_trace", input.execution_trace);
      json_.field("device", input.device).field("events", input.events);
      json_.key("skipped_events").begin_object();
      for (const auto& [why, n] : input.skipped) json_.field(why, n);
      json_.end_object();
      json_.end_object();
    }
    json_.end_array();
  }

  void ranks() {
    json_.key("ranks").begin_array();
    for (std::size_t c = 0; c < a_.ranks.size(); ++c) {
      const ReplayedRank& rank = a_.ranks[c];
      json_.begin_object().field("rank", rank.rank);
      step("step_time_ms", "measured_step_time_ms", "step_error_percent", rank.step);
      json_.key("gpu_window_ms");
      pair(rank.gpu_window);
      if (const auto& memory = a_.facts[c].memory) {
        json_.key("memory").begin_object().field("peak_allocated_bytes", memory->allocated_bytes);
        json_.field("peak_reserved_bytes", memory->reserved_bytes).end_object();
      }
      explained(rank, a_.facts[c]);
      json_.end_object();
    }
    json_.end_array();
  }

  void explained(const ReplayedRank& rank, const RecordedStepFacts& facts) {
    json_.key("explained").begin_object();
    time_us("simulated_wait_us", rank.simulated_wait_us);
    time_us("recorded_wait_us", facts.recorded_wait_us);
    time_us("unexplained_wait_us", facts.unexplained_wait_us);
    time_us("gpu_late_us", facts.gpu_late_us);
    json_.field("late_gpu_work", facts.late_gpu_work);
    json_.field("graph_nodes", facts.graph_nodes);
    json_.field("overlapping_kernels", facts.overlapping_kernels);
    json_.field("kept_starts", facts.kept_starts);
    json_.key("kept_delay_us").begin_object();
    for (std::size_t o = 0; o < facts.kept_delay_us.size(); ++o) {
      if (facts.kept_delay_us[o] > 0) {
        time_us(to_string(static_cast<EdgeOrigin>(o)), facts.kept_delay_us[o]);
      }
    }
    json_.end_object();
    json_.key("edges").begin_object();
    for (std::size_t o = 0; o < facts.edge_count.size(); ++o) {
      if (facts.edge_count[o] == 0) continue;
      json_.key(to_string(static_cast<EdgeOrigin>(o))).begin_object();
      json_.field("n", facts.edge_count[o]).field("inferred", facts.inferred_edge_count[o]);
      json_.end_object();
    }
    json_.end_object();
    json_.field("left_over_kernels", facts.left_over_kernels);
    spread("kernel_start_error_us", rank.kernel_start);
    json_.end_object();
  }

  // Waiting in collectives, measured beside simulated.
  void waits() {
    json_.key("collective_waits").begin_array();
    for (std::size_t i = 0; i < a_.measured_wait_us.size() && i < a_.simulated.collectives.size(); ++i) {
      const ForecastCollective& collective = a_.simulated.collectives[i];
      json_.begin_object().field("name", collective.name).field("ordinal", collective.ordinal);
      json_.key("members").begin_array();
      for (std::size_t m = 0; m < collective.members.size(); ++m) {
        json_.begin_object().field("rank", a_.facts[collective.members[m].rank_class].rank);
        time_us("simulated_wait_us", collective.members[m].wait_us);
        time_us("measured_wait_us", a_.measured_wait_us[i][m]);
        json_.end_object();
      }
      json_.end_array();
      json_.end_object();
    }
    json_.end_array();
  }

  void baseline() {
    json_.key("baseline").begin_object();
    time_ms("time_ms", 1e3 * a_.baseline_ms);
    json_.key("rank");
    a_.baseline_class ? json_.value(a_.facts[*a_.baseline_class].rank) : json_.null();
    json_.field("stream", a_.baseline_stream);
    json_.end_object();
  }

  void variants() {
    json_.key("variants").begin_object();
    for (const ReplayVariant& variant : a_.variants) {
      json_.key(variant.name).begin_object();
      json_.key("global_window_ms");
      pair(variant.global_window);
      json_.key("ranks").begin_array();
      for (std::size_t c = 0; c < variant.step.size(); ++c) {
        json_.begin_object().field("rank", a_.facts[c].rank);
        step("step_time_ms", "measured_step_time_ms", "step_error_percent", variant.step[c]);
        json_.key("gpu_window_ms");
        pair(variant.gpu_window[c]);
        json_.end_object();
      }
      json_.end_array();
      json_.end_object();
    }
    json_.end_object();
  }

  void constants() {
    json_.key("constants").begin_array();
    for (const ReplayConstant& constant : a_.constants) {
      json_.begin_object().field("name", constant.name);
      time_us("value_us", constant.value_us);
      json_.field("clean", constant.clean).field("all", constant.all).field("fallback", constant.fallback);
      json_.end_object();
    }
    json_.end_array();
  }

  const ReplayAnalysis& a_;
  JsonWriter json_{JsonWriter::Layout::indented};
};

}  // namespace

std::string replay_json(const ReplayAnalysis& analysis) { return JsonReport{analysis}.run(); }

}  // namespace stepcast
