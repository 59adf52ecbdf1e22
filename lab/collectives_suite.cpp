#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/base/statistics.h"
#include "stepcast/base/text.h"
#include "stepcast/cost/collective_model.h"
#include "stepcast/cost/collective_scaling.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/collective_fit.h"
#include "calibrate/collective_measurements.h"
#include "lab/expert_tests.h"
#include "lab/suites.h"
#include "lab/unseen_system.h"

namespace stepcast {
namespace {

// Without held-out octaves a short curve has few sizes: the fit accepts two.
constexpr CollectiveFitOptions kFoldFit{.min_sizes = 2};
constexpr std::size_t kMinOctaves = 3;
constexpr std::size_t kDenseSizes = 200;
constexpr double kSmoothMedian = 0.002, kSmoothP90 = 0.02;
constexpr double kLargeMessage = 1 << 20;

long octave_of(double bytes) { return static_cast<long>(std::floor(std::log2(bytes) + 1e-9)); }

std::set<long> octaves_of(const CollectiveMeasurements& m) {
  std::set<long> octaves;
  for (const CollectiveSample& s : m.samples) octaves.insert(octave_of(s.message_bytes));
  return octaves;
}

std::string row_name(const CollectiveSample& s) {
  return fmt::format("{} B{}{}", s.message_bytes, s.dtype == DType::unknown ? "" : " ",
                     s.dtype == DType::unknown ? "" : to_string(s.dtype));
}

ScoredRow scored(const CollectiveSample& s, const Estimate& e) {
  ScoredRow row{row_name(s), s.time_us, e.time.value(), e.p10.value(), e.p90.value()};
  return row;
}

// Mean |time - median of its repeats| / time in percent: noise that no model of the size can predict.
std::optional<double> repeat_noise(const CollectiveMeasurements& m) {
  std::map<double, std::vector<double>> by_size;
  for (const CollectiveSample& s : m.samples) by_size[s.message_bytes].push_back(s.time_us);
  double sum = 0;
  std::size_t n = 0;
  for (auto& [bytes, times] : by_size) {
    if (times.size() < 2) continue;
    const double middle = quantile(times, 0.5);
    for (const double t : times) {
      sum += 100 * std::abs(t - middle) / t;
      ++n;
    }
  }
  if (n == 0) return std::nullopt;
  return sum / static_cast<double>(n);
}

// True if every size is close to the line between its neighbours.
bool is_smooth(const CollectiveMeasurements& m) {
  std::map<double, double> times;
  for (const CollectiveSample& s : m.samples) times[s.message_bytes] = s.time_us;
  std::vector<double> jumps;
  std::vector<std::pair<double, double>> p(times.begin(), times.end());
  for (std::size_t i = 1; i + 1 < p.size(); ++i) {
    const double share = (p[i].first - p[i - 1].first) / (p[i + 1].first - p[i - 1].first);
    const double between = p[i - 1].second + share * (p[i + 1].second - p[i - 1].second);
    jumps.push_back(std::abs(p[i].second / between - 1));
  }
  return !jumps.empty() && quantile(jumps, 0.5) <= kSmoothMedian && quantile(jumps, 0.9) <= kSmoothP90;
}

struct FoldScores {
  std::vector<ScoredRow> ours, form;
  double published_ape = 0;  // sum, percent
  double published_ln = 0;   // sum of ln(ape + 4e-4)
};

Result<FoldScores> score_fold(const CollectiveMeasurements& all, long octave) {
  CollectiveMeasurements kept = all;
  kept.samples.clear();
  std::vector<CollectiveSample> left_out;
  for (const CollectiveSample& s : all.samples)
    (octave_of(s.message_bytes) == octave ? left_out : kept.samples).push_back(s);
  STEPCAST_ASSIGN(const CollectiveFit fit, fit_collective(kept, kFoldFit));
  FoldScores scores;
  for (const CollectiveSample& s : left_out) {
    const Bytes bytes{s.message_bytes};
    scores.ours.push_back(scored(s, fit.curve(s.dtype).at(bytes)));
    scores.form.push_back({row_name(s), s.time_us, fit.form.time(bytes).value(), {}, {}});
    const double ape = std::abs(fit.published.time(bytes).value() - s.time_us) / s.time_us;
    scores.published_ape += 100 * ape;
    scores.published_ln += std::log(ape + 4e-4);
  }
  return scores;
}

struct CurveScores {
  SetScore ours, form;
};

Result<CurveScores> held_out_sizes(const CollectiveMeasurements& m) {
  CurveScores result;
  result.ours.set = result.form.set = m.name();
  result.ours.n_fit = result.form.n_fit = m.samples.size();
  result.ours.group = m.platform;
  double published_ape = 0, published_ln = 0;
  for (const long octave : octaves_of(m)) {
    STEPCAST_ASSIGN(FoldScores fold, score_fold(m, octave));
    published_ape += fold.published_ape;
    published_ln += fold.published_ln;
    std::move(fold.ours.begin(), fold.ours.end(), std::back_inserter(result.ours.rows));
    std::move(fold.form.begin(), fold.form.end(), std::back_inserter(result.form.rows));
  }
  const auto n = static_cast<double>(result.form.rows.size());
  const Metrics form = score(result.form.rows);
  result.form.extras = {{"sigmoid_mape", published_ape / n},
                        {"sigmoid_gmae", 100 * std::exp(published_ln / n)},
                        {"ours_better_share", form.mape < published_ape / n ? 1.0 : 0.0}};
  if (const auto noise = repeat_noise(m)) result.ours.extras.push_back({"repeat_noise_pct", *noise});
  return result;
}

// Predictions of one curve from other curves of its platform and collective.
SetScore score_other(const CollectiveMeasurements& m, const TimeCurve& any,
                     const std::map<DType, TimeCurve>& by_dtype, std::uint64_t n_fit, double from_bytes) {
  SetScore set{.set = m.name(), .n_fit = n_fit};
  for (const CollectiveSample& s : m.samples) {
    if (s.message_bytes < from_bytes) continue;
    const auto it = by_dtype.find(s.dtype);
    set.rows.push_back(scored(s, (it != by_dtype.end() ? it->second : any).at(Bytes{s.message_bytes})));
  }
  return set;
}

Result<TimeCurve> scaled(const CollectiveMeasurements& target,
                         const std::vector<const CollectiveMeasurements*>& from,
                         const std::vector<CollectiveFit>& fits, DType dtype) {
  std::vector<RankCurve> curves;
  for (std::size_t i = 0; i < from.size(); ++i) curves.push_back({from[i]->n_ranks, &fits[i].curve(dtype)});
  if (target.n_nodes > 1 && target.gpus_per_node > 1 && from.size() == 1) {
    return scale_nodes(target.collective, fits[0].curve(dtype), from[0]->n_nodes, target.n_nodes,
                       target.gpus_per_node);
  }
  return scale_ranks(target.collective, curves, target.n_ranks);
}

Result<std::vector<SetScore>> score_unseen(const CollectiveMeasurements& target,
                                           const std::vector<const CollectiveMeasurements*>& from,
                                           const std::vector<double>& from_bytes) {
  std::vector<CollectiveFit> fits;
  std::uint64_t n_fit = 0;
  std::set<DType> dtypes;
  for (const CollectiveMeasurements* m : from) {
    STEPCAST_ASSIGN(CollectiveFit fit, fit_collective(*m, kFoldFit));
    fits.push_back(std::move(fit));
    n_fit += m->samples.size();
    for (const CollectiveSample& s : m->samples) dtypes.insert(s.dtype);
  }
  STEPCAST_ASSIGN(const TimeCurve any, scaled(target, from, fits, DType::unknown));
  std::map<DType, TimeCurve> by_dtype;
  for (const DType dtype : dtypes) {
    STEPCAST_ASSIGN(const TimeCurve curve, scaled(target, from, fits, dtype));
    by_dtype.emplace(dtype, curve);
  }
  std::vector<SetScore> sets;
  for (const double bytes : from_bytes) sets.push_back(score_other(target, any, by_dtype, n_fit, bytes));
  return sets;
}

bool says_nvswitch(const std::string& interconnect) {
  return lower(interconnect).find("nvswitch") != std::string::npos;
}

// A known curve: start-up, and a bandwidth that rises in one or two steps to its peak.
struct KnownCurve {
  double startup_us, peak_GBps, depth, where, steepness, q;
  [[nodiscard]] double time_us(double bytes) const {
    const double x = std::log2(bytes);
    const double GBps = peak_GBps * std::exp(-depth / (1 + std::exp(steepness * (x - where))));
    const double transfer = bytes / (1000 * GBps);
    return std::pow(std::pow(startup_us, q) + std::pow(transfer, q), 1 / q);
  }
};

// Uniform in [0, 1), with bits that do not depend on the standard library.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
double between(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * uniform(random);
}
double normal(std::mt19937_64& random) {
  const double a = 1 - uniform(random), b = uniform(random);
  return std::sqrt(-2 * std::log(a)) * std::cos(2 * 3.14159265358979323846 * b);
}

Result<TestScore> synthetic(unsigned threads) {
  constexpr std::size_t kDraws = 100;
  TestScore test = refit_test("synthetic_3pct");
  test.sets.resize(kDraws);
  STEPCAST_TRY(parallel_for(kDraws, threads, [&](std::size_t draw) -> Status {
    std::mt19937_64 random{20240 + draw};
    KnownCurve truth{};
    truth.startup_us = std::exp(between(random, std::log(5), std::log(60)));
    truth.peak_GBps = std::exp(between(random, std::log(10), std::log(450)));
    truth.depth = between(random, 0.2, 2.0);
    truth.where = between(random, 16, 22);
    truth.steepness = between(random, 0.5, 1.2);
    truth.q = between(random, 1, 2);
    CollectiveMeasurements m{.platform = fmt::format("draw{:03}", draw)};
    m.collective = CollectiveOp::send_receive;  // bus factor 1
    m.gpus_per_node = m.n_ranks = 2;
    for (int i = 2; i <= 32; ++i) {
      const double bytes = std::exp2(i);
      m.samples.push_back({bytes, truth.time_us(bytes) * std::exp(0.03 * normal(random)), DType::unknown, 0});
    }
    STEPCAST_ASSIGN(const CollectiveFit fit, fit_collective(m));
    SetScore& set = test.sets[draw];
    set.set = m.platform;
    set.n_fit = m.samples.size();
    for (const CollectiveSample& s : m.samples) {
      const Estimate e = fit.curve().at(Bytes{s.message_bytes});
      set.rows.push_back(
          {row_name(s), truth.time_us(s.message_bytes), e.time.value(), e.p10.value(), e.p90.value()});
    }
    const double startup = 100 * std::abs(fit.form.startup().value() / truth.startup_us - 1);
    const double peak = 100 * std::abs(fit.form.max_bus_bandwidth().value() / 1e9 / truth.peak_GBps - 1);
    set.extras = {{"startup_error_pct", startup},
                  {"peak_error_pct", peak},
                  {"both_within_5pct_share", startup <= 5 && peak <= 5 ? 1.0 : 0.0}};
    return Ok{};
  }));
  test.finish();
  return test;
}

Result<MeasuredCollectives> read_all(const std::filesystem::path& data, std::vector<Skipped>& skipped) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(data, ignored)) return read_collective_measurements(data);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file() && (extension == ".csv" || extension == ".gz" || extension == ".log" ||
                                    extension == ".txt" || extension == ".json")) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  MeasuredCollectives all;
  for (const auto& file : files) {
    auto one = read_collective_measurements(file);
    if (one)
      all.add(std::move(one).value());
    else
      skipped.push_back({file.filename().string(), one.error().message(), 1});
  }
  if (all.curves.empty()) {
    return Error::at(data.generic_string(), "the folder", "has no file with measured collectives")
        .expected(
            "CSV files with the columns collective, n_ranks, message_bytes, time_us, or nccl-tests logs");
  }
  return all;
}

// Adds the machines of later measurements, DATA/../modern/collectives. Only the tests of unseen machines read them, so that
// the scores of other tests stay comparable.
void add_later_measurements(const std::filesystem::path& data, MeasuredCollectives& all,
                            std::vector<Skipped>& skipped) {
  std::error_code ignored;
  const std::filesystem::path later = data / ".." / "modern" / "collectives";
  if (!std::filesystem::is_directory(data, ignored) || !std::filesystem::is_directory(later, ignored)) return;
  if (std::filesystem::equivalent(data, later, ignored)) return;
  if (auto more = read_all(later, skipped)) all.add(std::move(*more));
}

// Scores a shipped platform on the rows of one curve. Rows that it was fitted on are counted in `used`.
Result<SetScore> score_shipped(const CollectiveMeasurements& m, const Platform& platform,
                               std::uint64_t& used) {
  const CollectiveModel model{platform};
  SetScore set{.set = m.name()};
  std::map<DType, ResolvedCollective> resolved;
  for (const CollectiveSample& s : m.samples) {
    const bool known = std::ranges::any_of(
        platform.curves, [&](const CollectiveCurve& c) { return c.fit->provenance.used_row(s.hash); });
    if (known) {
      ++used;
      continue;
    }
    auto at = resolved.find(s.dtype);
    if (at == resolved.end()) {
      STEPCAST_ASSIGN(
          ResolvedCollective r,
          model.resolve({.op = m.collective, .dtype = s.dtype, .n_ranks = m.n_ranks, .n_nodes = m.n_nodes}));
      at = resolved.emplace(s.dtype, std::move(r)).first;
    }
    set.rows.push_back(scored(s, at->second.curve.at(Bytes{s.message_bytes})));
  }
  return set;
}

// The trivial answer: the platform's curve with the nearest number of ranks, at its bus bandwidth. nullopt without one.
std::optional<double> nearest_curve_mape(const CollectiveMeasurements& m, const Platform& platform) {
  const CollectiveCurve* nearest = nullptr;
  const auto apart = [&](const CollectiveCurve& c) {
    return std::abs(std::log2(static_cast<double>(c.n_ranks) / m.n_ranks));
  };
  for (const CollectiveCurve& c : platform.curves) {
    if (c.collective != m.collective || c.n_ranks < 2 || c.dtype != DType::unknown || !c.variant.empty())
      continue;
    if (nearest == nullptr || apart(c) < apart(*nearest)) nearest = &c;
  }
  if (nearest == nullptr || m.samples.empty()) return std::nullopt;
  const Result<TimeCurve> curve = time_curve(*nearest);
  if (!curve) return std::nullopt;
  const double longer = bus_factor(m.collective, m.n_ranks) / bus_factor(m.collective, nearest->n_ranks);
  double sum = 0;
  for (const CollectiveSample& s : m.samples)
    sum += std::abs(longer * curve->at(Bytes{s.message_bytes}).time.value() / s.time_us - 1);
  return 100 * sum / static_cast<double>(m.samples.size());
}

// Scores the shipped platform files on rows that they were not fitted on.
Result<TestScore> shipped(std::string_view name, const MeasuredCollectives& data,
                          std::vector<Skipped>& skipped) {
  TestScore test{.test = std::string{name}, .protocol = "shipped", .unit = "us"};
  std::map<std::string, std::optional<Platform>> platforms;
  for (const CollectiveMeasurements& m : data.curves) {
    auto [it, is_new] = platforms.emplace(m.platform, std::nullopt);
    if (is_new) {
      auto loaded = load_platform(m.platform, m.gpu);
      if (loaded)
        it->second = std::move(loaded).value();
      else
        skipped.push_back({m.platform, "no shipped platform has this name", 1});
    }
    if (!it->second) continue;
    std::uint64_t used = 0;
    STEPCAST_ASSIGN(SetScore set, score_shipped(m, *it->second, used));
    if (used > 0) skipped.push_back({m.name(), "rows that the shipped platform was fitted on", used});
    if (set.rows.empty()) continue;
    if (const auto nearest = nearest_curve_mape(m, *it->second))
      set.extras.push_back({"nearest_curve_mape_pct", *nearest});
    test.sets.push_back(std::move(set));
  }
  test.finish();
  return test;
}

// Published tables of nccl-tests: DATA/../newer/collectives/measured_logs.csv of DATA/collectives.
Result<std::optional<TestScore>> published_logs(const std::filesystem::path& data,
                                                std::vector<Skipped>& skipped) {
  for (const std::filesystem::path& later : later_folders(data)) {
    const std::filesystem::path logs = later / "measured_logs.csv";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(logs, ignored)) continue;
    STEPCAST_ASSIGN(const MeasuredCollectives read, read_collective_measurements(logs));
    STEPCAST_ASSIGN(TestScore test, shipped("published_logs", read, skipped));
    return std::optional{std::move(test)};
  }
  return std::optional<TestScore>{};
}

// Held-out sizes of every curve: our form, the published form, and our form on curves with dense sizes.
Result<std::vector<TestScore>> score_sizes(const MeasuredCollectives& all, unsigned threads,
                                           std::vector<Skipped>& skipped) {
  std::vector<const CollectiveMeasurements*> curves;
  for (const CollectiveMeasurements& m : all.curves) {
    if (octaves_of(m).size() < kMinOctaves) {
      skipped.push_back(
          {m.name(), "sizes in fewer than three octaves: nothing is left to fit", m.samples.size()});
    } else {
      curves.push_back(&m);
    }
  }
  TestScore sizes = refit_test("held_out_sizes"), form = refit_test("published_form"),
            dense = refit_test("dense_smooth");
  sizes.sets.resize(curves.size());
  form.sets.resize(curves.size());
  STEPCAST_TRY(parallel_for(curves.size(), threads, [&](std::size_t i) -> Status {
    STEPCAST_ASSIGN(CurveScores scores, held_out_sizes(*curves[i]));
    sizes.sets[i] = std::move(scores.ours);
    form.sets[i] = std::move(scores.form);
    return Ok{};
  }));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::set<double> distinct;
    for (const CollectiveSample& s : curves[i]->samples) distinct.insert(s.message_bytes);
    if (distinct.size() >= kDenseSizes && is_smooth(*curves[i])) dense.sets.push_back(sizes.sets[i]);
  }
  return finished({&sizes, &form, &dense});
}

// Eight ranks of a node from two and four ranks, and the largest number of nodes from smaller numbers.
Result<std::vector<TestScore>> score_groups(const MeasuredCollectives& all) {
  TestScore ranks = refit_test("unseen_ranks"), ranks_other = refit_test("unseen_ranks_other"),
            nodes = refit_test("unseen_nodes"), nodes_many = refit_test("unseen_nodes_many_gpus");
  for (const CollectiveMeasurements& m : all.curves) {
    const auto find = [&](auto accept) {
      std::vector<const CollectiveMeasurements*> found;
      for (const CollectiveMeasurements& o : all.curves)
        if (o.platform == m.platform && o.collective == m.collective && accept(o)) found.push_back(&o);
      return found;
    };
    if (m.n_nodes == 1 && m.n_ranks == 8) {
      const auto from =
          find([](const auto& o) { return o.n_nodes == 1 && (o.n_ranks == 2 || o.n_ranks == 4); });
      if (from.size() != 2) continue;
      STEPCAST_ASSIGN(std::vector<SetScore> sets, score_unseen(m, from, {0.0}));
      (says_nvswitch(m.interconnect) ? ranks : ranks_other).sets.push_back(std::move(sets[0]));
    } else if (m.n_nodes > 2) {
      const auto larger =
          find([&](const auto& o) { return o.gpus_per_node == m.gpus_per_node && o.n_nodes > m.n_nodes; });
      auto from = find([&](const auto& o) {
        return o.gpus_per_node == m.gpus_per_node && o.n_nodes > 1 && o.n_nodes < m.n_nodes;
      });
      if (!larger.empty() || from.empty()) continue;
      STEPCAST_ASSIGN(std::vector<SetScore> sets,
                      score_unseen(m, from, {m.gpus_per_node > 1 ? kLargeMessage : 0.0}));
      (m.gpus_per_node > 1 ? nodes_many : nodes).sets.push_back(std::move(sets[0]));
    }
  }
  return finished({&ranks, &ranks_other, &nodes, &nodes_many});
}

}  // namespace

Result<SuiteResult> validate_collectives(const std::filesystem::path& data, const SuiteOptions& options) {
  if (!options.protocol.empty() && options.protocol != "refit" && options.protocol != "shipped") {
    return Error{"the protocol of the suite collectives"}
        .found(options.protocol)
        .expected("refit or shipped");
  }
  SuiteResult result{.suite = "collectives"};
  STEPCAST_ASSIGN(MeasuredCollectives all, read_all(data, result.skipped));
  for (const UnusedRows& u : all.unused) result.skipped.push_back({u.what, u.why, u.n});
  if (options.protocol == "shipped") {
    STEPCAST_ASSIGN(TestScore test, shipped("shipped", all, result.skipped));
    result.tests.push_back(std::move(test));
    STEPCAST_ASSIGN(std::optional<TestScore> logs, published_logs(data, result.skipped));
    if (logs) result.tests.push_back(*std::move(logs));
    return result;
  }
  STEPCAST_ASSIGN(std::vector<TestScore> tests, score_sizes(all, options.threads, result.skipped));
  STEPCAST_ASSIGN(std::vector<TestScore> groups, score_groups(all));
  STEPCAST_ASSIGN(TestScore drawn, synthetic(options.threads));
  result.add(std::move(tests));
  result.add(std::move(groups));
  result.add(std::move(drawn));
  add_later_measurements(data, all, result.skipped);
  STEPCAST_ASSIGN(std::vector<TestScore> unseen, unseen_systems(all, options.threads, result.skipped));
  result.add(std::move(unseen));
  STEPCAST_ASSIGN(std::optional<TestScore> logs, published_logs(data, result.skipped));
  if (logs) result.add(*std::move(logs));
  std::error_code ignored;
  const std::filesystem::path kernels = data / ".." / "modern" / "kernels";
  if (std::filesystem::is_directory(data, ignored) && std::filesystem::is_directory(kernels, ignored)) {
    STEPCAST_ASSIGN(const ExpertMeasurements experts, read_expert_measurements_in(kernels));
    STEPCAST_ASSIGN(std::vector<TestScore> exchanges,
                    score_expert_exchanges(experts.exchanges, options, result.skipped));
    result.add(std::move(exchanges));
  }
  return result;
}

}  // namespace stepcast
