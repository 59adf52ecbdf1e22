// The document of a replay. run() adds the sections in their order. Sections that both terminals and pages
// show are written here; long tables of operators, streams and utilization are in detail/replay_sections.cpp.
#include "stepcast/report/replay_document.h"

#include <algorithm>
#include <cmath>
#include <functional>
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
#include "stepcast/base/units.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/replay_sections.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/replay_verdict.h"

namespace stepcast {
namespace {

using detail::percent;

// Collectives in the picture of arrivals.
constexpr std::size_t kMostColumns = 48;

double ms(double us) { return us * 1e-3; }

// The time of one class of work on every rank, in milliseconds.
struct WorkRow {
  std::string name;
  std::vector<double> ms;  // [rank class]
  [[nodiscard]] double sum() const { return std::accumulate(ms.begin(), ms.end(), 0.0); }
};

// The operation of a collective; its name if the operation is unknown.
std::string op_text(const ForecastCollective& collective) {
  return collective.operation == to_string(CollectiveOp::unknown) ? collective.name : collective.operation;
}

// Builds the document of one replay. Use once.
class ReplayDocument {
 public:
  ReplayDocument(const ReplayAnalysis& analysis, const ReplayReportOptions& options)
      : a_(analysis), classes_(analysis.simulated.classes), options_(options), pictures_(options.pictures) {
    document_.made_for = options.made_for;
  }

  ReportDocument run() {
    head();
    first_screen();
    opening();
    detail::add_what_to_change(document_, a_.simulated.what_to_change, a_.simulated.n_gpus, "simulated.");
    ranks();
    only_on_page([&] {
      if (pictures_ == nullptr) return;
      detail::add_schedule(
          document_, "Activity of every rank over the step", pictures_->ranks,
          "Simulated. The colour shows the first activity in this order: computation, communication, copies, "
          "waiting for another rank, other waiting. Empty: idle for other reasons.");
    });
    memory();
    kernels();
    collectives();
    detail::add_groups(document_, a_);
    detail::add_stragglers(document_, a_);
    only_on_page([&] { extremes(); });
    detail::add_operators(document_, a_, options_.verbose);
    detail::add_awaited(document_, a_, options_.verbose);
    detail::add_utilization(document_, a_, options_.verbose);
    path();
    only_on_page([&] { detail::add_streams(document_, a_.simulated); });
    detail::add_explained(document_, a_);
    detail::add_distributions(document_, a_.simulated, options_.verbose);
    details();
    ending();
    if (on_page()) document_.json = replay_json(a_);
    return std::move(document_);
  }

 private:
  // Whether the sections for pages are needed; making them takes time.
  [[nodiscard]] bool on_page() const { return document_.has_page(); }
  void only_on_page(const auto& add_sections) {
    if (!on_page()) return;
    const std::size_t n_before = document_.sections.size();
    add_sections();
    document_.keep_on_page(n_before);
  }
  [[nodiscard]] std::string rank(std::size_t c) const { return fmt::format("{}", a_.facts[c].rank); }

  // The absolute errors of all ranks, in percent of the measured time.
  [[nodiscard]] std::vector<double> errors(const auto& pair_of) const {
    std::vector<double> errors;
    for (const ReplayedRank& one : a_.ranks) errors.push_back(100 * std::abs(pair_of(one).error()));
    return errors;
  }

  // What was read: "2 of 4 ranks on V100; step 10, 1,678 events read; 2 execution traces joined".
  [[nodiscard]] std::string subject() const {
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
    std::string what = counted(a_.inputs.size(), "rank", "ranks");
    if (worlds.size() == 1 && *worlds.begin() > 1)
      what = fmt::format("{} of {} ranks", a_.inputs.size(), *worlds.begin());
    const std::optional<std::int64_t> step = a_.simulated.step;
    return fmt::format(
        "{} on {}; {}, {} read; {}", what,
        devices.empty() ? std::string{"a GPU that the trace does not name"}
                        : fmt::format("{}", fmt::join(devices, ", ")),
        step ? fmt::format("step {}", *step) : std::string{"the whole trace (no step is marked)"},
        counted(events, "event", "events"),
        execution_traces == 0 ? std::string{"no execution traces"}
                              : counted(execution_traces, "execution trace", "execution traces") + " joined");
  }

  // The title, the verdict and the key figures.
  void head() {
    document_.title = fmt::format("Replay of {}", a_.simulated.traces.value_or("traces"));
    document_.subject.push_back(subject());
    document_.verdict = sentence(replay_verdict(a_)) + ".";
    const TimePair longest = longest_step(a_);
    std::vector<double> off = errors([](const ReplayedRank& one) { return one.step; });
    std::ranges::sort(off);
    document_.figures.push_back({"Measured step", duration_text(ms(longest.measured_us), 4), "longest rank",
                                 "measured", "measured_step_time_ms"});
    document_.figures.push_back({"Simulated step", duration_text(ms(longest.simulated_us), 4),
                                 off.empty() ? std::string{}
                                             : fmt::format("ranks off by {:.2f} % median, {:.2f} % at most",
                                                           off[off.size() / 2], off.back()),
                                 "simulated", "step_time_ms"});
    double window = 0, computation = 0, waits = 0;
    for (const ForecastClass& one : classes_) {
      window += one.window_ms;
      computation += one.computation_ms;
      waits += time_ms(one.idle_ms, "other_rank");
    }
    document_.figures.push_back(
        {"GPUs compute", percent_text(computation, window) + " %", "of the mean step", "simulated"});
    if (classes_.size() > 1) {
      document_.figures.push_back(
          {"Waiting for other ranks", percent_text(waits, window) + " %", "of the mean step", "simulated"});
    }
    detail::add_throughput_figures(document_, a_.simulated, "simulated.");
  }

  // The content of the first screen.
  void first_screen() {
    FirstScreen screen;
    if (const std::string culprits = culprit_sentence(a_); !culprits.empty())
      screen.blocks.emplace_back(ReportText{sentence(culprits) + "."});
    if (a_.warning) screen.blocks.emplace_back(ReportText{fmt::format("Warning: {}", *a_.warning)});
    detail::add_what_to_change(screen, a_.simulated.what_to_change);
    screen.notes = a_.simulated.notes;
    document_.first_screen = std::move(screen);
  }

  // The first lines in a terminal: the verdict, what was read, and the table of errors. The errors show how
  // far the replay can be trusted.
  void opening() {
    std::string text = fmt::format("Replay of {}\n  {}\n", in_one_line(a_.simulated.traces.value_or("")),
                                   replay_verdict(a_));
    if (const std::string culprits = culprit_sentence(a_); !culprits.empty())
      text += fmt::format("  {}\n", culprits);
    text += fmt::format(
        "  {}\n  Work is replayed with its recorded durations; all waiting is simulated from the "
        "dependencies.\n",
        subject());
    ReportTable table{"< | median\n|error| % | largest\n%"};
    const auto row = [&](const std::string& name, const std::vector<double>& errors) {
      table.row({name}).numbers({median(errors), errors.empty() ? 0 : std::ranges::max(errors)}, 3);
    };
    row(a_.simulated.step ? "step time" : "whole trace",
        errors([](const ReplayedRank& one) { return one.step; }));
    row("GPU window (step start to the last end of GPU work launched in it)",
        errors([](const ReplayedRank& one) { return one.gpu_window; }));
    if (a_.ranks.size() > 1) {
      row(fmt::format("all ranks together ({} ms measured, {} ms simulated)",
                      table_number(ms(a_.global_window.measured_us), 3),
                      table_number(ms(a_.global_window.simulated_us), 3)),
          {100 * std::abs(a_.global_window.error())});
    }
    if (const ReplayVariant* naive = a_.variant("naive"); naive != nullptr) {
      std::vector<double> off;
      for (const TimePair& pair : naive->step) off.push_back(100 * std::abs(pair.error()));
      row("for comparison: naive replay (waits reduced to their base cost, no GPU dependencies)", off);
    }
    ReportSection& section = document_.add("", {TerminalText{std::move(text)}, std::move(table)});
    section.shown = Shown::terminal;
    if (a_.warning) section.add(ReportText{fmt::format("Warning: {}", *a_.warning)});
  }

  // One row per rank: measured and simulated step, and the parts of the simulated step. The last row is the
  // mean.
  [[nodiscard]] ReportTable ranks_table(const std::vector<std::string>& causes) const {
    ReportTable table{
        "rank< | measured=measured_step_time_ms | simulated=step_time_ms | error\n%=step_error_percent | "
        "GPU window\nerror % | compu-\ntation | exposed\ncomm | exposed\nmemcpy"};
    table.list = "ranks";
    for (std::size_t i = 0; i < causes.size(); ++i)
      table.columns.push_back({detail::idle_heading(causes[i], i == 0)});
    std::vector<double> sums;
    for (std::size_t c = 0; c < a_.ranks.size(); ++c) {
      const ReplayedRank& one = a_.ranks[c];
      const ForecastClass& parts = classes_[c];
      std::vector<double> row{ms(one.step.measured_us), ms(one.step.simulated_us), parts.computation_ms,
                              parts.exposed_comm_ms, parts.exposed_memcpy_ms};
      for (const std::string& cause : causes) row.push_back(time_ms(parts.idle_ms, cause));
      sums.resize(row.size());
      ReportRow& cells = table.row({detail::rank_cell(a_, c)});
      for (std::size_t i = 0; i < row.size(); ++i) {
        sums[i] += row[i];
        cells.numbers({row[i]}, 3);
        if (i != 1) continue;
        cells.cell(table_signed(100 * one.step.error(), 3))
            .cell(table_signed(100 * one.gpu_window.error(), 3));
      }
    }
    if (a_.ranks.size() < 2) return table;
    table.rule();
    ReportRow& mean = table.row({"mean"});
    for (std::size_t i = 0; i < sums.size(); ++i) {
      mean.numbers({sums[i] / static_cast<double>(a_.ranks.size())}, 3);
      if (i == 1) mean.cell("").cell("");
    }
    return table;
  }

  // The section with this table, and a picture of the parts.
  void ranks() {
    ReportSection& section = document_.add(
        "Rank by rank: measured and simulated step, and what the GPU does in the simulated step (ms)");
    if (const std::string culprits = culprit_sentence(a_); !culprits.empty())
      section.add(ReportText{sentence(culprits) + "."}, Shown::page);
    if (on_page())
      section.add(detail::parts_figure(classes_, "The simulated step of every rank, by what its GPU does."));
    const std::vector<std::string> causes = detail::idle_causes(classes_);
    section.add(ranks_table(causes));
    constexpr std::array kWords{"seven", "eight", "nine"};  // 3 parts of work plus 4 to 6 causes
    section.add(ReportText{fmt::format(
        "The last {} columns sum to the simulated step. Exposed: not overlapped with computation.",
        kWords.at(causes.size() - 4))});
    if (!a_.collective_waits.empty()) {
      section.add(
          ReportText{"Idle for another rank: time in a collective before the last rank arrives. Exposed "
                     "comm: the transfer after that."});
    }
  }

  // The peak memory of every rank, if the trace recorded the allocator.
  void memory() {
    ReportTable table{"rank< | allocated | reserved"};
    for (std::size_t c = 0; c < a_.facts.size(); ++c) {
      if (const auto& peak = a_.facts[c].memory) {
        table.row({detail::rank_cell(a_, c)})
            .numbers({static_cast<double>(peak->allocated_bytes) / kGiB,
                      static_cast<double>(peak->reserved_bytes) / kGiB},
                     2);
      }
    }
    if (table.rows.empty()) return;
    document_.add("Peaks of the caching allocator in the recorded step (GiB)", {std::move(table)});
  }

  // The time by class of work: kernels by class, longest first, then copies and communication.
  [[nodiscard]] std::vector<WorkRow> work_rows() const {
    std::vector<WorkRow> rows;
    for (int k = 0; k < kKernelClassCount; ++k) {
      WorkRow row{std::string{to_string(static_cast<KernelClass>(k))}, {}};
      for (const ForecastClass& c : classes_) row.ms.push_back(time_ms(c.kernels_ms, row.name));
      rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, std::greater{}, &WorkRow::sum);
    // If no collective joins two recorded ranks, waiting and transfer cannot be separated.
    const char* const comm =
        a_.collective_waits.empty() ? "communication: waiting and transfer" : "communication: transfer";
    WorkRow copies{"copies and fills", {}}, transfer{comm, {}}, hidden{"  overlapped by computation", {}},
        waiting{"communication: waiting", {}};
    for (const ForecastClass& c : classes_) {
      double copy_ms = 0;
      for (const ForecastStream& stream : c.streams) copy_ms += stream.memcpy_ms;
      copies.ms.push_back(copy_ms);
      transfer.ms.push_back(c.transfer_ms);
      hidden.ms.push_back(c.overlap_ms);
      waiting.ms.push_back(c.collective_wait_ms);
    }
    for (WorkRow* row : {&copies, &transfer, &hidden, &waiting}) rows.push_back(std::move(*row));
    return rows;
  }

  // The section on GPU time by class of work. With one rank, the columns that compare ranks are left out.
  void kernels() {
    const Shown several = a_.ranks.size() == 1 ? Shown{} : Shown::everywhere;
    ReportTable table{"class< | mean | least | most | on rank | share of\nstep %"};
    if (a_.ranks.size() == 1) table.columns[1].heading = "ms";
    for (const std::size_t column : {2U, 3U, 4U}) table.columns[column].shown = several;
    double step_ms = 0;
    for (const ReplayedRank& one : a_.ranks) step_ms += ms(one.step.simulated_us);
    for (const WorkRow& row : work_rows()) {
      const double sum = row.sum();
      if (sum <= 0) continue;
      const auto most = std::ranges::max_element(row.ms);
      table.row({row.name})
          .numbers({sum / static_cast<double>(row.ms.size()), std::ranges::min(row.ms), *most}, 3)
          .cell(rank(static_cast<std::size_t>(most - row.ms.begin())))
          .numbers({percent(sum, step_ms)}, 1);
    }
    document_.add("GPU time by class of work, per rank (ms, summed over streams)",
                  {std::move(table),
                   ReportText{fmt::format(
                       "Published baseline (largest sum of GPU work on one stream, no CPU, no waiting): "
                       "{} ms, {} % of "
                       "the longest measured step",
                       table_number(a_.baseline_ms, 3),
                       table_number(percent(a_.baseline_ms, ms(longest_step(a_).measured_us)), 1))}});
  }

  // The indices of the `most` collectives that cost most, in the order of time.
  [[nodiscard]] std::vector<std::size_t> costliest(std::size_t most) const {
    const std::vector<ForecastCollective>& all = a_.simulated.collectives;
    std::vector<std::size_t> shown(all.size());
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    if (shown.size() <= most) return shown;
    std::ranges::stable_sort(shown, [&](std::size_t a, std::size_t b) {
      return all[a].total_wait_us + all[a].transfer_us > all[b].total_wait_us + all[b].transfer_us;
    });
    shown.resize(most);
    std::ranges::sort(shown);
    return shown;
  }

  // The cells of one collective. Waiting is not shown for collectives with one recorded rank.
  [[nodiscard]] std::vector<ReportCell> collective_row(std::size_t i) const {
    const ForecastCollective& one = a_.simulated.collectives[i];
    const std::size_t n = one.members.size();
    double exposed = 0;
    double transfer = 0;
    for (const ForecastMember& member : one.members) {
      exposed += member.exposed_us;
      transfer += member.transfer_us;
    }
    const auto among = [&](double us) { return ReportCell{n < 2 ? "-" : table_number(us, 0)}; };
    return {fmt::format("{}", i),
            op_text(one),
            ReportCell{table_bytes(one.message_bytes.value_or(-1)), one.message_bytes.value_or(0)},
            fmt::format("{}", n),
            n < 2 ? ReportCell{"-"} : detail::rank_cell(a_, one.came_last),
            among(one.total_wait_us / static_cast<double>(std::max<std::size_t>(n, 2) - 1)),
            among(one.longest_wait_us),
            among(a_.recorded_longest_wait_us[i]),
            table_number(one.transfer_us, 0),
            table_number(percent(exposed, transfer), 0)};
  }

  // A picture of the arrivals of ranks at the most expensive collectives, relative to the first arrival.
  [[nodiscard]] ReportFigure arrivals() const {
    MatrixChart chart{.row_title = "rank",
                      .column_title = "arrives later than the first, at collective #",
                      .unit = "us",
                      .decimals = 0};
    for (std::size_t c = 0; c < classes_.size(); ++c) chart.rows.push_back("rank " + rank(c));
    for (const std::size_t i : costliest(kMostColumns)) {
      const ForecastCollective& one = a_.simulated.collectives[i];
      if (one.members.size() < 2) continue;
      double first = one.members.front().arrival_us;
      for (const ForecastMember& member : one.members) first = std::min(first, member.arrival_us);
      for (const ForecastMember& member : one.members)
        chart.cells.push_back({member.rank_class, chart.columns.size(), member.arrival_us - first});
      chart.columns.push_back(table_count(i));
    }
    if (chart.columns.empty()) return {};
    const std::size_t all = a_.simulated.collectives.size();
    return {matrix_chart(chart),
            fmt::format("Arrival of each rank after the first one. Strong colour: late rank.{}",
                        all > kMostColumns ? fmt::format(" The {} most expensive of {} collectives.",
                                                         kMostColumns, table_count(all))
                                           : "")};
  }

  // The section on collectives, and how well simulated waiting agrees with recorded waiting.
  void collectives() {
    const std::size_t n = a_.simulated.collectives.size();
    if (n == 0) return;
    const std::vector<std::size_t> shown = costliest(options_.collectives);
    ReportSection& section = document_.add("Collectives: last rank, and waiting of the other ranks");
    if (shown.size() < n) section.title += fmt::format(" ({} of {}, most expensive first)", shown.size(), n);
    if (on_page()) section.add(arrivals());
    ReportTable table{
        "# | operation< | message | ranks | last\nrank | others waited\nmean us | longest\nus | "
        "longest\nrecorded us | transfer\nus | exposed\n%"};
    for (const std::size_t i : shown) table.row(collective_row(i));
    section.add(std::move(table));
    if (a_.collective_waits.empty()) {
      section.add(
          ReportText{"Only one rank was recorded. Its time in collectives (waiting and transfer) is replayed "
                     "as recorded."});
      return;
    }
    std::size_t agreeing = 0;
    double worst = 0;
    for (const CollectiveWait& wait : a_.collective_waits) {
      if (wait.agrees()) ++agreeing;
      worst = std::max(worst, std::abs(wait.simulated_us - wait.recorded_us));
    }
    section.add(ReportText{fmt::format(
        "{} of {} simulated waits agree with the recorded ones within 5 % + 20 us; largest difference {} us",
        agreeing, a_.collective_waits.size(), table_number(worst, 1))});
  }

  // The section that compares the slowest rank with the fastest one, part by part. Waiting for other ranks
  // does not count as slow.
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
      for (const NamedTime& part : *parts)
        if (std::ranges::find(keys, part.key) == keys.end()) keys.push_back(part.key);
    }
    std::ranges::stable_sort(keys, [&](const std::string& x, const std::string& y) {
      return std::abs(time_ms(a, x) - time_ms(b, x)) > std::abs(time_ms(a, y) - time_ms(b, y));
    });
    ReportTable table{"part< |  |  | difference ms"};
    table.columns[1].heading = fmt::format("rank {} ms", rank(slow));
    table.columns[2].heading = fmt::format("rank {} ms", rank(fast));
    for (const std::string& key : keys) {
      const double slow_ms = time_ms(a, key), fast_ms = time_ms(b, key);
      // Parts below 0.1 % of the step are left out.
      if (std::max(slow_ms, fast_ms) < 1e-3 * classes_[slow].window_ms) continue;
      table.row(
          {detail::part_cell(key), ms_text(slow_ms), ms_text(fast_ms), table_signed(slow_ms - fast_ms, 3)});
    }
    ReportSection& section =
        document_.add(fmt::format("Slowest and fastest rank: {} and {}", rank(slow), rank(fast)));
    section.add(ReportText{
        fmt::format("Without waiting for other ranks, rank {} takes {} ms and rank {} takes {} ms.",
                    rank(slow), ms_text(own(classes_[slow])), rank(fast), ms_text(own(classes_[fast])))});
    if (pictures_ != nullptr && slow < pictures_->ranks.rows.size() && fast < pictures_->ranks.rows.size()) {
      StepPicture two = pictures_->ranks;
      two.rows = {pictures_->ranks.rows[slow], pictures_->ranks.rows[fast]};
      two.rows_left_out = 0;
      section.add(ReportFigure{schedule_chart(two), ""});
    }
    section.add(std::move(table));
  }

  // The section on the critical path.
  void path() {
    const ForecastPath& path = a_.simulated.critical_path;
    if (path.n_steps == 0) return;
    ReportSection& section = document_.add(fmt::format(
        "Critical path to the end of rank {}: {} ms through all ranks, {} steps",
        rank(path.ends_on.value_or(0)), table_number(path.length_ms, 3), table_count(path.n_steps)));
    if (on_page() && pictures_ != nullptr && !pictures_->path.rows.empty()) {
      section.add(ReportFigure{schedule_chart(pictures_->path),
                               "Every moment of the path is on one rank. Where the path moves to another "
                               "rank, the step waits for that rank. Work off the path has slack."});
    }
    const auto shares = [&](std::string_view heading, const std::vector<ForecastShare>& list) {
      constexpr std::size_t kMost = 12;
      std::vector<std::string> parts;
      for (const ForecastShare& share : list) {
        const double part = percent(share.time_ms, path.length_ms);
        if (part >= 0.05) parts.push_back(fmt::format("{} {} %", share.what, table_number(part, 1)));
      }
      if (parts.size() > kMost) {
        const std::size_t left = parts.size() - kMost;
        parts.resize(kMost);
        parts.push_back(fmt::format("and {} more", table_count(left)));
      }
      section.add(ReportText{fmt::format("{}: {}", heading, fmt::join(parts, ", "))});
    };
    shares("by class", path.by_class);
    shares("by rank", path.by_rank);
    if (options_.critical_path == 0) return;
    ReportTable table{"longest contributors< | ms | % of path | steps"};
    table.of = path.by_name.size();
    for (const ForecastShare& share : path.by_name) {
      if (table.rows.size() == options_.critical_path) break;
      table.row({shorten(share.what.empty() ? "(no op)" : share.what, 72), table_number(share.time_ms, 3),
                 table_number(percent(share.time_ms, path.length_ms), 1), table_count(share.steps)});
    }
    section.add(std::move(table));
  }

  // The sections on lanes and learned constants. A terminal shows them only with --verbose.
  void details() {
    const std::size_t first = document_.sections.size();
    detail::add_stream_table(document_, a_);
    detail::add_thread_table(document_, a_);
    detail::add_constants(document_, a_);
    for (std::size_t s = first; s < document_.sections.size() && !options_.verbose; ++s)
      document_.sections[s].shown = Shown::page;
  }

  // Throughput, training and notes.
  void ending() {
    const ForecastThroughput& rates = a_.simulated.throughput;
    if (rates.samples_per_s || rates.tokens_per_s) {
      document_.add("", {TerminalText{"\n"}, ReportText{throughput_text(a_.simulated)}}).shown =
          Shown::terminal;
    }
    detail::add_training_section(document_, a_.simulated);
    if (!a_.simulated.notes.empty()) document_.add("Notes", {ReportList{a_.simulated.notes}});
  }

  const ReplayAnalysis& a_;
  const std::vector<ForecastClass>& classes_;  // of the simulated step
  const ReplayReportOptions& options_;
  const StepPictures* pictures_;
  ReportDocument document_;
};

}  // namespace

ReportDocument replay_document(const ReplayAnalysis& analysis, const ReplayReportOptions& options) {
  return ReplayDocument{analysis, options}.run();
}

}  // namespace stepcast
