// From the steps of a log to a robust step time. Order of the work: choose one format and one rank, remove
// repetitions, convert rates to times, keep one batch size, mark the warm-up, split at lasting changes, mark
// stalls, and summarise the longest stretch. The times of day of the lines, or tokens per second, serve as an
// independent check. Step times are medians and quantiles, because logs contain outliers of every kind.
#include "stepcast/logs/logged_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/base/text.h"
#include "stepcast/logs/detail/change_points.h"

namespace stepcast {
namespace {

constexpr double kSecond = 1e3;  // milliseconds
// Scales a median absolute deviation to a standard deviation, for a normal distribution.
constexpr double kMadToDeviation = 1.4826;
// A step is a stall if it is longer than the steps around it by at least kStallShare of their time and by at
// least kStallDeviations robust deviations.
constexpr double kStallShare = 0.1;
constexpr double kStallDeviations = 6;
// A first step belongs to the warm-up if it is slower than the steps after it by at least this share.
constexpr double kWarmUpShare = 0.05;
// Longest warm-up, in lines.
constexpr std::size_t kMostWarmUp = 32;
// Lines of a block with one local median, which also takes the neighbouring blocks into account.
constexpr std::size_t kBlock = 32;
// The clock shows a gap if it is ahead of the step times by more than this many seconds and steps.
constexpr double kGapSeconds = 2, kGapSteps = 1;
// A format is common if it has at least this share of the lines of the most frequent format.
constexpr double kPreferredShare = 0.1;

// A step of the chosen format while it is analysed. Fields without a comment are those of LoggedStep.
struct Step {
  double time_ms, wall_s;
  std::uint32_t step, line, batch;
  float tflops, rate, tokens_rate;
  double clock_s = 0;  // time of day, or time since the start of the progress bar, in seconds; 0: not printed
  double interval = 1;        // number of steps that `time_ms` is the mean of
  std::uint32_t segment = 0;  // number of restarts before this step
  std::uint8_t events = 0;
  bool earlier = false;  // ran under settings that were changed later
  bool warm_up = false, stalled = false;
  std::uint32_t level = 0;  // index of the stretch between lasting changes
};

// True for formats that print tokens per second and GPU as their rate.
bool prints_tokens(LogFormat format) {
  return format == LogFormat::torchtitan || format == LogFormat::torchtune ||
         format == LogFormat::internevo || format == LogFormat::automodel;
}

// The analysis of one log. run() tries the formats of the log in order of preference, until one gives times.
class Times {
 public:
  Times(const TrainingLog& log, const LoggedWork& work) : log_(log), work_(work) {}

  Result<LoggedTimes> run() {
    if (log_.steps.empty()) return whole_run();
    const std::vector<LogFormat> formats = formats_by_preference();
    std::optional<LogFormat> rates_alone;
    for (const LogFormat format : formats) {
      out_ = {};
      out_.format = format;
      choose(format);
      follow();
      if (steps_.empty()) continue;
      if (!resolve_times()) {
        if (!rates_alone) rates_alone = format;
        continue;
      }
      const std::vector<Step> told = steps_;
      sum_up_all();
      if (out_.n == 0) continue;
      // If the clock contradicts the lines, the analysis is repeated with times from the clock.
      if (const auto other_ms = check_clock()) {
        const LoggedContradiction found{out_.median_ms, *other_ms, std::string{clock_name()}};
        steps_ = told;
        if (by_clock()) sum_up_all();
        if (!out_.confirmed) out_.contradiction = found;
      } else {
        check_rates();
      }
      if (out_.n > 0) return std::move(out_);
    }
    if (log_.runtime_s > 0) return whole_run();
    if (rates_alone) return rates_of(*rates_alone);
    return Error::at(log_.file, "", "no step is left after the first ones");
  }

 private:
  void sum_up_all() {
    keep_one_batch();
    find_intervals();
    find_warm_up();
    find_changes();
    find_stalls();
    find_gaps();
    sum_up();
  }

  // Formats of the log by preference; those with few lines come last.
  std::vector<LogFormat> formats_by_preference() const {
    const std::uint64_t most = *std::ranges::max_element(log_.n_of_format);
    std::vector<LogFormat> common, rare;
    for (std::size_t f = 0; f < kLogFormats; ++f) {
      if (log_.n_of_format[f] == 0) continue;
      const bool often =
          static_cast<double>(log_.n_of_format[f]) >= kPreferredShare * static_cast<double>(most);
      (often ? common : rare).push_back(static_cast<LogFormat>(f));
    }
    common.insert(common.end(), rare.begin(), rare.end());
    return common;
  }

  // Selects the records of one format: of the rank with most records, and of the progress bar with the
  // longest run time. Other ranks are counted as duplicates.
  void choose(LogFormat format) {
    std::map<std::int16_t, std::uint64_t> ranks;
    std::map<std::uint32_t, float> bars;
    for (const LoggedStep& s : log_.steps) {
      if (s.format != format) continue;
      ++ranks[s.rank];
      if (s.of_steps > 0) bars[s.of_steps] = std::max(bars[s.of_steps], s.rate);
    }
    const auto by_second = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto rank = std::ranges::max_element(ranks, by_second);
    const auto bar = std::ranges::max_element(bars, by_second);
    steps_.clear();
    std::size_t at = 0;
    std::uint8_t events = 0;
    std::uint32_t count = 0;
    for (const LoggedStep& s : log_.steps) {
      const std::size_t record = at++;
      events |= s.events;
      if (s.format != format) continue;
      if (bar != bars.end() && s.of_steps != bar->first) continue;
      if (s.rank != rank->first) {
        ++out_.duplicates;
        continue;
      }
      // Megatron-Bridge does not number its lines, so they are counted.
      const bool numbered = format != LogFormat::megatron_bridge && s.step > 0;
      ++count;
      steps_.push_back({.time_ms = s.time_ms,
                        .wall_s = s.wall_s,
                        .step = numbered                               ? s.step
                                : format == LogFormat::megatron_bridge ? count
                                                                       : s.step,
                        .line = s.line,
                        .batch = s.batch_sequences,
                        .tflops = s.tflops_per_gpu,
                        .rate = s.rate,
                        .tokens_rate = s.tokens_rate,
                        .clock_s = s.wall_s > 0     ? s.wall_s
                                   : s.of_steps > 0 ? static_cast<double>(s.rate)
                                                    : 0,
                        .events = std::exchange(events, std::uint8_t{0}),
                        .earlier = log_.settings.changed && record < log_.settings.at_record});
    }
  }

  // Removes repetitions and finds restarts. Equal lines of several ranks are one step. A step number that
  // goes back and then increases from there is a restart; one that only goes back counts as a repetition.
  void follow() {
    std::vector<Step> kept;
    kept.reserve(steps_.size());
    std::size_t segment_begin = 0;
    std::uint32_t segment = 0, highest = 0;
    std::vector<std::size_t> late;  // steps with a lower number, not yet known to be a restart
    const auto take = [&](std::size_t i) {
      Step s = steps_[i];
      s.segment = segment;
      kept.push_back(s);
      highest = s.step;
    };
    const auto restart_at = [&](std::size_t i) {
      out_.restarts.push_back({highest, steps_[i].step, steps_[i].line});
      ++segment;
      segment_begin = kept.size();
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      const bool announced = (s.events & static_cast<std::uint8_t>(LogEvent::start)) != 0;
      if (kept.size() == segment_begin) {
        take(i);
        continue;
      }
      if (announced || s.step > highest) {
        out_.duplicates += late.size();
        late.clear();
        if (announced) restart_at(i);
        take(i);
        continue;
      }
      if (said_before(kept, segment_begin, s)) {
        ++out_.duplicates;
        continue;
      }
      if (!late.empty() && s.step > steps_[late.back()].step) {
        restart_at(late.back());
        out_.duplicates += late.size() - 1;
        take(late.back());
        late.clear();
        if (s.step > highest)
          take(i);
        else
          --i;  // again, in the new segment
        continue;
      }
      late.push_back(i);
    }
    out_.duplicates += late.size();
    steps_ = std::move(kept);
    // Steps under settings that were changed later belong to another run, so they are left out if there are
    // later ones.
    const bool any_later = std::ranges::any_of(steps_, [](const Step& s) { return !s.earlier; });
    if (any_later) out_.earlier_settings = std::erase_if(steps_, [](const Step& s) { return s.earlier; });
  }

  // True if the same step with the same time is among the last 64 records.
  static bool said_before(const std::vector<Step>& kept, std::size_t from, const Step& s) {
    constexpr std::size_t kLookBack = 64;
    for (std::size_t n = 0, i = kept.size(); i > from && n < kLookBack; ++n) {
      const Step& before = kept[--i];
      if (before.step == s.step) return before.time_ms == s.time_ms && before.rate == s.rate;
      if (before.step < s.step) return false;
    }
    return false;
  }

  // The factor between milliseconds and the rate: time in ms = factor / rate. Empty if the work per step is
  // not known.
  [[nodiscard]] std::optional<double> rate_times_ms() const {
    switch (out_.format) {
      case LogFormat::torchtitan:
      case LogFormat::torchtune:
      case LogFormat::internevo:
      case LogFormat::automodel:
        if (work_.tokens_per_step && work_.n_gpus) return *work_.tokens_per_step / *work_.n_gpus * kSecond;
        return std::nullopt;
      case LogFormat::deepspeed:
        if (work_.samples_per_step) return *work_.samples_per_step * kSecond;
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  // Fills in `time_ms` of all steps, from the rates if there are no times, else from the clock. False if none
  // of them gives a time.
  bool resolve_times() {
    if (out_.format == LogFormat::composer && work_.samples_per_step) {
      // Samples per second have more printed digits than batches per second.
      for (Step& s : steps_)
        if (s.rate > 0) s.time_ms = *work_.samples_per_step / static_cast<double>(s.rate) * kSecond;
    }
    const bool told = std::ranges::any_of(steps_, [](const Step& s) { return s.time_ms > 0; });
    if (told) {
      std::erase_if(steps_, [](const Step& s) { return s.time_ms <= 0; });
      return true;
    }
    if (const auto scale = rate_times_ms()) {
      for (Step& s : steps_) s.time_ms = s.rate > 0 ? *scale / static_cast<double>(s.rate) : 0;
      std::erase_if(steps_, [](const Step& s) { return s.time_ms <= 0; });
      return true;
    }
    return by_clock();
  }

  // Step times derived from the clock. Each is the mean over `span` lines, because a clock with few digits is
  // too coarse for one line.
  struct ClockTimes {
    // (index of the line at which the interval ends, mean step time in ms)
    std::vector<std::pair<std::size_t, double>> ms;
    double total_ms = 0;    // from the first line to the last one, divided by the number of steps
    double unit_share = 0;  // half a unit of the clock, as a share of the whole time
    // Number of lines per interval.
    std::size_t span = 1;
    bool rises = true;  // the clock hardly ever goes back, so it is a clock
    // Lines were buffered and written together: only the mean over all of them is a time.
    bool bursts = false;
  };

  // True if the time between two lines is the time of steps: same segment, both have a clock, and no warm-up.
  [[nodiscard]] bool follows(std::size_t i, std::size_t before) const {
    const Step &s = steps_[i], &b = steps_[before];
    return s.segment == b.segment && s.clock_s > 0 && b.clock_s > 0 && s.step > b.step && !b.warm_up;
  }

  // Marks the lines with an unusually long time before them (more than twice the median). Returns no marks if
  // more than 30 % are marked, since the steps are then uneven.
  [[nodiscard]] std::vector<bool> pauses(double unit_s) const {
    constexpr double kFar = 2, kMostShare = 0.3;
    std::vector<double> distances;
    for (std::size_t i = 1; i < steps_.size(); ++i)
      if (follows(i, i - 1)) distances.push_back(steps_[i].clock_s - steps_[i - 1].clock_s);
    const double far = kFar * (median(distances) + unit_s);
    std::vector<bool> paused(steps_.size(), false);
    std::size_t n = 0;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      paused[i] = follows(i, i - 1) && steps_[i].clock_s - steps_[i - 1].clock_s > far;
      n += paused[i] ? 1U : 0U;
    }
    if (static_cast<double>(n) > kMostShare * static_cast<double>(distances.size()))
      paused.assign(steps_.size(), false);
    return paused;
  }

  // `without_events`: leave out intervals in which the log reports an evaluation, a checkpoint or a start.
  [[nodiscard]] ClockTimes clock_times(bool without_events) const {
    constexpr double kUnits = 20, kMostBack = 0.02;
    ClockTimes times;
    double unit_s = 1, passed_s = 0, steps = 0, longest_s = 0;
    std::size_t pairs = 0, back = 0, together = 0;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      if (!follows(i, i - 1)) continue;
      const double distance = steps_[i].clock_s - steps_[i - 1].clock_s;
      // A fraction in any time shows that the clock has milliseconds.
      if (steps_[i].clock_s != std::floor(steps_[i].clock_s)) unit_s = std::min(unit_s, 1e-3);
      ++pairs;
      if (distance < 0) {
        ++back;
        continue;
      }
      together += distance == 0 ? 1 : 0;
      passed_s += distance;
      longest_s = std::max(longest_s, distance);
      steps += static_cast<double>(steps_[i].step - steps_[i - 1].step);
    }
    times.rises = static_cast<double>(back) <= kMostBack * static_cast<double>(pairs);
    if (pairs == 0 || passed_s <= 0 || !times.rises) return times;
    const double per_line_s = passed_s / static_cast<double>(pairs);
    times.total_ms = kSecond * passed_s / steps;
    times.bursts = 2 * together > pairs && per_line_s > unit_s;
    times.unit_share = (times.bursts ? longest_s : unit_s / 2) / passed_s;
    const double span = std::ceil(kUnits * unit_s / per_line_s),
                 most = std::floor(static_cast<double>(pairs) / 2);
    times.span = static_cast<std::size_t>(std::clamp(span, 1.0, std::max(1.0, most)));
    const std::vector<bool> paused = times.bursts ? std::vector<bool>(steps_.size(), false) : pauses(unit_s);
    std::size_t since = 0;  // the last pause or event; intervals do not extend over it
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      const bool told = without_events && steps_[i].events != 0;
      if (paused[i] || told || !follows(i, i - 1)) since = i;
      const std::size_t before = std::max(since, i - std::min(i, times.span));
      if (before == i || steps_[i].clock_s < steps_[before].clock_s) continue;
      const double distance = steps_[i].clock_s - steps_[before].clock_s;
      times.ms.emplace_back(i,
                            kSecond * distance / static_cast<double>(steps_[i].step - steps_[before].step));
    }
    return times;
  }

  // Replaces the step times by those of the clock, or by their mean if lines come in bursts. False if the
  // log has no clock.
  bool by_clock() {
    const ClockTimes clock = clock_times(false);
    std::vector<Step> timed;
    for (const auto& [i, ms] : clock.ms) {
      Step s = steps_[i];
      s.time_ms = ms;
      if (ms > 0) timed.push_back(s);
    }
    if (timed.empty()) return false;
    out_.from_clock = true;
    if (clock.bursts)
      for (Step& s : timed) s.time_ms = clock.total_ms;
    steps_ = std::move(timed);
    return true;
  }

  // The median of the step times by the clock.
  static double middle_of(const ClockTimes& clock) {
    std::vector<double> ms;
    for (const auto& [i, time] : clock.ms) ms.push_back(time);
    return median(std::move(ms));
  }

  // Name of the clock in messages.
  [[nodiscard]] std::string_view clock_name() const {
    const bool is_bar =
        std::ranges::any_of(steps_, [](const Step& s) { return s.clock_s > 0 && s.wall_s == 0; });
    return is_bar ? "the clock of the progress bar" : "the times of day of the lines";
  }

  // The step time in ms by the clock, if it contradicts the lines by more than 10 % or confirms them with
  // more digits. Otherwise empty. Sets `out_.confirmed` if both agree.
  std::optional<double> check_clock() {
    constexpr double kTolerance = 0.1;
    constexpr std::size_t kLeast = 5;
    if (out_.from_clock || steps_.empty()) return std::nullopt;
    const ClockTimes clock = clock_times(true);
    if (clock.total_ms <= 0 || clock.unit_share > kTolerance) return std::nullopt;
    const double middle = middle_of(clock), tolerance = 1 + kTolerance + 2 * clock.unit_share;
    // The lines of MLPerf exclude the evaluations after them, so the clock is an upper bound. In CSV files, a
    // column of numbers that are not dates is only assumed to be a clock in seconds.
    constexpr double kFirstDate = 1e8;
    const bool is_guess = out_.format == LogFormat::csv && steps_.front().clock_s < kFirstDate;
    const bool is_partial = out_.format == LogFormat::mlperf || clock.bursts || clock.ms.size() < kLeast;
    const double least = is_partial ? 0 : middle;
    // Upper bound: the mean over all steps, including stalls and the time between lines.
    const double most = std::max(middle, clock.total_ms);
    if (is_guess && (out_.median_ms > most * tolerance || out_.median_ms * tolerance < least))
      return std::nullopt;
    if (out_.median_ms > most * tolerance) return clock.bursts || middle <= 0 ? clock.total_ms : middle;
    if (out_.median_ms * tolerance < least) return middle;
    out_.confirmed = least > 0;
    // Both agree, and the clock is more precise.
    constexpr double kCoarse = 0.01, kPercent = 100;
    if (out_.confirmed && log_.rounding_percent > kPercent * kCoarse &&
        clock.unit_share < log_.rounding_percent / kPercent / 2) {
      return middle;
    }
    return std::nullopt;
  }

  // Compares the step time with tokens per step over tokens per second. If they differ by more than 25 %, the
  // step time is cleared, because the log does not show which of them is wrong.
  void check_rates() {
    constexpr double kTolerance = 0.25;
    if (out_.confirmed || out_.from_clock || work_.is_assumed || !work_.tokens_per_step || !work_.n_gpus)
      return;
    std::vector<double> rates;
    for (const Step& s : steps_)
      if (!s.warm_up && !s.stalled && s.tokens_rate > 0) rates.push_back(static_cast<double>(s.tokens_rate));
    if (rates.empty()) return;
    const double other = kSecond * *work_.tokens_per_step / *work_.n_gpus / median(std::move(rates));
    if (other < out_.median_ms * (1 + kTolerance) && out_.median_ms < other * (1 + kTolerance)) return;
    out_.contradiction =
        LoggedContradiction{out_.median_ms, other,
                            fmt::format("their tokens per second, of {:.0f} tokens a step on {:.0f} GPUs",
                                        *work_.tokens_per_step, *work_.n_gpus)};
    out_.why_no_time = fmt::format(
        "the lines give {:.1f} ms per step, but {} give {:.1f} ms. One of them is wrong, or --gbs, --seq or "
        "--gpus differ from the run",
        out_.median_ms, out_.contradiction->other, other);
    out_.median_ms = out_.p10_ms = out_.p90_ms = out_.mean_ms = 0;
  }

  // The result for a log with rates only: medians of the rates, and the reason why there is no time.
  LoggedTimes rates_of(LogFormat format) {
    out_ = {};
    out_.format = format;
    choose(format);
    follow();
    out_.why_no_time =
        format == LogFormat::csv || format == LogFormat::tensorboard
            ? std::string{"the time column decreases between steps, so it is not a clock, and it has no unit: name it `step_time_ms` or `step_time_s`"}
            : fmt::format("{} prints rates, but the work of a step is unknown: {}",
                          log_format_name(format),
                          prints_tokens(format) ? "give --gbs, --seq and --gpus" : "give --gbs, the samples per step");
    std::vector<double> rates, tflops;
    for (const Step& s : steps_) {
      if (s.rate > 0) rates.push_back(s.rate);
      if (s.tflops > 0) tflops.push_back(s.tflops);
    }
    out_.n = steps_.size();
    out_.first_step = steps_.front().step;
    out_.last_step = steps_.back().step;
    (prints_tokens(format) ? out_.tokens_per_s_per_gpu : out_.samples_per_s) = median(std::move(rates));
    out_.tflops_per_gpu = median(std::move(tflops));
    if (out_.tokens_per_s_per_gpu == 0) out_.tokens_per_s_per_gpu = log_.tokens_per_s_per_gpu;
    return std::move(out_);
  }

  // A batch size that grows changes the step time. The steps with the most frequent batch size are kept.
  void keep_one_batch() {
    std::map<std::uint32_t, std::uint64_t> batches;
    for (const Step& s : steps_) ++batches[s.batch];
    if (batches.empty()) return;
    const auto most =
        std::ranges::max_element(batches, [](const auto& a, const auto& b) { return a.second < b.second; });
    out_.batch_sequences = most->first;
    out_.other_batches = std::erase_if(steps_, [&](const Step& s) { return s.batch != most->first; });
  }

  // The number of steps that each line covers.
  void find_intervals() {
    std::vector<double> distances;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      if (s.segment != steps_[i - 1].segment || s.step <= steps_[i - 1].step) continue;
      s.interval = static_cast<double>(s.step - steps_[i - 1].step);
      distances.push_back(s.interval);
    }
    out_.steps_per_line = distances.empty() ? 1 : median(std::move(distances));
    // A gap in the step numbers does not make the line a mean over more steps: lines are missing.
    for (Step& s : steps_) s.interval = std::min(s.interval, out_.steps_per_line);
  }

  // The first steps of each segment are warm-up while they are slower than the median of the 16 steps after
  // them by more than 5 %.
  void find_warm_up() {
    out_.warm_up = 0;
    for (std::size_t begin = 0; begin < steps_.size();) {
      std::size_t end = begin;
      while (end < steps_.size() && steps_[end].segment == steps_[begin].segment) ++end;
      for (std::size_t i = begin; i + 1 < end && i < begin + kMostWarmUp; ++i) {
        std::vector<double> behind;
        for (std::size_t k = i + 1; k < std::min(end, i + 17); ++k) behind.push_back(steps_[k].time_ms);
        if (steps_[i].time_ms <= (1 + kWarmUpShare) * median(std::move(behind))) break;
        steps_[i].warm_up = true;
        ++out_.warm_up;
      }
      begin = end;
    }
  }

  // Finds where the step time changes for good (detail/change_points.h), and numbers the stretches between
  // the changes.
  void find_changes() {
    std::vector<std::size_t> counted;
    std::vector<double> times;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].level = 0;
      if (steps_[i].warm_up) continue;
      counted.push_back(i);
      times.push_back(steps_[i].time_ms);
    }
    out_.changes.clear();
    std::vector<std::size_t> splits = detail::changes_of(times);
    std::uint32_t level = 0;
    for (std::size_t k = 0; k < counted.size(); ++k) {
      if (level < splits.size() && k == splits[level]) ++level;
      steps_[counted[k]].level = level;
    }
    splits.insert(splits.begin(), 0);
    splits.push_back(counted.size());
    const auto middle = [&](std::size_t n) {
      return median({times.begin() + static_cast<std::ptrdiff_t>(splits[n]),
                     times.begin() + static_cast<std::ptrdiff_t>(splits[n + 1])});
    };
    for (std::size_t n = 1; n + 1 < splits.size(); ++n) {
      const Step& s = steps_[counted[splits[n]]];
      out_.changes.push_back({s.step, s.line, middle(n - 1), middle(n)});
    }
  }

  // [step] The median of a block of kBlock lines and both neighbouring blocks, without warm-up, for each
  // stretch separately. It is the usual time against which stalls are measured.
  void find_local_medians() {
    local_.assign(steps_.size(), 0);
    const std::uint32_t levels = static_cast<std::uint32_t>(out_.changes.size()) + 1;
    for (std::uint32_t level = 0; level < levels; ++level) find_local_medians(level);
  }

  void find_local_medians(std::uint32_t level) {
    std::vector<std::size_t> counted;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!steps_[i].warm_up && steps_[i].level == level) counted.push_back(i);
    for (std::size_t from = 0; from < counted.size(); from += kBlock) {
      const std::size_t first = from >= kBlock ? from - kBlock : 0;
      const std::size_t last = std::min(counted.size(), from + 2 * kBlock);
      std::vector<double> values;
      for (std::size_t k = first; k < last; ++k) values.push_back(steps_[counted[k]].time_ms);
      const double middle = median(std::move(values));
      for (std::size_t k = from; k < std::min(counted.size(), from + kBlock); ++k)
        local_[counted[k]] = middle;
    }
  }

  // The likely cause of a stall: events in the log, else an evaluation or checkpoint that was due by the
  // intervals in the settings. `step_before` is the last step before the stall.
  LogEvent cause_of(std::uint8_t events, std::uint32_t step_before) const {
    const auto has = [&](LogEvent e) { return (events & static_cast<std::uint8_t>(e)) != 0; };
    if (has(LogEvent::evaluation) && has(LogEvent::checkpoint)) return LogEvent::evaluation_or_checkpoint;
    if (has(LogEvent::evaluation)) return LogEvent::evaluation;
    if (has(LogEvent::checkpoint)) return LogEvent::checkpoint;
    const auto due = [&](std::optional<std::int64_t> interval) {
      return interval && *interval > 1 && step_before > 0 && step_before % *interval == 0;
    };
    if (due(work_.evaluation_interval)) return LogEvent::evaluation;
    if (due(work_.checkpoint_interval)) return LogEvent::checkpoint;
    return LogEvent::none;
  }

  // A step is a stall if it is longer than its local median by 10 % and by 6 robust deviations.
  void find_stalls() {
    out_.stalls.clear();
    find_local_medians();
    std::vector<double> deviations;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!steps_[i].warm_up) deviations.push_back(std::abs(steps_[i].time_ms / local_[i] - 1));
    const double spread = kMadToDeviation * median(std::move(deviations));
    const double limit = 1 + std::max(kStallShare, kStallDeviations * spread);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      if (s.warm_up || s.time_ms <= limit * local_[i]) continue;
      s.stalled = true;
      const std::uint32_t before = s.step > static_cast<std::uint32_t>(s.interval)
                                       ? s.step - static_cast<std::uint32_t>(s.interval)
                                       : 0;
      out_.stalls.push_back(
          {s.step, s.line, (s.time_ms - local_[i]) * s.interval, cause_of(s.events, before), false});
    }
  }

  // Time between lines beyond the times of their steps, such as an evaluation that no step time includes.
  void find_gaps() {
    if (out_.from_clock) return;
    std::vector<LoggedStall> gaps;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      const Step &s = steps_[i], &before = steps_[i - 1];
      if (s.segment != before.segment || s.wall_s <= 0 || before.wall_s <= 0 || s.step <= before.step)
        continue;
      const double steps = static_cast<double>(s.step - before.step);
      if (steps > out_.steps_per_line) continue;  // lines are missing
      const double gap_s = s.wall_s - before.wall_s - steps * s.time_ms / kSecond;
      const double usual_s = (local_[i] > 0 ? local_[i] : s.time_ms) / kSecond;
      if (gap_s <= std::max({kGapSeconds, kGapSteps * usual_s, kStallShare * steps * usual_s})) continue;
      gaps.push_back({s.step, s.line, gap_s * kSecond, cause_of(s.events, before.step), true});
    }
    out_.stalls.insert(out_.stalls.end(), gaps.begin(), gaps.end());
    std::ranges::stable_sort(out_.stalls, {}, &LoggedStall::line);
  }

  // Change over the whole stretch in ms: median slope of all pairs of block medians (Theil-Sen), times the
  // number of blocks minus one. Empty for fewer than 32 times.
  std::optional<double> trend(const std::vector<double>& times) const {
    constexpr std::size_t kBlocks = 32, kLeast = 8;
    const std::size_t n = std::min(kBlocks, times.size() / 4);
    if (n < kLeast) return std::nullopt;
    std::vector<double> middles, slopes;
    for (std::size_t b = 0; b < n; ++b) {
      const auto from = times.begin() + static_cast<std::ptrdiff_t>(b * times.size() / n);
      const auto to = times.begin() + static_cast<std::ptrdiff_t>((b + 1) * times.size() / n);
      middles.push_back(median({from, to}));
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = i + 1; k < n; ++k)
        slopes.push_back((middles[k] - middles[i]) / static_cast<double>(k - i));
    return median(std::move(slopes)) * static_cast<double>(n - 1);
  }

  // The stretch between changes with most steps.
  [[nodiscard]] std::uint32_t longest_level() const {
    std::vector<double> lengths(out_.changes.size() + 1, 0);
    for (const Step& s : steps_)
      if (!s.warm_up) lengths[s.level] += s.interval;
    return static_cast<std::uint32_t>(std::ranges::max_element(lengths) - lengths.begin());
  }

  // Summarises the steps of the longest stretch without stalls. The mean alone covers all steps except the
  // warm-up.
  void sum_up() {
    constexpr double kPercent = 100, kLow = 0.1, kHigh = 0.9;
    std::vector<double> times, tflops, rates;
    double weighted = 0, weight = 0;
    const std::uint32_t level = longest_level();
    out_.other_stretches = 0;
    const Step *first = nullptr, *last = nullptr;
    for (const Step& s : steps_) {
      if (s.warm_up) continue;
      weighted += s.time_ms * s.interval;
      weight += s.interval;
      if (s.stalled) continue;
      if (s.level != level) {
        ++out_.other_stretches;
        continue;
      }
      if (first == nullptr) first = &s;
      last = &s;
      times.push_back(s.time_ms);
      if (s.tflops > 0) tflops.push_back(s.tflops);
      if (s.rate > 0) rates.push_back(s.rate);
    }
    out_.n = times.size();
    if (times.empty()) return;
    out_.first_step = steps_.front().step;
    out_.last_step = steps_.back().step;
    out_.stretch_first_step = first->step;
    out_.stretch_last_step = last->step;
    out_.mean_ms = weighted / weight;
    out_.median_ms = median(times);
    out_.p10_ms = quantile(times, kLow);
    out_.p90_ms = quantile(times, kHigh);
    if (const auto slope = trend(times)) out_.trend_percent = kPercent * *slope / out_.median_ms;
    out_.tflops_per_gpu = median(std::move(tflops));
    if (prints_tokens(out_.format))
      out_.tokens_per_s_per_gpu = median(std::move(rates));
    else if (out_.format == LogFormat::deepspeed || out_.format == LogFormat::composer)
      out_.samples_per_s = median(std::move(rates));
    fill_in_rates();
  }

  // Derives rates from the step time, where the log does not print them.
  void fill_in_rates() {
    const double seconds = out_.median_ms / kSecond;
    if (out_.samples_per_s == 0) {
      if (out_.batch_sequences > 0) out_.samples_per_s = out_.batch_sequences / seconds;
      if (out_.batch_sequences == 0 && work_.samples_per_step)
        out_.samples_per_s = *work_.samples_per_step / seconds;
    }
    if (out_.tokens_per_s_per_gpu == 0) {
      if (work_.tokens_per_step && work_.n_gpus)
        out_.tokens_per_s_per_gpu = *work_.tokens_per_step / *work_.n_gpus / seconds;
      else
        out_.tokens_per_s_per_gpu = log_.tokens_per_s_per_gpu;
    }
  }

  // The result from the summary that Hugging Face's Trainer prints at the end, for logs without steps.
  Result<LoggedTimes> whole_run() {
    out_ = {};
    out_.format = LogFormat::huggingface;
    out_.whole_run = true;
    out_.samples_per_s = log_.run_samples_per_s;
    double seconds = log_.run_steps_per_s > 0 ? 1 / log_.run_steps_per_s : 0;
    if (work_.samples_per_step && log_.run_samples_per_s > 0)
      seconds = *work_.samples_per_step / log_.run_samples_per_s;
    if (seconds <= 0) {
      out_.why_no_time =
          "the summary of the run has samples per second, not steps: give --gbs, the samples per step";
      return std::move(out_);
    }
    const double steps = log_.runtime_s / seconds;
    out_.n = 1;
    out_.last_step = static_cast<std::uint32_t>(std::min(steps + 0.5, 4e9));
    out_.steps_per_line = std::max(1.0, steps);
    out_.median_ms = out_.p10_ms = out_.p90_ms = out_.mean_ms = seconds * kSecond;
    fill_in_rates();
    return std::move(out_);
  }

  const TrainingLog& log_;
  const LoggedWork& work_;
  LoggedTimes out_;
  std::vector<Step> steps_;
  std::vector<double> local_;  // [step] median of the steps around it
};

}  // namespace

std::string_view to_string(LogEvent cause) {
  switch (cause) {
    case LogEvent::evaluation: return "evaluation";
    case LogEvent::checkpoint: return "checkpoint";
    case LogEvent::evaluation_or_checkpoint: return "evaluation_or_checkpoint";
    case LogEvent::start: return "start";
    case LogEvent::none: break;
  }
  return "unknown";
}

std::string contradiction_text(const LoggedContradiction& contradiction) {
  const auto ms = [](double value) { return with_separators(fmt::format("{:.1f}", value)) + " ms"; };
  return fmt::format("the lines give {} per step, {} {}: the clock is used", ms(contradiction.lines_ms),
                     contradiction.other, ms(contradiction.other_ms));
}

Result<LoggedTimes> logged_times(const TrainingLog& log, const LoggedWork& work) {
  return Times{log, work}.run();
}

}  // namespace stepcast
