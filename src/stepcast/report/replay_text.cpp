#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/statistics.h"
#include "stepcast/report/forecast_text.h"
#include "stepcast/report/replay_details.h"
#include "stepcast/report/replay_diagnosis.h"
#include "stepcast/report/replay_report.h"
#include "stepcast/report/replay_verdict.h"
#include "stepcast/report/spread_text.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr auto kLeft = TextTable::Align::left;

double ms(double us) { return us * 1e-3; }
double percent(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

struct ErrorSummary {
  double median_percent = 0;
  double max_percent = 0;
};

ErrorSummary summarize(const std::vector<TimePair>& pairs) {
  std::vector<double> errors;
  for (const TimePair& pair : pairs) errors.push_back(100.0 * std::abs(pair.error()));
  return {median(errors), errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end())};
}

std::vector<TimePair> steps_of(const ReplayAnalysis& a) {
  std::vector<TimePair> pairs;
  for (const ReplayedRank& rank : a.ranks) pairs.push_back(rank.step);
  return pairs;
}

std::vector<TimePair> windows_of(const ReplayAnalysis& a) {
  std::vector<TimePair> pairs;
  for (const ReplayedRank& rank : a.ranks) pairs.push_back(rank.gpu_window);
  return pairs;
}

std::string op_text(const ForecastCollective& collective) {
  return collective.operation == to_string(CollectiveOp::unknown) ? collective.name : collective.operation;
}

class TextReport {
 public:
  TextReport(const ReplayAnalysis& analysis, const ReplayReportOptions& options)
      : a_(analysis), classes_(analysis.simulated.classes), options_(options) {}

  std::string run() {
    header();
    ranks();
    memory();
    kernels();
    collectives();
    text_ += diagnosis_text(a_, options_.verbose);
    path();
    text_ += explained_text(a_);
    if (a_.simulated.series) text_ += series_text(*a_.simulated.series, options_.verbose);
    if (a_.simulated.scenarios) text_ += scenarios_text(*a_.simulated.scenarios, classes_);
    if (options_.verbose) {
      text_ += streams_text(a_);
      text_ += threads_text(a_);
      text_ += constants_text(a_);
    }
    if (a_.simulated.throughput.samples_per_s || a_.simulated.throughput.tokens_per_s) {
      text_ += "\n" + throughput_text(a_.simulated);
    }
    text_ += training_text(a_.simulated);
    notes();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void title(std::string_view text) {
    text_ += '\n';
    text_ += text;
    text_ += '\n';
  }

  std::string rank_text(std::size_t rank_class) const { return fmt::format("{}", a_.facts[rank_class].rank); }

  void header() {
    std::uint64_t events = 0;
    std::uint64_t execution_traces = 0;
    std::set<std::string> devices;
    std::set<std::int32_t> worlds;
    for (const ReplayInput& input : a_.inputs) {
      events += input.events;
      if (input.execution_trace) ++execution_traces;
      if (input.device) devices.insert(*input.device);
      if (input.world_size) worlds.insert(*input.world_size);
    }
    const std::optional<std::int64_t> step = a_.simulated.step;
    line("Replay of {}", in_one_line(a_.simulated.traces.value_or("")));
    line("  {}", replay_verdict(a_));
    if (const std::string culprits = culprit_sentence(a_); !culprits.empty()) line("  {}", culprits);
    std::string what = counted(a_.inputs.size(), "rank", "ranks");
    if (worlds.size() == 1 && *worlds.begin() > 1) {
      what = fmt::format("{} of {} ranks", a_.inputs.size(), *worlds.begin());
    }
    line("  {} on {}; {}, {} read; {}", what,
         devices.empty() ? std::string{"a GPU that the trace does not name"}
                         : fmt::format("{}", fmt::join(devices, ", ")),
         step ? fmt::format("step {}", *step) : std::string{"the whole trace (it marks no steps)"},
         counted(events, "event", "events"),
         execution_traces == 0
             ? std::string{"no execution traces"}
             : counted(execution_traces, "execution trace", "execution traces") + " joined");
    const ErrorSummary step_error = summarize(steps_of(a_));
    const ErrorSummary window_error = summarize(windows_of(a_));
    line("  Work is replayed with its recorded durations; all waiting is simulated from the dependencies.");
    TextTable table{{{"", kLeft}, {"median\n|error| %"}, {"largest\n%"}}};
    const auto add = [&](std::string name, const ErrorSummary& error) {
      table.row({std::move(name), table_number(error.median_percent, 3), table_number(error.max_percent, 3)});
    };
    add(step ? "step time" : "whole trace", step_error);
    add("GPU window (step start to the last end of GPU work launched in it)", window_error);
    if (a_.ranks.size() > 1) {
      add(fmt::format("all ranks together ({} ms measured, {} ms simulated)",
                      table_number(ms(a_.global_window.measured_us), 3),
                      table_number(ms(a_.global_window.simulated_us), 3)),
          summarize({a_.global_window}));
    }
    if (const ReplayVariant* naive = a_.variant("naive"); naive != nullptr) {
      add("for comparison: naive replay (waits cut to their base cost, no dependencies of GPU work)",
          summarize(naive->step));
    }
    text_ += table.text(2);
    if (a_.warning) line("  Warning: {}", *a_.warning);
  }

  void ranks() {
    title("Rank by rank: measured and simulated step, and what the GPU does in the simulated step (ms)");
    std::vector<TextTable::Column> columns{
        {"rank", kLeft},         {"measured"},       {"simulated"},     {"error\n%"},
        {"GPU window\nerror %"}, {"compu-\ntation"}, {"exposed\ncomm"}, {"exposed\nmemcpy"}};
    const std::vector<std::string> causes = idle_causes(classes_);
    for (std::size_t i = 0; i < causes.size(); ++i) columns.push_back({idle_heading(causes[i], i == 0)});
    TextTable table{std::move(columns)};
    std::vector<double> sums;
    for (std::size_t c = 0; c < a_.ranks.size(); ++c) {
      const ReplayedRank& rank = a_.ranks[c];
      const ForecastClass& parts = classes_[c];
      std::vector<double> row{ms(rank.step.measured_us), ms(rank.step.simulated_us), parts.computation_ms,
                              parts.exposed_comm_ms, parts.exposed_memcpy_ms};
      for (const std::string& cause : causes) row.push_back(time_ms(parts.idle_ms, cause));
      sums.resize(row.size());
      std::vector<std::string> cells{fmt::format("{}", rank.rank)};
      for (std::size_t i = 0; i < row.size(); ++i) {
        sums[i] += row[i];
        cells.push_back(table_number(row[i], 3));
        if (i == 1) {
          cells.push_back(table_signed(100 * rank.step.error(), 3));
          cells.push_back(table_signed(100 * rank.gpu_window.error(), 3));
        }
      }
      table.row(std::move(cells));
    }
    if (a_.ranks.size() > 1) {
      const auto n = static_cast<double>(a_.ranks.size());
      std::vector<std::string> cells{"mean"};
      for (std::size_t i = 0; i < sums.size(); ++i) {
        cells.push_back(table_number(sums[i] / n, 3));
        if (i == 1) cells.insert(cells.end(), {"", ""});
      }
      table.rule();
      table.row(std::move(cells));
    }
    text_ += table.text(2);
    constexpr std::array kWords{"seven", "eight", "nine"};  // 3 parts of work, 4 to 6 causes
    line("  The last {} columns sum to the simulated step. Exposed: nothing computes meanwhile.",
         kWords.at(causes.size() - 4));
    if (!a_.collective_waits.empty()) {
      line(
          "  Idle for another rank: inside a collective, until the last rank arrives; exposed comm is the "
          "transfer after that.");
    }
  }

  void kernels() {
    title("GPU time by class of work, per rank (ms; streams that work at the same time count twice)");
    const bool alone = a_.ranks.size() == 1;
    TextTable table =
        alone
            ? TextTable{{{"class", kLeft}, {"ms"}, {"share of\nstep %"}}}
            : TextTable{{{"class", kLeft}, {"mean"}, {"least"}, {"most"}, {"on rank"}, {"share of\nstep %"}}};
    double step_sum = 0;
    for (const ReplayedRank& rank : a_.ranks) step_sum += rank.step.simulated_us;
    struct Row {
      std::string name;
      std::vector<double> ms;  // [rank class]
    };
    std::vector<Row> rows;
    for (int k = 0; k < kKernelClassCount; ++k) {
      Row row{std::string{to_string(static_cast<KernelClass>(k))}, {}};
      for (const ForecastClass& c : classes_) row.ms.push_back(time_ms(c.kernels_ms, row.name));
      rows.push_back(std::move(row));
    }
    // Where no collective joins two ranks, nothing tells waiting for the others from transfer.
    const char* const comm =
        a_.collective_waits.empty() ? "communication: waiting and transfer" : "communication: transfer";
    Row copies{"copies and fills", {}}, transfer{comm, {}}, hidden{"  of it under computation", {}},
        waiting{"communication: waiting", {}};
    for (const ForecastClass& c : classes_) {
      double copy_ms = 0;
      for (const ForecastStream& stream : c.streams) copy_ms += stream.memcpy_ms;
      copies.ms.push_back(copy_ms);
      transfer.ms.push_back(c.transfer_ms);
      hidden.ms.push_back(c.overlap_ms);
      waiting.ms.push_back(c.collective_wait_ms);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return std::accumulate(a.ms.begin(), a.ms.end(), 0.0) > std::accumulate(b.ms.begin(), b.ms.end(), 0.0);
    });
    for (Row* row : {&copies, &transfer, &hidden, &waiting}) rows.push_back(std::move(*row));
    for (const Row& row : rows) {
      const double sum = std::accumulate(row.ms.begin(), row.ms.end(), 0.0);
      if (sum <= 0) continue;
      const auto most = std::max_element(row.ms.begin(), row.ms.end());
      const auto least = std::min_element(row.ms.begin(), row.ms.end());
      const auto where = static_cast<std::size_t>(most - row.ms.begin());
      const std::string share = table_number(percent(sum, ms(step_sum)), 1);
      if (alone) {
        table.row({row.name, table_number(sum, 3), share});
        continue;
      }
      table.row({row.name, table_number(sum / static_cast<double>(row.ms.size()), 3), table_number(*least, 3),
                 table_number(*most, 3), rank_text(where), share});
    }
    text_ += table.text(2);
    line(
        "  Published baseline (largest sum of GPU work on one stream, no CPU, no waiting): {} ms, {} % of "
        "the longest "
        "measured step",
        table_number(a_.baseline_ms, 3), table_number(percent(a_.baseline_ms, ms(longest_measured())), 1));
  }

  double longest_measured() const {
    double longest = 0;
    for (const ReplayedRank& rank : a_.ranks) longest = std::max(longest, rank.step.measured_us);
    return longest;
  }

  void collectives() {
    const std::vector<ForecastCollective>& all = a_.simulated.collectives;
    if (all.empty()) return;
    std::vector<std::size_t> shown(all.size());
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    const bool complete = shown.size() <= options_.collectives;
    if (!complete) {
      std::stable_sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
        return all[a].total_wait_us + all[a].transfer_us > all[b].total_wait_us + all[b].transfer_us;
      });
      shown.resize(options_.collectives);
      std::sort(shown.begin(), shown.end());
    }
    title(complete
              ? std::string{"Collectives: who came last, and how long the others waited"}
              : fmt::format("Collectives: who came last, and how long the others waited ({} of {}: those "
                            "that cost most)",
                            shown.size(), all.size()));
    TextTable table{{{"#"},
                     {"operation", kLeft},
                     {"message"},
                     {"ranks"},
                     {"came last:\nrank"},
                     {"others waited\nmean us"},
                     {"longest\nus"},
                     {"longest\nrecorded us"},
                     {"transfer\nus"},
                     {"exposed\n%"}}};
    for (const std::size_t i : shown) {
      const ForecastCollective& collective = all[i];
      const std::size_t n = collective.members.size();
      double exposed = 0;
      double transfer = 0;
      for (const ForecastMember& member : collective.members) {
        exposed += member.exposed_us;
        transfer += member.transfer_us;
      }
      const bool alone = n < 2;
      table.row({fmt::format("{}", i), op_text(collective),
                 table_bytes(collective.message_bytes.value_or(-1)), fmt::format("{}", n),
                 alone ? "-" : rank_text(collective.came_last),
                 alone ? "-" : table_number(collective.total_wait_us / static_cast<double>(n - 1), 0),
                 alone ? "-" : table_number(collective.longest_wait_us, 0),
                 alone ? "-" : table_number(a_.recorded_longest_wait_us[i], 0),
                 table_number(collective.transfer_us, 0), table_number(percent(exposed, transfer), 0)});
    }
    text_ += table.text(2);
    if (!a_.collective_waits.empty()) {
      std::size_t agreeing = 0;
      double worst = 0;
      for (const CollectiveWait& wait : a_.collective_waits) {
        if (wait.agrees()) ++agreeing;
        worst = std::max(worst, std::abs(wait.simulated_us - wait.recorded_us));
      }
      line("  {} of {} waits agree with the record within 5 % + 20 us; largest difference {} us", agreeing,
           a_.collective_waits.size(), table_number(worst, 1));
    } else {
      line(
          "  Only one rank is here, so its stay in a collective is replayed as recorded: waiting and "
          "transfer together.");
    }
  }

  void path() {
    const ForecastPath& path = a_.simulated.critical_path;
    if (path.n_steps == 0) return;
    title(fmt::format("Critical path to the end of rank {}: {} ms through all ranks, {} steps",
                      rank_text(path.ends_on.value_or(0)), table_number(path.length_ms, 3),
                      table_count(path.n_steps)));
    const auto shares = [&](std::string_view heading, const std::vector<ForecastShare>& list,
                            std::size_t most) {
      std::vector<std::string> parts;
      for (const ForecastShare& share : list) {
        if (parts.size() == most) break;
        const double part = percent(share.time_ms, path.length_ms);
        if (part < 0.05) continue;
        parts.push_back(fmt::format("{} {} %", share.what, table_number(part, 1)));
      }
      line("  {}: {}", heading, fmt::join(parts, ", "));
    };
    shares("by class", path.by_class, 12);
    shares("by rank", path.by_rank, 12);
    if (options_.critical_path == 0) return;
    TextTable table{{{"longest contributors", kLeft}, {"ms"}, {"% of path"}, {"steps"}}};
    std::size_t rows = 0;
    for (const ForecastShare& share : path.by_name) {
      if (rows++ == options_.critical_path) break;
      table.row({shorten(share.what.empty() ? "(no op)" : share.what, 72), table_number(share.time_ms, 3),
                 table_number(percent(share.time_ms, path.length_ms), 1), table_count(share.steps)});
    }
    text_ += table.text(2);
  }

  void memory() {
    TextTable table{{{"rank", kLeft}, {"allocated"}, {"reserved"}}};
    bool any = false;
    for (const RecordedStepFacts& facts : a_.facts) {
      if (!facts.memory) continue;
      constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
      any = true;
      table.row({fmt::format("{}", facts.rank),
                 table_number(static_cast<double>(facts.memory->allocated_bytes) / kGiB, 2),
                 table_number(static_cast<double>(facts.memory->reserved_bytes) / kGiB, 2)});
    }
    if (!any) return;
    title("Largest totals of the caching allocator in the recorded step (GiB)");
    text_ += table.text(2);
  }

  void notes() {
    if (a_.simulated.notes.empty()) return;
    title("Notes");
    for (const std::string& note : a_.simulated.notes) line("  - {}", note);
  }

  const ReplayAnalysis& a_;
  const std::vector<ForecastClass>& classes_;  // of the simulated step
  ReplayReportOptions options_;
  std::string text_;
};

}  // namespace

std::string replay_text(const ReplayAnalysis& analysis, const ReplayReportOptions& options) {
  return TextReport{analysis, options}.run();
}

}  // namespace stepcast
