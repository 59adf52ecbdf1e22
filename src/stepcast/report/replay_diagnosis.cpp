#include "stepcast/report/replay_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/replay_verdict.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr auto kLeft = TextTable::Align::left;
constexpr std::size_t kRowsShown = 6, kRowsVerbose = 20;

double ms(double us) { return us * 1e-3; }
double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }
// FLOPs or bytes per microsecond as 10^12 or 10^9 of them per second.
double tflops(double flops, double us) { return us > 0 ? flops / us * 1e-6 : 0; }
double GBps(double bytes, double us) { return us > 0 ? bytes / us * 1e-3 : 0; }

std::string or_dash(const std::optional<double>& value, int decimals) {
  return value ? table_number(*value, decimals) : "-";
}

// "host 71 %, late start 29 %"
std::string causes(const CulpritTimes& times, double sum) {
  std::vector<std::pair<double, std::string_view>> parts;
  for (std::size_t k = 0; k < kCulpritCount; ++k)
    parts.emplace_back(times[k], culprit_name(static_cast<Culprit>(k)));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [us, name] : parts) {
    if (percent(us, sum) < 5) break;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, percent(us, sum));
  }
  return text;
}

class DiagnosisText {
 public:
  DiagnosisText(const ReplayAnalysis& analysis, bool verbose) : a_(analysis), verbose_(verbose) {}

  std::string run() {
    groups();
    stragglers();
    operators();
    awaited();
    utilization();
    return std::move(text_);
  }

 private:
  static std::string at_least(const GroupTraffic& g, const std::optional<double>& value) {
    return (g.holds_waiting && value ? ">= " : "") + or_dash(value, 2);
  }
  std::size_t rows() const { return verbose_ ? kRowsVerbose : kRowsShown; }
  void title(std::string_view text) { text_ += fmt::format("\n{}\n", text); }
  std::string rank_text(std::size_t rank_class) const { return fmt::format("{}", a_.facts[rank_class].rank); }

  void groups() {
    if (a_.groups.empty()) return;
    title(
        "Collectives by process group (bus bandwidth as nccl-tests counts it; of the transfer, without "
        "waiting)");
    TextTable table{{{"group", kLeft},
                     {"operation", kLeft},
                     {"ranks"},
                     {"n"},
                     {"bytes"},
                     {"transfer\nms"},
                     {"waiting,\nmean ms"},
                     {"bus\nGB/s"},
                     {"largest\nmessage"},
                     {"its bus\nGB/s"},
                     {"link\nGB/s"},
                     {"link", kLeft}}};
    for (const GroupTraffic& g : a_.groups) {
      table.row({shorten(g.group, 32), g.operation, fmt::format("{}", g.n_ranks), table_count(g.n),
                 table_bytes(g.message_bytes), table_number(ms(g.transfer_us), 3),
                 g.holds_waiting ? "with it" : table_number(ms(g.wait_us), 3), at_least(g, g.bus_GBps),
                 table_bytes(g.largest_message_bytes), at_least(g, g.largest_bus_GBps),
                 or_dash(g.link_GBps, 1), g.link});
    }
    text_ += table.text(2);
    if (std::any_of(a_.groups.begin(), a_.groups.end(),
                    [](const GroupTraffic& g) { return g.holds_waiting; }))
      text_ += "  >=: ranks of the group are not here; the times hold the waiting for them.\n";
  }

  void stragglers() {
    const StepCulprits& found = a_.culprits;
    if (found.collectives == 0) return;
    title(fmt::format("Whom the others wait for ({} collectives, {} of them ties: arrivals within {:.0f} us)",
                      found.collectives, found.ties, kTieUs));
    TextTable table{{{"rank", kLeft},
                     {"started\nlater ms"},
                     {"came last\nin"},
                     {"the others\nwaited ms"},
                     {"share\n%"},
                     {"itself\nwaited ms"},
                     {"what held it meanwhile", kLeft}}};
    const double all = found.all_waiting_us();
    for (std::size_t c = 0; c < found.ranks.size(); ++c) {
      const RankCulprits& rank = found.ranks[c];
      table.row({rank_text(c), table_number(a_.simulated.classes[c].start_offset_ms, 3),
                 fmt::format("{}", rank.came_last), table_number(ms(rank.caused_wait_us), 3),
                 table_number(percent(rank.caused_wait_us, all), 1), table_number(ms(rank.waited_us), 3),
                 causes(rank.caused_by_us, rank.caused_wait_us)});
    }
    text_ += table.text(2);
  }

  void operators() {
    if (a_.operators.empty()) return;
    title(
        "Operators that differ most across ranks (work: FLOPs or bytes of the slowest rank over the "
        "median's)");
    TextTable table{{{"operator", kLeft},
                     {"on", kLeft},
                     {"median\nms"},
                     {"slowest\nms"},
                     {"rank"},
                     {"longer\nms"},
                     {"times"},
                     {"work"}}};
    std::size_t n = 0;
    for (const OperatorComparison& op : a_.operators) {
      if (n++ == rows()) break;
      const double slowest = op.times_us[op.slowest];
      table.row({op.op.empty() ? "(no framework op)" : shorten(op.op, 60), op.on_gpu ? "GPU" : "host",
                 table_number(ms(op.median_us), 3), table_number(ms(slowest), 3), rank_text(op.slowest),
                 table_number(ms(op.excess_us()), 3),
                 op.median_us > 0 ? fmt::format("{:.2f}x", slowest / op.median_us) : "-",
                 !op.on_gpu                     ? ""
                 : std::isfinite(op.work_ratio) ? fmt::format("{:.2f}x", op.work_ratio)
                                                : "only here"});
    }
    text_ += table.text(2);
  }

  void awaited() {
    if (a_.awaited.empty()) return;
    double all = 0;
    for (const AwaitedOperator& op : a_.awaited) all += op.gpu_idle_us;
    const auto n = static_cast<double>(std::max<std::size_t>(1, a_.ranks.size()));
    title(fmt::format("Operators of the CPU that the GPU waits for ({} ms a rank)",
                      table_number(ms(all / n), 3)));
    TextTable table{{{"operator", kLeft}, {"GPU idle,\nmean ms"}, {"share\n%"}, {"gaps"}, {"most on\nrank"}}};
    std::size_t shown = 0;
    for (const AwaitedOperator& op : a_.awaited) {
      if (shown++ == rows()) break;
      const auto most = std::max_element(op.ranks_us.begin(), op.ranks_us.end());
      table.row({op.op.empty() ? "(no framework op)" : shorten(op.op, 60),
                 table_number(ms(op.gpu_idle_us / n), 3), table_number(percent(op.gpu_idle_us, all), 1),
                 table_count(op.gaps), rank_text(static_cast<std::size_t>(most - op.ranks_us.begin()))});
    }
    text_ += table.text(2);
  }

  void utilization() {
    const AchievedRates& rates = a_.rates;
    RankUtilization sum;
    for (const RankUtilization& rank : rates.ranks) {
      sum.step_us += rank.step_us;
      sum.busy_us += rank.busy_us;
      sum.computing_us += rank.computing_us;
      sum.kernel_us += rank.kernel_us;
      sum.known_us += rank.known_us;
      sum.flops += rank.flops;
      sum.bytes += rank.bytes;
    }
    if (sum.kernel_us <= 0) return;
    title("What the GPUs achieve");
    text_ += fmt::format(
        "  busy {:.1f} % of the step, computing {:.1f} %; the work of {:.1f} % of the kernel time is known",
        percent(sum.busy_us, sum.step_us), percent(sum.computing_us, sum.step_us),
        percent(sum.known_us, sum.kernel_us));
    if (sum.known_us > 0) {
      text_ += fmt::format(": {} TFLOP/s of the step, {} TFLOP/s and {} GB/s of these kernels",
                           table_number(tflops(sum.flops, sum.step_us), 3),
                           table_number(tflops(sum.flops, sum.known_us), 3),
                           table_number(GBps(sum.bytes, sum.known_us), 0));
    }
    text_ += '\n';
    if (a_.platform && (rates.peak_tflops || rates.peak_GBps)) {
      std::string peaks;
      if (rates.peak_tflops)
        peaks = fmt::format("{} TFLOP/s {}", table_number(*rates.peak_tflops, 1), rates.peak_type);
      if (rates.peak_GBps)
        peaks +=
            fmt::format("{}{} GB/s of memory", peaks.empty() ? "" : ", ", table_number(*rates.peak_GBps, 0));
      text_ += fmt::format("  peaks of {}: {}\n", *a_.platform, peaks);
    }
    if (verbose_) rates_by_class_and_rank();
  }

  void rates_by_class_and_rank() {
    TextTable classes{{{"class", kLeft}, {"ms"}, {"known\n%"}, {"TFLOP/s"}, {"GB/s"}, {"% of peak\nmemory"}}};
    for (const ClassRate& c : a_.rates.classes) {
      const double rate = GBps(c.bytes, c.known_us);
      classes.row(
          {std::string{to_string(c.kernel_class)}, table_number(ms(c.time_us), 3),
           table_number(percent(c.known_us, c.time_us), 1),
           c.known_us > 0 ? table_number(tflops(c.flops, c.known_us), 3) : "-",
           c.known_us > 0 ? table_number(rate, 0) : "-",
           c.known_us > 0 && a_.rates.peak_GBps ? table_number(percent(rate, *a_.rates.peak_GBps), 1) : "-"});
    }
    text_ += classes.text(2);
    TextTable ranks{{{"rank", kLeft},
                     {"busy\n%"},
                     {"computing\n%"},
                     {"TFLOP/s\nof the step"},
                     {"TFLOP/s of\nknown kernels"}}};
    for (std::size_t c = 0; c < a_.rates.ranks.size(); ++c) {
      const RankUtilization& rank = a_.rates.ranks[c];
      ranks.row({rank_text(c), table_number(percent(rank.busy_us, rank.step_us), 1),
                 table_number(percent(rank.computing_us, rank.step_us), 1),
                 table_number(tflops(rank.flops, rank.step_us), 3),
                 table_number(tflops(rank.flops, rank.known_us), 3)});
    }
    text_ += ranks.text(2);
  }

  const ReplayAnalysis& a_;
  bool verbose_;
  std::string text_;
};

class DiagnosisJson {
 public:
  DiagnosisJson(JsonWriter& json, const ReplayAnalysis& analysis) : json_(json), a_(analysis) {}

  void run() {
    json_.key("diagnosis").begin_object();
    json_.field("platform", a_.platform);
    CulpritTimes mean{};
    for (std::size_t k = 0; k < kCulpritCount; ++k) mean[k] = a_.culprits.of(static_cast<Culprit>(k));
    times("culprits_ms", mean);
    json_.field("collectives", a_.culprits.collectives).field("ties", a_.culprits.ties);
    ranks();
    operators();
    awaited();
    groups();
    classes();
    where_known("peak_tflops", a_.rates.peak_tflops);
    where_known("peak_memory_GBps", a_.rates.peak_GBps);
    json_.end_object();
  }

 private:
  void ms_field(std::string_view key, double us) { json_.fixed_field(key, ms(us), 6); }

  void where_known(std::string_view key, const std::optional<double>& value) {
    json_.key(key);
    value ? json_.fixed(*value, 6) : json_.null();
  }

  void times(std::string_view key, const CulpritTimes& us) {
    json_.key(key).begin_object();
    for (std::size_t k = 0; k < kCulpritCount; ++k) ms_field(to_string(static_cast<Culprit>(k)), us[k]);
    json_.end_object();
  }

  void by_rank(const std::vector<double>& us) {
    json_.key("ranks_ms").begin_array();
    for (const double of_rank : us) json_.fixed(ms(of_rank), 6);
    json_.end_array();
  }

  void ranks() {
    json_.key("ranks").begin_array();
    for (std::size_t c = 0; c < a_.culprits.ranks.size(); ++c) {
      const RankCulprits& rank = a_.culprits.ranks[c];
      json_.begin_object().field("rank", a_.facts[c].rank).field("came_last", rank.came_last);
      ms_field("caused_wait_ms", rank.caused_wait_us);
      ms_field("waited_ms", rank.waited_us);
      times("own_ms", rank.own_us);
      times("through_others_ms", rank.through_others_us);
      times("caused_by_ms", rank.caused_by_us);
      if (c < a_.rates.ranks.size()) {
        const RankUtilization& rates = a_.rates.ranks[c];
        ms_field("gpu_busy_ms", rates.busy_us);
        ms_field("computing_ms", rates.computing_us);
        ms_field("kernels_ms", rates.kernel_us);
        ms_field("kernels_of_known_work_ms", rates.known_us);
        json_.fixed_field("flops", rates.flops, 0).fixed_field("bytes", rates.bytes, 0);
      }
      json_.end_object();
    }
    json_.end_array();
  }

  void operators() {
    json_.key("operators").begin_array();
    for (const OperatorComparison& op : a_.operators) {
      json_.begin_object().field("name", op.op).field("on", op.on_gpu ? "gpu" : "host");
      ms_field("median_ms", op.median_us);
      json_.field("slowest_rank", a_.facts[op.slowest].rank);
      ms_field("slowest_ms", op.times_us[op.slowest]);
      where_known("work_ratio", std::isfinite(op.work_ratio) ? std::optional{op.work_ratio} : std::nullopt);
      by_rank(op.times_us);
      json_.end_object();
    }
    json_.end_array();
  }

  void awaited() {
    json_.key("awaited_operators").begin_array();
    for (const AwaitedOperator& op : a_.awaited) {
      json_.begin_object().field("name", op.op);
      ms_field("gpu_idle_ms", op.gpu_idle_us);
      json_.field("gaps", op.gaps);
      by_rank(op.ranks_us);
      json_.end_object();
    }
    json_.end_array();
  }

  void groups() {
    json_.key("groups").begin_array();
    for (const GroupTraffic& g : a_.groups) {
      json_.begin_object().field("group", g.group).field("operation", g.operation);
      json_.field("n_ranks", g.n_ranks).field("n", g.n);
      json_.fixed_field("message_bytes", g.message_bytes, 0);
      ms_field("transfer_ms", g.transfer_us);
      ms_field("mean_wait_ms", g.wait_us);
      where_known("bus_GBps", g.bus_GBps);
      json_.fixed_field("largest_message_bytes", g.largest_message_bytes, 0);
      where_known("largest_bus_GBps", g.largest_bus_GBps);
      where_known("link_GBps", g.link_GBps);
      json_.field("link", g.link).field("holds_waiting", g.holds_waiting).end_object();
    }
    json_.end_array();
  }

  void classes() {
    json_.key("classes").begin_array();
    for (const ClassRate& c : a_.rates.classes) {
      json_.begin_object().field("class", to_string(c.kernel_class));
      ms_field("time_ms", c.time_us);
      ms_field("of_known_work_ms", c.known_us);
      json_.fixed_field("flops", c.flops, 0).fixed_field("bytes", c.bytes, 0);
      json_.end_object();
    }
    json_.end_array();
  }

  JsonWriter& json_;
  const ReplayAnalysis& a_;
};

}  // namespace

std::string diagnosis_text(const ReplayAnalysis& analysis, bool verbose) {
  return DiagnosisText{analysis, verbose}.run();
}

void write_diagnosis(JsonWriter& json, const ReplayAnalysis& analysis) {
  DiagnosisJson{json, analysis}.run();
}

}  // namespace stepcast
