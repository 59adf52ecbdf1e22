#include "lab/dlrm_lookups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/cost/analytic_model.h"
#include "stepcast/cost/embedding_lookup.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast {
namespace {

constexpr double kLongUs = 1000;  // operators that the targets are about

// What the other sets say. Forward: the share of the memory bandwidth that scattered rows reach; backward: how
// popular the popular rows are; and a factor on the times.
struct Fitted {
  LookupConstants constants;
  double exponent = kTypicalSkew;
  double scale = 1;
};

// Where fits begin: the share that benchmarks of scattered rows reach (docs/constants.md), no trace behind it.
constexpr double kBenchmarkedShare = 0.795;

class Predictor {
 public:
  explicit Predictor(const SuiteOptions& options) : options_(&options) {}

  Result<const Device*> device(const std::string& gpu) {
    if (const auto found = devices_.find(gpu); found != devices_.end()) return found->second.get();
    auto device = std::make_unique<Device>();
    const auto given = std::ranges::find_if(
        options_->platforms, [&](const auto& p) { return same_name(p.first, gpu) || p.first == "*"; });
    if (given != options_->platforms.end()) {
      STEPCAST_ASSIGN(Platform platform, load_platform(given->second.string()));
      *device = std::move(platform.device);
    } else {
      STEPCAST_ASSIGN(PlatformChoice choice, platform_for({.gpu = gpu}));
      *device = std::move(choice.platform.device);
    }
    const Device* pointer = device.get();
    devices_.emplace(gpu, std::move(device));
    return pointer;
  }

  // Totals are all that is known: tables of equal size and equal pooling, and as wide as the rows are on average,
  // because wide tables are the ones that are large and looked up often.
  Result<Estimate> predict(const MeasuredLookup& m, const Fitted& fitted) {
    STEPCAST_ASSIGN(const Device* device, this->device(m.gpu));
    const LookupModel model{*device, fitted.constants};
    const double rows = std::max(1.0, m.sum_rows / m.tables);
    const AccessPattern pattern = AccessPattern::zipf(rows, fitted.exponent);
    TableLookup table{.rows = rows,
                      .dim = m.sum_rows_times_dim / m.sum_rows,
                      .bags = m.batch,
                      .pooling = m.lookups / m.tables / m.batch,
                      .weight_bytes = m.weight_bytes,
                      .gradient_bytes = m.gradient_bytes,
                      .state_bytes_per_row = 4,
                      .weighted = m.weighted,
                      .pattern = &pattern};
    LookupCost all = model.cost(table);
    all.forward_us *= m.tables;
    all.backward_us *= m.tables;
    all.sort_us *= m.tables;
    const double us = m.backward ? model.backward_us(all) : model.forward_us(all);
    return model.estimate(us * fitted.scale, false, m.backward ? Direction::backward : Direction::forward);
  }

  // Of the published heuristic, as `predict` has it for a lookup of which no more is known.
  Result<double> published(const MeasuredLookup& m) {
    STEPCAST_ASSIGN(const Device* device, this->device(m.gpu));
    LookupShape shape{.tables = static_cast<std::int64_t>(m.tables),
                      .rows = static_cast<std::int64_t>(std::max(1.0, m.sum_rows / m.tables)),
                      .dim = static_cast<std::int64_t>(std::max(1.0, m.sum_dim / m.tables)),
                      .bags = static_cast<std::int64_t>(m.batch),
                      .pooling = m.lookups / m.tables / m.batch,
                      .fused_update = true};
    const Operation operation{shape, m.weight_bytes > 2 ? DType::fp32 : DType::fp16,
                              m.backward ? Direction::backward : Direction::forward};
    return AnalyticModel{*device}.time(operation).value();
  }

  // Least squares in ln with a pull to what ships: two numbers from a handful of operators of one direction.
  Result<Fitted> fit(const std::vector<const MeasuredLookup*>& rows) {
    constexpr double kScaleBand = 0.1, kShareBand = 0.3, kExponentBand = 0.5, kNoise = 0.1;
    Fitted best;
    double best_loss = 1e300;
    for (int step = 0; step <= 24; ++step) {
      Fitted tried;
      tried.constants.memory_share = tried.constants.backward_memory_share = kBenchmarkedShare;
      double away = 0;  // from what ships, in widths of the pull
      if (!rows.empty() && rows.front()->backward) {
        tried.exponent = 0.05 * step;
        away = (tried.exponent - kTypicalSkew) / kExponentBand;
      } else {
        tried.constants.memory_share = 0.4 * std::pow(1.0 / 0.4, step / 24.0);
        away = std::log(tried.constants.memory_share / kBenchmarkedShare) / kShareBand;
      }
      double sum = 0, squares = 0;
      for (const MeasuredLookup* m : rows) {
        STEPCAST_ASSIGN(const Estimate e, predict(*m, tried));
        const double off = std::log(m->time_us / e.time.value());
        sum += off;
        squares += off * off;
      }
      const auto n = static_cast<double>(rows.size());
      const double pull = kNoise * kNoise / (kScaleBand * kScaleBand);
      const double log_scale = sum / (n + pull);  // minimises the squares with its pull
      const double loss =
          squares - 2 * log_scale * sum + (n + pull) * log_scale * log_scale + kNoise * kNoise * away * away;
      if (loss >= best_loss) continue;
      best_loss = loss;
      best = tried;
      best.scale = std::exp(log_scale);
    }
    return best;
  }

 private:
  const SuiteOptions* options_;
  std::map<std::string, std::unique_ptr<Device>> devices_;
};

std::string row_name(const MeasuredLookup& m) {
  return fmt::format("{} {}{} tables, batch {:.0f}, {:.2f} M lookups, dim {:.0f}", m.set,
                     m.weighted ? "weighted " : "", m.tables, m.batch, m.lookups / 1e6,
                     m.sum_rows_times_dim / m.sum_rows);
}

TestScore test_of(std::string name, std::string_view protocol) {
  TestScore test{.test = std::move(name), .protocol = std::string{protocol}, .unit = "us"};
  return test;
}

// Forecasts with `fitted`, or with shipped constants alone (null).
std::vector<ScoredRow> rows_of(const std::vector<const MeasuredLookup*>& lookups, Predictor& predictor,
                               const Fitted* fitted, std::vector<Skipped>& skipped) {
  std::vector<ScoredRow> rows;
  for (const MeasuredLookup* m : lookups) {
    const Result<Estimate> e = predictor.predict(*m, fitted != nullptr ? *fitted : Fitted{});
    if (!e) {
      skipped.push_back({row_name(*m), e.error().message(), 1});
      continue;
    }
    rows.push_back({row_name(*m), m->time_us, e->time.value(), e->p10.value(), e->p90.value()});
    if (fitted == nullptr) continue;
    rows.back().shares = fmt::format("memory_share {:.3f} exponent {:.2f} scale {:.3f}",
                                     fitted->constants.memory_share, fitted->exponent, fitted->scale);
  }
  return rows;
}

std::vector<ScoredRow> published_rows(const std::vector<const MeasuredLookup*>& lookups,
                                      Predictor& predictor) {
  std::vector<ScoredRow> rows;
  for (const MeasuredLookup* m : lookups)
    if (const Result<double> us = predictor.published(*m)) rows.push_back({row_name(*m), m->time_us, *us});
  return rows;
}

// Ranks of one job: what one takes over what another takes, with shipped constants alone.
TestScore score_rank_ratios(const std::vector<MeasuredLookup>& lookups, Predictor& predictor) {
  std::map<std::string, std::array<std::array<double, 2>, 2>> sums;  // [set][direction][measured, predicted]
  for (const MeasuredLookup& m : lookups) {
    const Result<Estimate> e = predictor.predict(m, Fitted{});
    if (!e) continue;
    sums[m.set][m.backward ? 1 : 0][0] += m.time_us;
    sums[m.set][m.backward ? 1 : 0][1] += e->time.value();
  }
  TestScore ratios = test_of("lookup_rank_ratio", "shipped");
  ratios.unit = "ratio";
  SetScore score{.set = "ranks of one job"};
  const auto stem = [](const std::string& set) { return set.substr(0, set.find("_rank")); };
  for (auto a = sums.begin(); a != sums.end(); ++a) {
    for (auto b = std::next(a); b != sums.end(); ++b) {
      if (a->first.find("_rank") == std::string::npos || stem(a->first) != stem(b->first)) continue;
      for (const std::size_t d : {0U, 1U}) {
        if (!(a->second[d][0] > 0) || !(b->second[d][0] > 0)) continue;
        score.rows.push_back({fmt::format("{} / {} {}", b->first, a->first, d == 0 ? "forward" : "backward"),
                              b->second[d][0] / a->second[d][0], b->second[d][1] / a->second[d][1]});
      }
    }
  }
  if (!score.rows.empty()) ratios.sets.push_back(std::move(score));
  ratios.finish();
  return ratios;
}

}  // namespace

bool looks_like_lookups(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  return header.find("sum_rows_times_dim") != std::string_view::npos &&
         header.find("direction") != std::string_view::npos;
}

Result<std::vector<MeasuredLookup>> parse_lookups(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  for (const std::string_view column : {"set", "gpu", "direction", "tables", "batch", "lookups", "sum_rows",
                                        "sum_rows_times_dim", "sum_dim", "weights_dtype", "op_us"}) {
    if (!rows.has(column)) return Error::at(name, "line 1").found("no column").expected(std::string{column});
  }
  std::vector<MeasuredLookup> all;
  while (true) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
    MeasuredLookup m{.set = std::string{rows.cell("set")}, .gpu = std::string{rows.cell("gpu")}};
    const std::string_view direction = rows.cell("direction");
    if (direction != "forward" && direction != "backward")
      return rows.error("direction").expected("forward or backward");
    m.backward = direction == "backward";
    STEPCAST_ASSIGN(m.weighted, rows.truth("weighted", false));
    STEPCAST_ASSIGN(m.tables, rows.number("tables", 1));
    STEPCAST_ASSIGN(m.batch, rows.number("batch", 1));
    STEPCAST_ASSIGN(m.lookups, rows.number("lookups", 0));
    STEPCAST_ASSIGN(m.sum_rows, rows.number("sum_rows", 1));
    STEPCAST_ASSIGN(m.sum_rows_times_dim, rows.number("sum_rows_times_dim", 1));
    STEPCAST_ASSIGN(m.sum_dim, rows.number("sum_dim", 1));
    STEPCAST_ASSIGN(const double us, rows.number("op_us", 0));
    if (!(us > 0)) return rows.error("op_us").expected("a time above 0");
    const auto bytes_of = [&](std::string_view column, double otherwise) {
      const double bytes = element_size(parse_dtype(rows.cell(column))).value();
      return bytes > 0 ? bytes : otherwise;
    };
    m.weight_bytes = bytes_of("weights_dtype", 4);
    m.gradient_bytes = bytes_of("gradient_dtype", 4);
    const auto same = std::ranges::find_if(all, [&](const MeasuredLookup& o) {
      return o.set == m.set && o.gpu == m.gpu && o.backward == m.backward && o.weighted == m.weighted &&
             o.tables == m.tables && o.batch == m.batch && o.sum_rows == m.sum_rows && o.sum_dim == m.sum_dim;
    });
    MeasuredLookup& kept = same == all.end() ? all.emplace_back(m) : *same;
    const auto n = static_cast<double>(kept.steps);
    kept.lookups = (n * kept.lookups + m.lookups) / (n + 1);
    kept.time_us = (n * kept.time_us + us) / (n + 1);
    ++kept.steps;
  }
  return all;
}

void score_lookups(const std::vector<MeasuredLookup>& lookups, const SuiteOptions& options,
                   SuiteResult& result) {
  Predictor predictor{options};
  std::set<std::string> sets;
  for (const MeasuredLookup& m : lookups) sets.insert(m.set);
  for (const bool backward : {false, true}) {
    const std::string name = backward ? "lookup_backward" : "lookup_forward";
    TestScore fitted_test = test_of(name, "refit"), shipped = test_of(name + "_shipped", "shipped"),
              published = test_of(name + "_published_heuristic", "shipped");
    for (const std::string& set : sets) {
      std::vector<const MeasuredLookup*> others;
      for (const MeasuredLookup& m : lookups)
        if (m.set != set && m.backward == backward && m.time_us > kLongUs) others.push_back(&m);
      const Result<Fitted> fitted = predictor.fit(others);
      for (const bool above : {true, false}) {
        std::vector<const MeasuredLookup*> rows;
        for (const MeasuredLookup& m : lookups)
          if (m.set == set && m.backward == backward && (m.time_us > kLongUs) == above) rows.push_back(&m);
        const auto add = [&](TestScore& test, std::vector<ScoredRow> scored, std::size_t n_fit) {
          if (scored.empty()) return;
          SetScore score{.set = fmt::format("{} {} 1 ms", set, above ? "above" : "up to"),
                         .group = above ? "above 1 ms" : "up to 1 ms",
                         .n_fit = n_fit,
                         .rows = std::move(scored)};
          test.sets.push_back(std::move(score));
        };
        add(fitted_test, rows_of(rows, predictor, fitted ? &*fitted : nullptr, result.skipped),
            fitted ? others.size() : 0);
        add(shipped, rows_of(rows, predictor, nullptr, result.skipped), 0);
        add(published, published_rows(rows, predictor), 0);
      }
    }
    result.add(finished({&fitted_test, &shipped, &published}));
  }
  result.add(score_rank_ratios(lookups, predictor));
}

}  // namespace stepcast
