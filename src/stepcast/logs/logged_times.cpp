#include "stepcast/logs/logged_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"

namespace stepcast {
namespace {

constexpr double kSecond = 1e3;                   // in milliseconds
constexpr double kMadToDeviation = 1.4826;        // of a normal distribution
constexpr double kStallShare = 0.1;               // at least so much longer than the steps around it
constexpr double kStallDeviations = 6;            // and so many robust deviations
constexpr double kWarmUpShare = 0.05;             // first steps so much slower than those behind them
constexpr std::size_t kMostWarmUp = 32;           // lines
constexpr std::size_t kBlock = 32;                // lines that a local median takes, and their neighbours
constexpr double kGapSeconds = 2, kGapSteps = 1;  // a clock that is ahead by more holds something else
constexpr double kPreferredShare = 0.1;           // of the lines of the most frequent format

struct Step {
  double time_ms, wall_s;
  std::uint32_t step, line, batch;
  float tflops, rate;
  double interval = 1;        // steps that the time is the mean of
  std::uint32_t segment = 0;  // since so many restarts
  std::uint8_t events = 0;
  bool earlier = false;  // under settings that changed later
  bool warm_up = false, stalled = false;
};

bool prints_tokens(LogFormat format) {
  return format == LogFormat::torchtitan || format == LogFormat::torchtune || format == LogFormat::internevo;
}

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
      keep_one_batch();
      find_intervals();
      find_warm_up();
      find_stalls();
      find_gaps();
      sum_up();
      if (out_.n > 0) return std::move(out_);
    }
    if (log_.runtime_s > 0) return whole_run();
    if (rates_alone) return rates_of(*rates_alone);
    return Error::at(log_.file, "", "no step is left behind the first ones");
  }

 private:
  // Of several formats the preferred one, unless it is rare.
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

  // The records of the format; of the rank with most of them, of the progress bar that took longest.
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
                        .events = std::exchange(events, std::uint8_t{0}),
                        .earlier = log_.settings.changed && record < log_.settings.at_record});
    }
  }

  // What several ranks print alike is one step; a number that goes back and goes on from there is a restart.
  void follow() {
    std::vector<Step> kept;
    kept.reserve(steps_.size());
    std::size_t segment_begin = 0;
    std::uint32_t segment = 0, highest = 0;
    std::vector<std::size_t> late;  // went back, and nothing says yet what that means
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
          --i;  // once more, in the new segment
        continue;
      }
      late.push_back(i);
    }
    out_.duplicates += late.size();
    steps_ = std::move(kept);
    // Times under other settings are those of another run.
    const bool any_later = std::ranges::any_of(steps_, [](const Step& s) { return !s.earlier; });
    if (any_later) out_.earlier_settings = std::erase_if(steps_, [](const Step& s) { return s.earlier; });
  }

  // The same step with the same time, a few lines back.
  static bool said_before(const std::vector<Step>& kept, std::size_t from, const Step& s) {
    constexpr std::size_t kLookBack = 64;
    for (std::size_t n = 0, i = kept.size(); i > from && n < kLookBack; ++n) {
      const Step& before = kept[--i];
      if (before.step == s.step) return before.time_ms == s.time_ms && before.rate == s.rate;
      if (before.step < s.step) return false;
    }
    return false;
  }

  // Milliseconds times the rate, where it is known.
  [[nodiscard]] std::optional<double> rate_times_ms() const {
    switch (out_.format) {
      case LogFormat::torchtitan:
      case LogFormat::torchtune:
      case LogFormat::internevo:
        if (work_.tokens_per_step && work_.n_gpus) return *work_.tokens_per_step / *work_.n_gpus * kSecond;
        return std::nullopt;
      case LogFormat::deepspeed:
        if (work_.samples_per_step) return *work_.samples_per_step * kSecond;
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  // False where there are rates and nothing makes times of them.
  bool resolve_times() {
    if (out_.format == LogFormat::composer && work_.samples_per_step) {
      // Samples per second have more digits than batches per second.
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
    // By the clock: from the line before, of the same start.
    out_.from_clock = true;
    std::vector<Step> timed;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      const Step& before = steps_[i - 1];
      Step s = steps_[i];
      if (s.segment != before.segment || s.wall_s <= before.wall_s || before.wall_s <= 0 ||
          s.step <= before.step)
        continue;
      s.time_ms = (s.wall_s - before.wall_s) * kSecond / static_cast<double>(s.step - before.step);
      timed.push_back(s);
    }
    if (timed.empty()) return false;
    steps_ = std::move(timed);
    return true;
  }

  LoggedTimes rates_of(LogFormat format) {
    out_ = {};
    out_.format = format;
    choose(format);
    follow();
    out_.why_no_time = fmt::format(
        "{} prints rates, and nothing says how much work a step is: {}", log_format_name(format),
        prints_tokens(format) ? "say --gbs, --seq and --gpus" : "say --gbs, the samples of a step");
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

  // A batch that grows makes other steps: those of the most frequent one count.
  void keep_one_batch() {
    std::map<std::uint32_t, std::uint64_t> batches;
    for (const Step& s : steps_) ++batches[s.batch];
    if (batches.empty()) return;
    const auto most =
        std::ranges::max_element(batches, [](const auto& a, const auto& b) { return a.second < b.second; });
    out_.batch_sequences = most->first;
    out_.other_batches = std::erase_if(steps_, [&](const Step& s) { return s.batch != most->first; });
  }

  void find_intervals() {
    std::vector<double> distances;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      Step& s = steps_[i];
      if (s.segment != steps_[i - 1].segment || s.step <= steps_[i - 1].step) continue;
      s.interval = static_cast<double>(s.step - steps_[i - 1].step);
      distances.push_back(s.interval);
    }
    out_.steps_per_line = distances.empty() ? 1 : median(std::move(distances));
    // A hole in the numbers is no longer mean.
    for (Step& s : steps_) s.interval = std::min(s.interval, out_.steps_per_line);
  }

  void find_warm_up() {
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

  // Medians of blocks of lines with their neighbours, warm-up left out.
  void find_local_medians() {
    std::vector<std::size_t> counted;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (!steps_[i].warm_up) counted.push_back(i);
    local_.assign(steps_.size(), 0);
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

  void find_stalls() {
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

  // What the clock says beyond the times of the steps.
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

  // Slope of the medians of blocks, over all of them; nothing where they are too few.
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

  void sum_up() {
    constexpr double kPercent = 100, kLow = 0.1, kHigh = 0.9;
    std::vector<double> times, tflops, rates;
    double weighted = 0, weight = 0;
    for (const Step& s : steps_) {
      if (s.warm_up) continue;
      weighted += s.time_ms * s.interval;
      weight += s.interval;
      if (s.stalled) continue;
      times.push_back(s.time_ms);
      if (s.tflops > 0) tflops.push_back(s.tflops);
      if (s.rate > 0) rates.push_back(s.rate);
    }
    out_.n = times.size();
    if (times.empty()) return;
    out_.first_step = steps_.front().step;
    out_.last_step = steps_.back().step;
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

  // The summary that Hugging Face's Trainer prints.
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
          "the summary of the run says samples per second and not steps: say --gbs, the samples of a step";
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

Result<LoggedTimes> logged_times(const TrainingLog& log, const LoggedWork& work) {
  return Times{log, work}.run();
}

}  // namespace stepcast
