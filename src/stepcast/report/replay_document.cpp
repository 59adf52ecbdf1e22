#include "stepcast/report/replay_document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/spread_sections.h"
#include "stepcast/report/forecast_text.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/html/schedule_chart.h"
#include "stepcast/report/replay_report.h"
#include "stepcast/report/replay_verdict.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::ms_text;
using detail::parts_figure;
using detail::percent_text;
using detail::sentence;

constexpr std::size_t kMostRows = 12, kMostColumns = 48, kNameWidth = 80;

double ms(double us) { return us * 1e-3; }
std::string ms_of(double us) { return ms_text(us * 1e-3); }

class ReplayDocument {
 public:
  ReplayDocument(const ReplayAnalysis& analysis, const StepPictures* pictures)
      : a_(analysis), classes_(analysis.simulated.classes), pictures_(pictures) {}

  ReportDocument run() {
    header();
    ranks();
    if (pictures_ != nullptr) {
      detail::add_schedule(
          document_, "What every rank does over the step", pictures_->ranks,
          "Simulated. At every moment the first of these that holds: computation, communication, copies, "
          "waiting for another rank, and what the GPU waits for when nothing runs. Empty is idle for other "
          "reasons.");
    }
    waiting();
    collectives();
    extremes();
    detail::add_critical_path(document_, a_.simulated, pictures_ != nullptr ? &pictures_->path : nullptr);
    detail::add_streams(document_, a_.simulated);
    explained();
    operators();
    awaited();
    groups();
    detail::add_distributions(document_, a_.simulated);
    detail::add_training_section(document_, a_.simulated);
    if (!a_.simulated.notes.empty()) {
      document_.sections.push_back({"Notes", {ReportList{a_.simulated.notes}}});
    }
    document_.json = replay_json(a_);
    return std::move(document_);
  }

 private:
  std::string rank(std::size_t c) const { return fmt::format("{}", a_.facts[c].rank); }
  // Sorted as a number, shown as one.
  ReportCell rank_cell(std::size_t c) const { return {rank(c), static_cast<double>(a_.facts[c].rank)}; }

  void header() {
    TimePair longest;
    std::vector<double> errors;
    for (const ReplayedRank& one : a_.ranks) {
      longest.measured_us = std::max(longest.measured_us, one.step.measured_us);
      longest.simulated_us = std::max(longest.simulated_us, one.step.simulated_us);
      errors.push_back(100 * std::abs(one.step.error()));
    }
    std::uint64_t events = 0;
    for (const ReplayInput& input : a_.inputs) events += input.events;
    document_.title = fmt::format("Replay of {}", a_.simulated.traces.value_or("traces"));
    document_.subject.push_back(fmt::format(
        "{} {} on {}; {}; {} events read", a_.inputs.size(), a_.inputs.size() == 1 ? "rank" : "ranks",
        a_.simulated.gpu.value_or("a GPU that the trace does not name"),
        a_.simulated.step ? fmt::format("step {}", *a_.simulated.step) : std::string{"the whole trace"},
        table_count(events)));
    document_.verdict = sentence(replay_verdict(a_)) + ".";
    std::sort(errors.begin(), errors.end());
    document_.figures.push_back(
        {"Measured step", ms_of(longest.measured_us) + " ms", "longest rank", "measured"});
    document_.figures.push_back({"Simulated step", ms_of(longest.simulated_us) + " ms",
                                 errors.empty()
                                     ? std::string{}
                                     : fmt::format("ranks off by {:.2f} % median, {:.2f} % at most",
                                                   errors[errors.size() / 2], errors.back()),
                                 "recorded work, simulated waiting"});
    double window = 0, computation = 0, waits = 0;
    for (const ForecastClass& one : classes_) {
      window += one.window_ms;
      computation += one.computation_ms;
      waits += time_ms(one.idle_ms, "other_rank");
    }
    document_.figures.push_back(
        {"GPUs compute", percent_text(computation, window) + " %", "of the mean step"});
    if (classes_.size() > 1) {
      document_.figures.push_back(
          {"Waiting for other ranks", percent_text(waits, window) + " %", "of the mean step"});
    }
    detail::add_throughput_figures(document_, a_.simulated);
  }

  void ranks() {
    ReportTable table{{{"rank"},
                       {"measured ms"},
                       {"simulated ms"},
                       {"error %"},
                       {"starts later ms"},
                       {"computation"},
                       {"exposed communication"},
                       {"copies"},
                       {"waits for CPU"},
                       {"for ranks"},
                       {"other idle"}},
                      {}};
    for (std::size_t c = 0; c < a_.ranks.size() && c < classes_.size(); ++c) {
      const ReplayedRank& one = a_.ranks[c];
      const ForecastClass& parts = classes_[c];
      const double cpu = time_ms(parts.idle_ms, "cpu"), others = time_ms(parts.idle_ms, "other_rank");
      table.rows.push_back({rank_cell(c), ms_of(one.step.measured_us), ms_of(one.step.simulated_us),
                            table_signed(100 * one.step.error(), 3), ms_text(parts.start_offset_ms),
                            ms_text(parts.computation_ms), ms_text(parts.exposed_comm_ms),
                            ms_text(parts.exposed_memcpy_ms), ms_text(cpu), ms_text(others),
                            ms_text(sum_ms(parts.idle_ms) - cpu - others)});
    }
    table.caption = "The parts from computation on sum to the simulated step.";
    std::vector<ReportBlock> blocks;
    if (const std::string culprits = culprit_sentence(a_); !culprits.empty()) {
      blocks.emplace_back(ReportText{sentence(culprits) + "."});
    }
    blocks.emplace_back(parts_figure(classes_, "The simulated step of every rank, by what its GPU does."));
    blocks.emplace_back(std::move(table));
    document_.sections.push_back({"Where the time goes, rank by rank", std::move(blocks)});
  }

  // Who came last for whom, over all collectives.
  void waiting() {
    if (classes_.size() < 2 || a_.simulated.collectives.empty()) return;
    std::map<std::pair<std::size_t, std::size_t>, double> sums;
    for (const ForecastCollective& one : a_.simulated.collectives) {
      for (const ForecastMember& member : one.members) {
        if (member.rank_class != one.came_last)
          sums[{member.rank_class, one.came_last}] += ms(member.wait_us);
      }
    }
    MatrixChart chart{.row_title = "waits", .column_title = "for the rank that came last", .unit = "ms"};
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      chart.rows.push_back("rank " + rank(c));
      chart.columns.push_back(rank(c));
    }
    for (const auto& [pair, time] : sums) chart.cells.push_back({pair.first, pair.second, time});
    ReportTable table{{{"rank"},
                       {"came last in"},
                       {"the others waited ms"},
                       {"% of all waiting"},
                       {"waited itself ms"},
                       {"what held it meanwhile", false}},
                      {}};
    const double all = a_.culprits.all_waiting_us();
    for (std::size_t c = 0; c < a_.culprits.ranks.size(); ++c) {
      const RankCulprits& one = a_.culprits.ranks[c];
      table.rows.push_back({rank_cell(c), table_count(one.came_last), ms_of(one.caused_wait_us),
                            percent_text(one.caused_wait_us, all), ms_of(one.waited_us), causes(one)});
    }
    const auto worst = std::max_element(
        a_.culprits.ranks.begin(), a_.culprits.ranks.end(),
        [](const RankCulprits& a, const RankCulprits& b) { return a.caused_wait_us < b.caused_wait_us; });
    if (worst != a_.culprits.ranks.end() && worst->caused_wait_us > 0) {
      table.emphasized = static_cast<std::size_t>(worst - a_.culprits.ranks.begin());
    }
    table.caption = fmt::format("{} collectives, {} of them ties: arrivals within {:.0f} us.",
                                table_count(a_.culprits.collectives), table_count(a_.culprits.ties), kTieUs);
    document_.sections.push_back(
        {"Who waits for whom",
         {ReportFigure{matrix_chart(chart),
                       "Milliseconds that the rank of a row spends inside collectives until the rank of "
                       "the column, the last one, arrives. A column of strong colour is a rank that holds "
                       "the others up."},
          table}});
  }

  static std::string causes(const RankCulprits& one) {
    if (one.caused_wait_us <= 0) return {};
    std::vector<std::pair<double, std::size_t>> parts;
    for (std::size_t k = 0; k < kCulpritCount; ++k) parts.emplace_back(one.caused_by_us[k], k);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [us, k] : parts) {
      const double share = 100 * us / one.caused_wait_us;
      if (share < 1) break;
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", culprit_name(static_cast<Culprit>(k)),
                          share);
    }
    return text;
  }

  // When ranks come to the collectives that cost most.
  void collectives() {
    const std::vector<ForecastCollective>& all = a_.simulated.collectives;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].members.size() > 1) order.push_back(i);
    }
    if (order.empty()) return;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return all[a].total_wait_us + all[a].transfer_us > all[b].total_wait_us + all[b].transfer_us;
    });
    ReportTable table{{{"#"},
                       {"operation", false},
                       {"group", false},
                       {"message"},
                       {"came last"},
                       {"others waited, mean us"},
                       {"longest us"},
                       {"longest recorded us"},
                       {"transfer us"}},
                      {}};
    for (std::size_t i = 0; i < std::min(order.size(), kMostRows); ++i) {
      const ForecastCollective& one = all[order[i]];
      const double recorded =
          order[i] < a_.recorded_longest_wait_us.size() ? a_.recorded_longest_wait_us[order[i]] : 0;
      table.rows.push_back({table_count(order[i]), one.operation.empty() ? one.name : one.operation,
                            one.group,
                            ReportCell{one.message_bytes ? table_bytes(*one.message_bytes) : "-",
                                       one.message_bytes.value_or(0)},
                            rank_cell(one.came_last),
                            table_number(one.total_wait_us / static_cast<double>(one.members.size() - 1), 0),
                            table_number(one.longest_wait_us, 0), table_number(recorded, 0),
                            table_number(one.transfer_us, 0)});
    }
    if (order.size() > kMostRows)
      table.caption = fmt::format("Those that cost most of {}.", table_count(order.size()));
    std::vector<std::size_t> shown(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), kMostColumns)));
    std::sort(shown.begin(), shown.end());
    MatrixChart chart{.row_title = "rank",
                      .column_title = "arrives later than the first, at collective #",
                      .unit = "us",
                      .decimals = 0};
    for (std::size_t c = 0; c < classes_.size(); ++c) chart.rows.push_back("rank " + rank(c));
    for (std::size_t column = 0; column < shown.size(); ++column) {
      const ForecastCollective& one = all[shown[column]];
      chart.columns.push_back(table_count(shown[column]));
      double first = one.members.front().arrival_us;
      for (const ForecastMember& member : one.members) first = std::min(first, member.arrival_us);
      for (const ForecastMember& member : one.members) {
        chart.cells.push_back({member.rank_class, column, member.arrival_us - first});
      }
    }
    document_.sections.push_back(
        {"Arrivals at collectives",
         {ReportFigure{matrix_chart(chart),
                       "How long after the first rank each one arrives: strong colours are late ranks."},
          table}});
  }

  // Slowest beside fastest.
  void extremes() {
    if (classes_.size() < 2) return;
    const auto own = [](const ForecastClass& c) { return c.window_ms - time_ms(c.idle_ms, "other_rank"); };
    std::size_t slow = 0, fast = 0;
    for (std::size_t c = 1; c < classes_.size(); ++c) {
      if (own(classes_[c]) > own(classes_[slow])) slow = c;
      if (own(classes_[c]) < own(classes_[fast])) fast = c;
    }
    if (slow == fast) return;
    const NamedTimes a = classes_[slow].parts(), b = classes_[fast].parts();
    std::vector<std::string> keys;
    for (const NamedTimes* parts : {&a, &b}) {
      for (const NamedTime& part : *parts) {
        if (std::find(keys.begin(), keys.end(), part.key) == keys.end()) keys.push_back(part.key);
      }
    }
    std::stable_sort(keys.begin(), keys.end(), [&](const std::string& x, const std::string& y) {
      return std::abs(time_ms(a, x) - time_ms(b, x)) > std::abs(time_ms(a, y) - time_ms(b, y));
    });
    ReportTable table{{{"part", false},
                       {fmt::format("rank {} ms", rank(slow))},
                       {fmt::format("rank {} ms", rank(fast))},
                       {"difference ms"}},
                      {}};
    for (const std::string& key : keys) {
      if (std::max(time_ms(a, key), time_ms(b, key)) < 1e-3 * classes_[slow].window_ms) continue;
      ReportCell name{part_text(key)};
      name.swatch = part_colour(key);
      table.rows.push_back({std::move(name), ms_text(time_ms(a, key)), ms_text(time_ms(b, key)),
                            table_signed(time_ms(a, key) - time_ms(b, key), 3)});
    }
    ReportSection section{fmt::format("Slowest and fastest rank: {} and {}", rank(slow), rank(fast))};
    section.blocks.emplace_back(ReportText{
        fmt::format("Without waiting for other ranks rank {} takes {} ms and rank {} takes {} ms.",
                    rank(slow), ms_text(own(classes_[slow])), rank(fast), ms_text(own(classes_[fast])))});
    if (pictures_ != nullptr && slow < pictures_->ranks.rows.size() && fast < pictures_->ranks.rows.size()) {
      StepPicture two = pictures_->ranks;
      two.rows = {pictures_->ranks.rows[slow], pictures_->ranks.rows[fast]};
      two.rows_left_out = 0;
      section.blocks.emplace_back(ReportFigure{schedule_chart(two), ""});
    }
    section.blocks.emplace_back(std::move(table));
    document_.sections.push_back(std::move(section));
  }

  void explained() {
    ReportTable table{{{"rank"},
                       {"waiting simulated %"},
                       {"not explained %"},
                       {"GPU late %"},
                       {"GPU starts off by us"},
                       {"p95"},
                       {"max"},
                       {"naive replay errs %"}},
                      {}};
    const ReplayVariant* naive = a_.variant("naive");
    for (std::size_t c = 0; c < a_.ranks.size(); ++c) {
      const ReplayedRank& one = a_.ranks[c];
      const RecordedStepFacts& facts = a_.facts[c];
      const double step = one.step.measured_us;
      table.rows.push_back(
          {rank_cell(c), percent_text(one.simulated_wait_us, step),
           step > 0 ? table_number(100 * facts.unexplained_wait_us / step, 3) : "-",
           step > 0 ? table_number(100 * facts.gpu_late_us / step, 3) : "-",
           table_number(one.kernel_start.median_us, 1), table_number(one.kernel_start.p95_us, 1),
           table_number(one.kernel_start.max_us, 1),
           naive != nullptr && c < naive->step.size() ? table_signed(100 * naive->step[c].error(), 1) : "-"});
    }
    table.caption =
        "Not explained: waiting in calls that no dependency accounts for; it is left out of the simulation, "
        "so "
        "it shows as error. GPU late: work that every known dependency let start had not started.";
    ReportSection section{"What is explained, and what is not", {table}};
    if (a_.warning) section.blocks.insert(section.blocks.begin(), ReportText{*a_.warning});
    document_.sections.push_back(std::move(section));
  }

  void operators() {
    if (a_.operators.empty()) return;
    ReportTable table{{{"operator", false},
                       {"on", false},
                       {"median ms"},
                       {"slowest ms"},
                       {"rank"},
                       {"longer ms"},
                       {"work, times"}},
                      {}};
    for (std::size_t i = 0; i < std::min(a_.operators.size(), kMostRows); ++i) {
      const OperatorComparison& op = a_.operators[i];
      table.rows.push_back({op.op.empty() ? "(no framework op)" : shorten(op.op, kNameWidth),
                            op.on_gpu ? "GPU" : "host", ms_of(op.median_us), ms_of(op.times_us[op.slowest]),
                            rank_cell(op.slowest), ms_of(op.excess_us()),
                            !op.on_gpu                     ? ""
                            : std::isfinite(op.work_ratio) ? table_number(op.work_ratio, 2)
                                                           : "only here"});
    }
    table.caption =
        "Work: FLOPs or bytes of the slowest rank over the median's. Near 1 the same work takes longer "
        "there: "
        "hardware; above it the rank has more to do: skew.";
    document_.sections.push_back({"Operators that differ most across ranks", {table}, true});
  }

  void awaited() {
    if (a_.awaited.empty()) return;
    ReportTable table{{{"operator", false}, {"GPU idle, mean ms"}, {"gaps"}, {"most on rank"}}, {}};
    const auto n = static_cast<double>(std::max<std::size_t>(1, a_.ranks.size()));
    for (std::size_t i = 0; i < std::min(a_.awaited.size(), kMostRows); ++i) {
      const AwaitedOperator& op = a_.awaited[i];
      const auto most = std::max_element(op.ranks_us.begin(), op.ranks_us.end());
      table.rows.push_back({op.op.empty() ? "(no framework op)" : shorten(op.op, kNameWidth),
                            ms_of(op.gpu_idle_us / n), table_count(op.gaps),
                            rank_cell(static_cast<std::size_t>(most - op.ranks_us.begin()))});
    }
    document_.sections.push_back({"Operators of the CPU that GPUs wait for", {table}, true});
  }

  void groups() {
    if (a_.groups.empty()) return;
    ReportTable table{{{"group", false},
                       {"operation", false},
                       {"ranks"},
                       {"n"},
                       {"bytes"},
                       {"transfer ms"},
                       {"waiting, mean ms"},
                       {"bus GB/s"},
                       {"link GB/s"},
                       {"link", false}},
                      {}};
    for (const GroupTraffic& g : a_.groups) {
      table.rows.push_back({g.group, g.operation, table_count(g.n_ranks), table_count(g.n),
                            ReportCell{table_bytes(g.message_bytes), g.message_bytes}, ms_of(g.transfer_us),
                            ms_of(g.wait_us), g.bus_GBps ? table_number(*g.bus_GBps, 1) : "-",
                            g.link_GBps ? table_number(*g.link_GBps, 1) : "-", g.link});
    }
    document_.sections.push_back({"Collectives by process group", {table}, true});
  }

  const ReplayAnalysis& a_;
  const std::vector<ForecastClass>& classes_;
  const StepPictures* pictures_;
  ReportDocument document_;
};

}  // namespace

ReportDocument replay_document(const ReplayAnalysis& analysis, const StepPictures* pictures) {
  return ReplayDocument{analysis, pictures}.run();
}

}  // namespace stepcast
