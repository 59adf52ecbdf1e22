#include "stepcast/report/replay_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/version.h"
#include "stepcast/report/json_writer.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

constexpr auto kLeft = TextTable::Align::left;

double ms(double us) { return us * 1e-3; }
double percent(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

struct ErrorSummary {
  double median_percent = 0;
  double max_percent = 0;
};

ErrorSummary summarize(const std::vector<TimePair>& pairs) {
  std::vector<double> errors;
  for (const TimePair& pair : pairs) errors.push_back(100.0 * std::abs(pair.error()));
  return {median(errors), errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end())};
}

std::vector<TimePair> steps_of(const Replay& replay) {
  std::vector<TimePair> pairs;
  for (const ReplayedRank& rank : replay.ranks) pairs.push_back(rank.step);
  return pairs;
}

std::vector<TimePair> windows_of(const Replay& replay) {
  std::vector<TimePair> pairs;
  for (const ReplayedRank& rank : replay.ranks) pairs.push_back(rank.gpu_window);
  return pairs;
}

const ReplayVariant* find_variant(const Replay& replay, std::string_view name) {
  for (const ReplayVariant& variant : replay.variants) {
    if (variant.name == name) return &variant;
  }
  return nullptr;
}

// Kept delays as they are reported: hand-off, busy device, left-over work, everything else.
struct KeptDelays {
  double handoff_us = 0, busy_us = 0, left_over_us = 0, other_us = 0;
};

KeptDelays kept_delays(const RecordedStepFacts& facts) {
  KeptDelays kept;
  for (std::size_t o = 0; o < facts.kept_delay_us.size(); ++o) {
    const double delay = facts.kept_delay_us[o];
    switch (static_cast<EdgeOrigin>(o)) {
      case EdgeOrigin::thread_handoff: kept.handoff_us += delay; break;
      case EdgeOrigin::device_busy: kept.busy_us += delay; break;
      case EdgeOrigin::recorded_offset: kept.left_over_us += delay; break;
      default: kept.other_us += delay; break;
    }
  }
  return kept;
}

std::string plural(std::uint64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", table_count(n), n == 1 ? one : many);
}

std::string op_text(const Program& program, const CollectiveOccurrence& occurrence) {
  if (occurrence.op != CollectiveOp::unknown) return std::string{to_string(occurrence.op)};
  const std::string_view name = program.names.text(occurrence.name);
  return name.empty() ? "unknown" : std::string{name};
}

std::string rank_text(const Replay& replay, RankClassId c) {
  return fmt::format("{}", replay.recorded.facts[c.index()].rank);
}

class TextReport {
 public:
  TextReport(const TraceSet& traces, const ReplayAnalysis& analysis, const ReplayReportOptions& options)
      : traces_(traces), a_(analysis), replay_(*analysis.replay), options_(options) {}

  std::string run() {
    header();
    ranks();
    kernels();
    collectives();
    path();
    honesty();
    if (options_.verbose) {
      streams();
      threads();
      constants();
    }
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

  void header() {
    std::uint64_t events = 0;
    std::uint64_t execution_traces = 0;
    std::set<std::string> devices;
    std::set<std::int32_t> worlds;
    for (std::size_t i = 0; i < traces_.ranks.size(); ++i) {
      const RecordedRank& rank = traces_.ranks[i];
      events += rank.event_count;
      if (traces_.execution_traces[i]) ++execution_traces;
      if (!rank.devices.empty()) devices.insert(rank.devices.front().name);
      if (rank.world_size) worlds.insert(*rank.world_size);
    }
    const std::int64_t step =
        replay_.recorded.facts.empty() ? -1 : replay_.recorded.facts.front().step_number;
    line("Replay of {}", traces_.name);
    std::string what = plural(traces_.ranks.size(), "rank", "ranks");
    if (worlds.size() == 1 && *worlds.begin() > 1) {
      what = fmt::format("{} of {} ranks", traces_.ranks.size(), *worlds.begin());
    }
    line("  {} on {}; {}, {} read; {}", what,
         devices.empty() ? std::string{"a GPU that the trace does not name"}
                         : fmt::format("{}", fmt::join(devices, ", ")),
         step >= 0 ? fmt::format("step {}", step) : std::string{"the whole trace (it marks no steps)"},
         plural(events, "event", "events"),
         execution_traces == 0 ? std::string{"no execution traces"}
                               : plural(execution_traces, "execution trace", "execution traces") + " joined");
    const ErrorSummary step_error = summarize(steps_of(replay_));
    const ErrorSummary window_error = summarize(windows_of(replay_));
    line("  Work is replayed with its recorded durations; all waiting is simulated from the dependencies.");
    TextTable table{{{"", kLeft}, {"median\n|error| %"}, {"largest\n%"}}};
    const auto add = [&](std::string name, const ErrorSummary& error) {
      table.row({std::move(name), table_number(error.median_percent, 3), table_number(error.max_percent, 3)});
    };
    add(step >= 0 ? "step time" : "whole trace", step_error);
    add("GPU window (step start to the last end of GPU work launched in it)", window_error);
    if (replay_.ranks.size() > 1) {
      add(fmt::format("all ranks together ({} ms measured, {} ms simulated)",
                      table_number(ms(replay_.global_window.measured_us), 3),
                      table_number(ms(replay_.global_window.simulated_us), 3)),
          summarize({replay_.global_window}));
    }
    if (const ReplayVariant* naive = find_variant(replay_, "naive"); naive != nullptr) {
      add("for comparison: naive replay (waits cut to their base cost, no dependencies of GPU work)",
          summarize(naive->step));
    }
    text_ += table.text(2);
  }

  void ranks() {
    title("Rank by rank: measured and simulated step, and what the GPU does in the simulated step (ms)");
    TextTable table{{{"rank", kLeft},
                     {"measured"},
                     {"simulated"},
                     {"error\n%"},
                     {"GPU window\nerror %"},
                     {"compu-\ntation"},
                     {"exposed\ncomm"},
                     {"exposed\nmemcpy"},
                     {"idle: waits\nfor the CPU"},
                     {"for another\nstream"},
                     {"for another\nrank"},
                     {"rest"}}};
    std::array<double, 9> sums{};
    for (std::size_t c = 0; c < replay_.ranks.size(); ++c) {
      const ReplayedRank& rank = replay_.ranks[c];
      const RankBreakdown& parts = a_.simulated_ranks[c];
      const std::array<double, 9> row{rank.step.measured_us,
                                      rank.step.simulated_us,
                                      parts.computation_us,
                                      parts.exposed_comm_us,
                                      parts.exposed_memcpy_us,
                                      parts.idle.of(IdleCause::cpu),
                                      parts.idle.of(IdleCause::other_stream),
                                      parts.idle.of(IdleCause::other_rank),
                                      parts.idle.of(IdleCause::rest)};
      std::vector<std::string> cells{fmt::format("{}", rank.rank)};
      for (std::size_t i = 0; i < row.size(); ++i) {
        sums[i] += row[i];
        cells.push_back(table_number(ms(row[i]), 3));
        if (i == 1) {
          cells.push_back(table_signed(100 * rank.step.error(), 3));
          cells.push_back(table_signed(100 * rank.gpu_window.error(), 3));
        }
      }
      table.row(std::move(cells));
    }
    if (replay_.ranks.size() > 1) {
      const auto n = static_cast<double>(replay_.ranks.size());
      std::vector<std::string> cells{"mean"};
      for (std::size_t i = 0; i < sums.size(); ++i) {
        cells.push_back(table_number(ms(sums[i] / n), 3));
        if (i == 1) cells.insert(cells.end(), {"", ""});
      }
      table.rule();
      table.row(std::move(cells));
    }
    text_ += table.text(2);
    line("  The last seven columns sum to the simulated step. Exposed: nothing computes meanwhile.");
    if (!replay_.collective_waits.empty()) {
      line(
          "  Idle for another rank: inside a collective, until the last rank arrives; exposed comm is the "
          "transfer after that.");
    }
  }

  void kernels() {
    title("GPU time by class of work, per rank (ms; streams that work at the same time count twice)");
    const bool alone = replay_.ranks.size() == 1;
    TextTable table =
        alone
            ? TextTable{{{"class", kLeft}, {"ms"}, {"share of\nstep %"}}}
            : TextTable{{{"class", kLeft}, {"mean"}, {"least"}, {"most"}, {"on rank"}, {"share of\nstep %"}}};
    double step_sum = 0;
    for (const ReplayedRank& rank : replay_.ranks) step_sum += rank.step.simulated_us;
    struct Row {
      std::string name;
      std::vector<double> time_us;  // [rank class]
    };
    std::vector<Row> rows;
    for (int k = 0; k < kKernelClassCount; ++k) {
      Row row{std::string{to_string(static_cast<KernelClass>(k))}, {}};
      for (const RankBreakdown& rank : a_.simulated_ranks) {
        row.time_us.push_back(rank.kernels_us[static_cast<std::size_t>(k)]);
      }
      rows.push_back(std::move(row));
    }
    // Where no collective joins two ranks, nothing tells waiting for the others from transfer.
    const char* const comm =
        replay_.collective_waits.empty() ? "communication: waiting and transfer" : "communication: transfer";
    Row copies{"copies and fills", {}}, transfer{comm, {}}, hidden{"  of it under computation", {}},
        waiting{"communication: waiting", {}};
    for (const RankBreakdown& rank : a_.simulated_ranks) {
      double copy_us = 0;
      for (const StreamBreakdown& stream : rank.streams) copy_us += stream.memcpy_us;
      copies.time_us.push_back(copy_us);
      transfer.time_us.push_back(rank.transfer_us);
      hidden.time_us.push_back(rank.overlap_us);
      waiting.time_us.push_back(rank.collective_wait_us);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return std::accumulate(a.time_us.begin(), a.time_us.end(), 0.0) >
             std::accumulate(b.time_us.begin(), b.time_us.end(), 0.0);
    });
    for (Row* row : {&copies, &transfer, &hidden, &waiting}) rows.push_back(std::move(*row));
    for (const Row& row : rows) {
      const double sum = std::accumulate(row.time_us.begin(), row.time_us.end(), 0.0);
      if (sum <= 0) continue;
      const auto most = std::max_element(row.time_us.begin(), row.time_us.end());
      const auto least = std::min_element(row.time_us.begin(), row.time_us.end());
      const RankClassId where{static_cast<std::size_t>(most - row.time_us.begin())};
      const std::string share = table_number(percent(sum, step_sum), 1);
      if (alone) {
        table.row({row.name, table_number(ms(sum), 3), share});
        continue;
      }
      table.row({row.name, table_number(ms(sum / static_cast<double>(row.time_us.size())), 3),
                 table_number(ms(*least), 3), table_number(ms(*most), 3), rank_text(replay_, where), share});
    }
    text_ += table.text(2);
    line(
        "  Published baseline (largest sum of GPU work on one stream, no CPU, no waiting): {} ms, {} % of "
        "the longest "
        "measured step",
        table_number(ms(a_.baseline.time_us), 3),
        table_number(percent(a_.baseline.time_us, longest_measured()), 1));
  }

  double longest_measured() const {
    double longest = 0;
    for (const ReplayedRank& rank : replay_.ranks) longest = std::max(longest, rank.step.measured_us);
    return longest;
  }

  void collectives() {
    std::vector<const CollectiveOccurrence*> shown;
    for (const CollectiveOccurrence& occurrence : a_.simulated_collectives) shown.push_back(&occurrence);
    if (shown.empty()) return;
    std::map<CollectiveId, std::size_t> number;  // in order of time
    for (std::size_t i = 0; i < shown.size(); ++i) number[shown[i]->collective] = i;
    std::map<CollectiveId, double> recorded_longest;
    for (const CollectiveWait& wait : replay_.collective_waits) {
      double& longest = recorded_longest[wait.collective];
      longest = std::max(longest, wait.recorded_us);
    }
    const bool all = shown.size() <= options_.collectives;
    if (!all) {
      std::stable_sort(shown.begin(), shown.end(),
                       [](const CollectiveOccurrence* a, const CollectiveOccurrence* b) {
                         return a->total_wait_us + a->transfer_us > b->total_wait_us + b->transfer_us;
                       });
      shown.resize(options_.collectives);
      std::sort(shown.begin(), shown.end(),
                [&](const CollectiveOccurrence* a, const CollectiveOccurrence* b) {
                  return number[a->collective] < number[b->collective];
                });
    }
    title(all ? std::string{"Collectives: who came last, and how long the others waited"}
              : fmt::format("Collectives: who came last, and how long the others waited ({} of {}: those "
                            "that cost most)",
                            shown.size(), a_.simulated_collectives.size()));
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
    for (const CollectiveOccurrence* occurrence : shown) {
      const std::size_t n = occurrence->members.size();
      double exposed = 0;
      double transfer = 0;
      for (const CollectiveArrival& member : occurrence->members) {
        exposed += member.exposed_us;
        transfer += member.transfer_us;
      }
      const bool alone = n < 2;
      table.row({fmt::format("{}", number[occurrence->collective]),
                 op_text(replay_.recorded.program, *occurrence), table_bytes(occurrence->message_bytes),
                 fmt::format("{}", n),
                 alone ? "-" : rank_text(replay_, occurrence->members[occurrence->last].rank_class),
                 alone ? "-" : table_number(occurrence->total_wait_us / static_cast<double>(n - 1), 0),
                 alone ? "-" : table_number(occurrence->longest_wait_us, 0),
                 alone ? "-" : table_number(recorded_longest[occurrence->collective], 0),
                 table_number(occurrence->transfer_us, 0), table_number(percent(exposed, transfer), 0)});
    }
    text_ += table.text(2);
    if (!replay_.collective_waits.empty()) {
      std::size_t agreeing = 0;
      double worst = 0;
      for (const CollectiveWait& wait : replay_.collective_waits) {
        if (wait.agrees()) ++agreeing;
        worst = std::max(worst, std::abs(wait.simulated_us - wait.recorded_us));
      }
      line("  {} of {} waits agree with the record within 5 % + 20 us; largest difference {} us", agreeing,
           replay_.collective_waits.size(), table_number(worst, 1));
    } else {
      line(
          "  Only one rank is here, so its stay in a collective is replayed as recorded: waiting and "
          "transfer together.");
    }
  }

  void path() {
    if (a_.path.steps.empty()) return;
    const double length = a_.path.time.length_us();
    title(fmt::format("Critical path to the end of rank {}: {} ms through all ranks, {} steps",
                      rank_text(replay_, a_.path.last_rank), table_number(ms(length), 3),
                      table_count(a_.path.steps.size())));
    const auto shares = [&](std::string_view heading, const std::vector<PathShare>& list, std::size_t most) {
      std::vector<std::string> parts;
      for (const PathShare& share : list) {
        if (parts.size() == most) break;
        const double part = percent(share.time_us, length);
        if (part < 0.05) continue;
        parts.push_back(fmt::format("{} {} %", share.what, table_number(part, 1)));
      }
      line("  {}: {}", heading, fmt::join(parts, ", "));
    };
    shares("by class", path_by_class(a_.flat, a_.path), 12);
    shares("by rank", path_by_rank(a_.flat, a_.path), 12);
    if (options_.critical_path == 0) return;
    TextTable table{{{"longest contributors", kLeft}, {"ms"}, {"% of path"}, {"steps"}}};
    std::size_t rows = 0;
    for (const PathShare& share : path_by_name(a_.flat, a_.path)) {
      if (rows++ == options_.critical_path) break;
      table.row({shorten(share.what.empty() ? "(no op)" : share.what, 72), table_number(ms(share.time_us), 3),
                 table_number(percent(share.time_us, length), 1), table_count(share.steps)});
    }
    text_ += table.text(2);
  }

  void honesty() {
    title("How much of this is explained (per rank, share of the measured step)");
    const ReplayVariant* naive = find_variant(replay_, "naive");
    const ReplayVariant* smallest = find_variant(replay_, "smallest_handoff");
    std::vector<TextTable::Column> columns{{"rank", kLeft},
                                           {"waiting\nsimulated %"},
                                           {"waiting not\nexplained %"},
                                           {"kept: thread\nhand-off us"},
                                           {"busy\ndevice us"},
                                           {"left-over\nwork us"},
                                           {"other\nus"},
                                           {"GPU starts off by\nmedian us"},
                                           {"p95\nus"},
                                           {"max\nus"}};
    if (smallest != nullptr) columns.push_back({"error with least\nhand-off %"});
    if (naive != nullptr) columns.push_back({"error of\nnaive %"});
    TextTable table{std::move(columns)};
    for (std::size_t c = 0; c < replay_.ranks.size(); ++c) {
      const ReplayedRank& rank = replay_.ranks[c];
      const RecordedStepFacts& facts = replay_.recorded.facts[c];
      const KeptDelays kept = kept_delays(facts);
      std::vector<std::string> cells{
          fmt::format("{}", rank.rank),
          table_number(percent(rank.simulated_wait_us, rank.step.simulated_us), 1),
          table_number(percent(facts.unexplained_wait_us, rank.step.measured_us), 3),
          table_number(kept.handoff_us, 0),
          table_number(kept.busy_us, 0),
          table_number(kept.left_over_us, 0),
          table_number(kept.other_us, 0),
          table_number(rank.kernel_start.median_us, 1),
          table_number(rank.kernel_start.p95_us, 1),
          table_number(rank.kernel_start.max_us, 1)};
      if (smallest != nullptr) cells.push_back(table_signed(100 * smallest->step[c].error(), 2));
      if (naive != nullptr) cells.push_back(table_signed(100 * naive->step[c].error(), 1));
      table.row(std::move(cells));
    }
    text_ += table.text(2);
    line("  waiting simulated: the thread that ends the step does nothing, because a dependency holds it.");
    line(
        "  not explained: waiting in calls that no dependency accounts for. It is left out, so it shows as "
        "error.");
    line(
        "  kept: recorded delays that stand on a dependency as they are; they count as kept, not as "
        "explained.");
  }

  void streams() {
    title("Streams in the simulated step (ms)");
    TextTable table{{{"rank", kLeft},
                     {"stream", kLeft},
                     {"tasks"},
                     {"compu-\ntation"},
                     {"transfer"},
                     {"exposed"},
                     {"copies"},
                     {"exposed"},
                     {"idle: waits\nfor the CPU"},
                     {"for another\nstream"},
                     {"for another\nrank"},
                     {"rest"}}};
    for (std::size_t c = 0; c < a_.simulated_ranks.size(); ++c) {
      const std::vector<Lane>& lanes = replay_.recorded.program.rank_classes()[c].lanes;
      std::vector<StreamBreakdown> by_number = a_.simulated_ranks[c].streams;
      std::stable_sort(by_number.begin(), by_number.end(),
                       [&](const StreamBreakdown& a, const StreamBreakdown& b) {
                         return lanes[a.lane].recorded < lanes[b.lane].recorded;
                       });
      for (const StreamBreakdown& s : by_number) {
        table.row({rank_text(replay_, RankClassId{c}), s.name, table_count(s.tasks),
                   table_number(ms(s.computation_us), 3), table_number(ms(s.transfer_us), 3),
                   table_number(ms(s.exposed_comm_us), 3), table_number(ms(s.memcpy_us), 3),
                   table_number(ms(s.exposed_memcpy_us), 3), table_number(ms(s.idle.of(IdleCause::cpu)), 3),
                   table_number(ms(s.idle.of(IdleCause::other_stream)), 3),
                   table_number(ms(s.idle.of(IdleCause::other_rank)), 3),
                   table_number(ms(s.idle.of(IdleCause::rest)), 3)});
      }
    }
    text_ += table.text(2);
  }

  void threads() {
    title("CPU threads in the simulated step (ms)");
    TextTable table{{{"rank", kLeft},
                     {"thread", kLeft},
                     {"busy"},
                     {"waits for\nGPU"},
                     {"for another\nthread"},
                     {"rest"},
                     {"busiest with", kLeft}}};
    for (std::size_t c = 0; c < a_.simulated_ranks.size(); ++c) {
      for (const ThreadBreakdown& t : a_.simulated_ranks[c].threads) {
        std::string busiest;
        if (!t.busy_by_op.empty()) {
          const OpTime& op = t.busy_by_op.front();
          busiest = fmt::format("{} ({} ms)", op.name.empty() ? "(no op)" : shorten(op.name, 48),
                                table_number(ms(op.time_us), 3));
        }
        table.row({rank_text(replay_, RankClassId{c}), t.name, table_number(ms(t.busy_us), 3),
                   table_number(ms(t.idle.of(IdleCause::gpu)), 3),
                   table_number(ms(t.idle.of(IdleCause::other_thread)), 3),
                   table_number(ms(t.idle.of(IdleCause::rest)), 3), busiest});
      }
    }
    text_ += table.text(2);
  }

  void constants() {
    title("Constants, each learned from operations that did not wait");
    TextTable table{{{"constant", kLeft}, {"us"}, {"learned from"}, {"of"}, {"", kLeft}}};
    for (const LearnedConstant& constant : replay_.recorded.constants) {
      table.row({describe(constant.delay, replay_.recorded.program.names), table_number(constant.value_us, 2),
                 table_count(constant.clean), table_count(constant.all),
                 constant.fallback ? "smallest of all: none was clean" : ""});
    }
    text_ += table.text(2);
    title("Dependencies (inferred ones in brackets: concluded from the trace, not written in it)");
    std::vector<TextTable::Column> columns{{"rank", kLeft}};
    for (int o = 0; o < kEdgeOriginCount; ++o)
      columns.push_back({std::string{to_string(static_cast<EdgeOrigin>(o))}});
    TextTable edges{std::move(columns)};
    for (const RecordedStepFacts& facts : replay_.recorded.facts) {
      std::vector<std::string> cells{fmt::format("{}", facts.rank)};
      for (std::size_t o = 0; o < facts.edge_count.size(); ++o) {
        std::string cell = table_count(facts.edge_count[o]);
        if (facts.inferred_edge_count[o] > 0)
          cell += fmt::format(" ({})", table_count(facts.inferred_edge_count[o]));
        cells.push_back(std::move(cell));
      }
      edges.row(std::move(cells));
    }
    text_ += edges.text(2);
  }

  void notes() {
    std::vector<std::string> all = traces_.notes;
    all.insert(all.end(), replay_.recorded.notes.begin(), replay_.recorded.notes.end());
    if (all.empty()) return;
    title("Notes");
    for (const std::string& note : all) line("  - {}", note);
  }

  const TraceSet& traces_;
  const ReplayAnalysis& a_;
  const Replay& replay_;
  ReplayReportOptions options_;
  std::string text_;
};

class JsonReport {
 public:
  JsonReport(const TraceSet& traces, const ReplayAnalysis& analysis, const ReplayReportOptions& options)
      : traces_(traces), a_(analysis), replay_(*analysis.replay), options_(options) {}

  std::string run() {
    json_.begin_object().field("schema", "stepcast.replay/1").field("version", version());
    input();
    pair("global_window_ms", replay_.global_window);
    spread("kernel_start_error_us", replay_.kernel_start);
    ranks();
    collectives();
    path();
    baseline();
    variants();
    constants();
    json_.end_object();
    return std::move(json_).text();
  }

 private:
  void time_ms(std::string_view key, double us) { json_.fixed_field(key, ms(us), 6); }
  void time_us(std::string_view key, double us) { json_.fixed_field(key, us, 3); }

  void pair(std::string_view key, const TimePair& pair) {
    json_.key(key).begin_object();
    time_ms("measured", pair.measured_us);
    time_ms("simulated", pair.simulated_us);
    json_.fixed_field("error_percent", 100 * pair.error(), 6);
    json_.end_object();
  }

  void spread(std::string_view key, const ErrorSpread& spread) {
    json_.key(key).begin_object().field("n", spread.n);
    time_us("median", spread.median_us);
    time_us("p95", spread.p95_us);
    time_us("max", spread.max_us);
    json_.end_object();
  }

  std::int32_t rank_of(RankClassId c) const { return replay_.recorded.facts[c.index()].rank; }

  void input() {
    json_.key("input").begin_object().field("name", traces_.name);
    const std::int64_t step =
        replay_.recorded.facts.empty() ? -1 : replay_.recorded.facts.front().step_number;
    json_.key("step");
    if (step >= 0) {
      json_.value(step);
    } else {
      json_.null();
    }
    json_.key("files").begin_array();
    for (std::size_t i = 0; i < traces_.ranks.size(); ++i) {
      const RecordedRank& rank = traces_.ranks[i];
      json_.begin_object();
      json_.field("rank", rank.rank).field("world_size", rank.world_size).field("profiler", rank.file);
      json_.key("execution_trace");
      if (traces_.execution_traces[i]) {
        json_.value(traces_.execution_traces[i]->file);
      } else {
        json_.null();
      }
      json_.key("device");
      if (rank.devices.empty()) {
        json_.null();
      } else {
        json_.value(rank.devices.front().name);
      }
      json_.field("events", rank.event_count);
      json_.key("skipped_events").begin_object();
      for (const auto& [why, n] : rank.skipped) json_.field(why, n);
      json_.end_object();
      json_.end_object();
    }
    json_.end_array();
    json_.key("notes").begin_array();
    for (const std::string& note : traces_.notes) json_.value(note);
    for (const std::string& note : replay_.recorded.notes) json_.value(note);
    json_.end_array();
    json_.end_object();
  }

  void idle(const IdleTime& idle, std::span<const IdleCause> causes) {
    json_.key("idle_ms").begin_object();
    for (const IdleCause cause : causes) time_ms(to_string(cause), idle.of(cause));
    json_.end_object();
  }

  void kernel_classes(const ClassTimes& times) {
    json_.key("kernels_ms").begin_object();
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (times[k] > 0) time_ms(to_string(static_cast<KernelClass>(k)), times[k]);
    }
    json_.end_object();
  }

  void breakdown(std::string_view key, const RankBreakdown& b) {
    constexpr std::array kGpuCauses{IdleCause::cpu, IdleCause::other_stream, IdleCause::other_rank,
                                    IdleCause::rest};
    constexpr std::array kCpuCauses{IdleCause::gpu, IdleCause::other_thread, IdleCause::rest};
    json_.key(key).begin_object();
    time_ms("window_ms", b.window.length_us());
    time_ms("computation_ms", b.computation_us);
    time_ms("exposed_comm_ms", b.exposed_comm_us);
    time_ms("exposed_memcpy_ms", b.exposed_memcpy_us);
    idle(b.idle, kGpuCauses);
    time_ms("gpu_active_ms", b.gpu_active_us);
    time_ms("transfer_ms", b.transfer_us);
    time_ms("overlap_ms", b.overlap_us);
    time_ms("collective_wait_ms", b.collective_wait_us);
    kernel_classes(b.kernels_us);
    json_.key("streams").begin_array();
    for (const StreamBreakdown& s : b.streams) {
      json_.begin_object().field("name", s.name).field("tasks", s.tasks);
      time_ms("computation_ms", s.computation_us);
      time_ms("transfer_ms", s.transfer_us);
      time_ms("exposed_comm_ms", s.exposed_comm_us);
      time_ms("memcpy_ms", s.memcpy_us);
      time_ms("exposed_memcpy_ms", s.exposed_memcpy_us);
      idle(s.idle, kGpuCauses);
      kernel_classes(s.kernels_us);
      json_.end_object();
    }
    json_.end_array();
    json_.key("threads").begin_array();
    for (const ThreadBreakdown& t : b.threads) {
      json_.begin_object().field("name", t.name);
      time_ms("busy_ms", t.busy_us);
      idle(t.idle, kCpuCauses);
      json_.key("busy_by_op_ms").begin_object();
      std::size_t shown = 0;
      for (const OpTime& op : t.busy_by_op) {
        if (options_.ops_per_thread != 0 && shown++ == options_.ops_per_thread) break;
        time_ms(op.name, op.time_us);
      }
      json_.end_object();
      json_.end_object();
    }
    json_.end_array();
    json_.end_object();
  }

  void ranks() {
    json_.key("ranks").begin_array();
    for (std::size_t c = 0; c < replay_.ranks.size(); ++c) {
      const ReplayedRank& rank = replay_.ranks[c];
      const RecordedStepFacts& facts = replay_.recorded.facts[c];
      json_.begin_object().field("rank", rank.rank);
      pair("step_time_ms", rank.step);
      pair("gpu_window_ms", rank.gpu_window);
      time_ms("start_offset_ms", replay_.recorded.start_offset_us[c]);
      breakdown("simulated", a_.simulated_ranks[c]);
      breakdown("measured", a_.measured_ranks[c]);
      time_ms("baseline_ms", a_.baseline_of[c].time_us);
      json_.key("explained").begin_object();
      time_us("simulated_wait_us", rank.simulated_wait_us);
      time_us("recorded_wait_us", facts.recorded_wait_us);
      time_us("unexplained_wait_us", facts.unexplained_wait_us);
      json_.key("kept_delay_us").begin_object();
      for (std::size_t o = 0; o < facts.kept_delay_us.size(); ++o) {
        if (facts.kept_delay_us[o] > 0)
          time_us(to_string(static_cast<EdgeOrigin>(o)), facts.kept_delay_us[o]);
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
      json_.end_object();
    }
    json_.end_array();
  }

  void collectives() {
    std::map<CollectiveId, const CollectiveOccurrence*> measured;
    for (const CollectiveOccurrence& occurrence : a_.measured_collectives)
      measured[occurrence.collective] = &occurrence;
    json_.key("collectives").begin_array();
    for (const CollectiveOccurrence& occurrence : a_.simulated_collectives) {
      json_.begin_object();
      json_.field("operation", to_string(occurrence.op));
      json_.field("name", replay_.recorded.program.names.text(occurrence.name));
      json_.key("message_bytes");
      if (occurrence.message_bytes >= 0) {
        json_.value(occurrence.message_bytes);
      } else {
        json_.null();
      }
      json_.field("came_last", rank_of(occurrence.members[occurrence.last].rank_class));
      time_us("transfer_us", occurrence.transfer_us);
      time_us("longest_wait_us", occurrence.longest_wait_us);
      json_.key("ranks").begin_array();
      for (std::size_t m = 0; m < occurrence.members.size(); ++m) {
        const CollectiveArrival& member = occurrence.members[m];
        const CollectiveArrival& recorded = measured.at(occurrence.collective)->members[m];
        json_.begin_object().field("rank", rank_of(member.rank_class));
        time_us("arrival_us", member.arrival_us);
        time_us("wait_us", member.wait_us);
        time_us("measured_wait_us", recorded.wait_us);
        time_us("transfer_us", member.transfer_us);
        time_us("exposed_us", member.exposed_us);
        json_.end_object();
      }
      json_.end_array();
      json_.end_object();
    }
    json_.end_array();
  }

  void shares(std::string_view key, const std::vector<PathShare>& list, std::size_t most) {
    json_.key(key).begin_array();
    std::size_t shown = 0;
    for (const PathShare& share : list) {
      if (shown++ == most) break;
      json_.begin_object().field("what", share.what);
      time_ms("time_ms", share.time_us);
      json_.field("steps", share.steps).end_object();
    }
    json_.end_array();
  }

  void path() {
    json_.key("critical_path").begin_object();
    time_ms("length_ms", a_.path.time.length_us());
    json_.key("ends_on_rank");
    if (a_.path.last_rank.valid()) {
      json_.value(rank_of(a_.path.last_rank));
    } else {
      json_.null();
    }
    json_.field("steps", a_.path.steps.size());
    constexpr std::size_t kAll = static_cast<std::size_t>(-1);
    shares("by_class", path_by_class(a_.flat, a_.path), kAll);
    shares("by_rank", path_by_rank(a_.flat, a_.path), kAll);
    shares("longest", path_by_name(a_.flat, a_.path), options_.critical_path);
    json_.end_object();
  }

  void baseline() {
    json_.key("baseline").begin_object();
    time_ms("time_ms", a_.baseline.time_us);
    if (a_.baseline.rank_class.valid()) {
      json_.field("rank", rank_of(a_.baseline.rank_class));
      const RankClass& rank_class = replay_.recorded.program.rank_class(a_.baseline.rank_class);
      if (a_.baseline.lane < rank_class.lanes.size())
        json_.field("stream", rank_class.lanes[a_.baseline.lane].name);
    }
    json_.end_object();
  }

  void variants() {
    json_.key("variants").begin_object();
    for (const ReplayVariant& variant : replay_.variants) {
      json_.key(variant.name).begin_object();
      pair("global_window_ms", variant.global_window);
      json_.key("ranks").begin_array();
      for (std::size_t c = 0; c < variant.step.size(); ++c) {
        json_.begin_object().field("rank", rank_of(RankClassId{c}));
        pair("step_time_ms", variant.step[c]);
        pair("gpu_window_ms", variant.gpu_window[c]);
        json_.end_object();
      }
      json_.end_array();
      json_.end_object();
    }
    json_.end_object();
  }

  void constants() {
    json_.key("constants").begin_array();
    for (const LearnedConstant& constant : replay_.recorded.constants) {
      json_.begin_object().field("name", describe(constant.delay, replay_.recorded.program.names));
      time_us("value_us", constant.value_us);
      json_.field("clean", constant.clean).field("all", constant.all).field("fallback", constant.fallback);
      json_.end_object();
    }
    json_.end_array();
  }

  const TraceSet& traces_;
  const ReplayAnalysis& a_;
  const Replay& replay_;
  ReplayReportOptions options_;
  JsonWriter json_{JsonWriter::Layout::indented};
};

}  // namespace

std::string replay_text(const TraceSet& traces, const ReplayAnalysis& analysis,
                        const ReplayReportOptions& options) {
  return TextReport{traces, analysis, options}.run();
}

std::string replay_json(const TraceSet& traces, const ReplayAnalysis& analysis,
                        const ReplayReportOptions& options) {
  return JsonReport{traces, analysis, options}.run();
}

}  // namespace stepcast
