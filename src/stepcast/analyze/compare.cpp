#include "stepcast/analyze/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

// Orders by the absolute difference.
bool is_larger(const Difference& x, const Difference& y) {
  return std::abs(x.difference_ms()) > std::abs(y.difference_ms());
}

// Whether a list of each forecast was cut off after its longest entries. If so, an entry that only the other
// side has may exist here, too, and is left out of the comparison.
struct Cut {
  bool a = false, b = false;
};

// The list of names on the critical path is cut if it does not sum to the length of the path.
Cut cut_names(const Forecast& a, const Forecast& b) {
  const auto is_cut = [](const ForecastPath& path) {
    double sum = 0;
    for (const ForecastShare& share : path.by_name) sum += share.time_ms;
    constexpr double kRounded = 1e-6;  // relative; documents round times
    return sum < (1 - kRounded) * path.length_ms;
  };
  return {is_cut(a.critical_path), is_cut(b.critical_path)};
}

Cut cut_collectives(const Forecast& a, const Forecast& b) {
  return {a.collectives.size() < a.n_collectives, b.collectives.size() < b.n_collectives};
}

// Joins the times of both sides by key, and adds times with the same key.
class Joined {
 public:
  explicit Joined(Cut cut) : cut_(cut) {}
  void add_a(const std::string& key, double ms) { add(both_[key].a, ms); }
  void add_b(const std::string& key, double ms) { add(both_[key].b, ms); }

  std::vector<Difference> sorted() const {
    std::vector<Difference> list;
    for (const auto& [key, times] : both_) {
      if ((cut_.a && !times.a) || (cut_.b && !times.b)) continue;
      const double a_ms = times.a.value_or(0), b_ms = times.b.value_or(0);
      if (a_ms != b_ms) list.push_back({key, a_ms, b_ms});
    }
    std::stable_sort(list.begin(), list.end(), is_larger);
    return list;
  }

 private:
  struct Times {
    std::optional<double> a, b;
  };
  static void add(std::optional<double>& to, double ms) { to = to.value_or(0) + ms; }

  Cut cut_;
  std::map<std::string, Times> both_;
};

// The differences of one list. `list(forecast, add)` must call add(key, milliseconds) for every entry.
template <class List>
std::vector<Difference> differences(const Forecast& a, const Forecast& b, const List& list, Cut cut = {}) {
  Joined joined{cut};
  list(a, [&](const std::string& key, double ms) { joined.add_a(key, ms); });
  list(b, [&](const std::string& key, double ms) { joined.add_b(key, ms); });
  return joined.sorted();
}

// The value of a setting as text.
std::string text_of(const Setting& setting) {
  if (const bool* truth = std::get_if<bool>(&setting.value)) return *truth ? "true" : "false";
  if (const double* number = std::get_if<double>(&setting.value)) return fmt::format("{}", *number);
  return std::get<std::string>(setting.value);
}

// The settings that differ, as "NAME: A -> B", sorted by name. Model, platform and number of GPUs are
// included.
std::vector<std::string> changed_settings(const Forecast& a, const Forecast& b) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  const auto add = [&](const Forecast& f, auto side) {
    for (const Setting& setting : f.layout) side(both[setting.name]) = text_of(setting);
    side(both["model"]) = f.model.value_or("");
    side(both["platform"]) = f.platform.value_or("");
    side(both["n_gpus"]) = fmt::format("{}", f.n_gpus);
  };
  add(a, [](auto& pair) -> std::string& { return pair.first; });
  add(b, [](auto& pair) -> std::string& { return pair.second; });
  std::vector<std::string> changed;
  for (const auto& [name, values] : both) {
    if (values.first == values.second) continue;
    // A log rarely states all settings. Settings that it does not state are not a difference.
    const bool logged = a.kind == "log" || b.kind == "log";
    if (logged &&
        (values.first.empty() || values.second.empty() || values.first == "0" || values.second == "0"))
      continue;
    changed.push_back(fmt::format("{}: {} -> {}", name, values.first.empty() ? "-" : values.first,
                                  values.second.empty() ? "-" : values.second));
  }
  return changed;
}

// What is trained, in words; empty: the forecast does not say it. Recorded steps are told apart by their kernels.
std::string_view subject_of(const Forecast& f) {
  if (f.kind == "transformer") return "a language or vision model";
  if (f.kind == "dlrm") return "a recommendation model";
  if (f.classes.empty()) return {};
  const NamedTimes& kernels = f.critical().computation_by_class_ms;
  if (time_ms(kernels, "attention") > 0) return "a language or vision model";
  // Transformers without fused attention spend less in the lookup of tokens. Assumed.
  constexpr double kOfRecommendation = 0.1;
  return time_ms(kernels, "embedding") > kOfRecommendation * sum_ms(kernels) ? "a recommendation model"
                                                                             : std::string_view{};
}

// Numbers of parameters tell models apart, because a file and a preset can give one model two names.
bool other_size(const Forecast& a, const Forecast& b) {
  if (!a.parameters || !b.parameters) return false;
  const auto n_a = static_cast<double>(*a.parameters), n_b = static_cast<double>(*b.parameters);
  // Layouts pad the vocabulary. Of a log it may be unknown, and is assumed then.
  constexpr double kPadding = 0.01, kOfLogs = 0.7;
  const bool is_of_log = a.kind == "log" || b.kind == "log";
  return std::abs(n_a - n_b) > (is_of_log ? kOfLogs : kPadding) * std::max(n_a, n_b);
}

// The sentence of Comparison::different_jobs.
std::string different_jobs(const Forecast& a, const Forecast& b) {
  const std::string_view subject_a = subject_of(a), subject_b = subject_of(b);
  const bool other_subject = !subject_a.empty() && !subject_b.empty() && subject_a != subject_b;
  if (!other_subject && !other_size(a, b)) return {};
  const auto name = [&](const Forecast& f, std::string_view subject) {
    const std::string of = f.model ? *f.model : f.traces.value_or("a model");
    return other_subject
               ? fmt::format("{} ({})", of, subject)
               : fmt::format("{} ({:.3g} billion parameters)", of, 1e-9 * static_cast<double>(*f.parameters));
  };
  return in_one_line(
      fmt::format("These are different jobs: {} and {}.", name(a, subject_a), name(b, subject_b)));
}

// How far the time of a part is usually off, as a standard deviation of ln(time). Assumed: the same widths by
// which calibrate restrains its factors (iteration_fit.cpp).
double usual_error(std::string_view part) {
  constexpr double kProducts = 0.1, kAttention = 0.15, kOtherKernels = 0.2, kWaiting = 0.4;
  if (part == "computation: gemm") return kProducts;
  if (part == "computation: attention") return kAttention;
  return part.starts_with("computation: ") ? kOtherKernels : kWaiting;
}

// The explanations of why `f` differs from a step of `to_ms` that has no parts, most likely first. A part
// that would need a negative time cannot explain the difference.
std::vector<Explanation> explanations_of(const Forecast& f, double to_ms) {
  std::vector<Explanation> list;
  if (f.classes.empty()) return list;
  const double difference = to_ms - f.step_time_ms;
  if (difference == 0) return list;
  for (const NamedTime& part : f.critical().parts()) {
    const double factor = (part.time_ms + difference) / part.time_ms;
    if (factor <= 0) continue;
    list.push_back({part.key, part.time_ms, factor, std::abs(std::log(factor)) / usual_error(part.key)});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Explanation& x, const Explanation& y) { return x.deviations < y.deviations; });
  return list;
}

// One decimal and separators of thousands: "12,345.6".
std::string thousands(double value) { return with_separators(fmt::format("{:.1f}", value)); }

// The last sentence of Comparison::verdict. The sides are called A and B, or "the log" and "the forecast".
std::string difference_text(const Forecast& a, const Forecast& b, const Comparison& c) {
  const bool a_is_log = a.kind == "log", b_is_log = b.kind == "log";
  const bool one_is_log = a_is_log != b_is_log;
  const std::string_view first = !one_is_log ? "A" : a_is_log ? "the log" : "the forecast";
  const std::string_view other = !one_is_log ? "B" : b_is_log ? "the log" : "the forecast";
  if (!c.step_difference_percent) return fmt::format("{} takes no time", first);
  constexpr double kSame = 0.05;  // percent; such differences would print as 0.0 or 0.1
  const double percent = *c.step_difference_percent;
  std::string text;
  if (std::abs(percent) < kSame) {
    text = fmt::format("{} takes as long as {} ({} ms)", other, first, thousands(c.b_step_time_ms));
  } else {
    text = fmt::format("{} takes {} % {} than {} ({} against {} ms)", other, thousands(std::abs(percent)),
                       percent > 0 ? "longer" : "less", first, thousands(c.b_step_time_ms),
                       thousands(c.a_step_time_ms));
  }
  if (!c.parts.empty() && std::abs(percent) >= kSame) {
    const double most = c.parts.front().difference_ms();
    text += fmt::format(", mostly {} ({}{} ms)", c.parts.front().key, most < 0 ? "-" : "+",
                        thousands(std::abs(most)));
  }
  const bool bands = c.a_p90_ms > c.a_p10_ms || c.b_p90_ms > c.b_p10_ms;
  if (bands) {
    text += c.intervals_overlap ? "; their intervals p10 to p90 overlap"
                                : "; their intervals p10 to p90 do not overlap";
  }
  return text;
}

std::string verdict_of(const Forecast& a, const Forecast& b, const Comparison& c) {
  return c.different_jobs + (c.different_jobs.empty() ? "" : " ") + difference_text(a, b, c);
}

}  // namespace

Comparison compare(const Forecast& a, const Forecast& b) {
  Comparison c;
  c.a_step_time_ms = a.step_time_ms;
  c.b_step_time_ms = b.step_time_ms;
  c.step_difference_ms = b.step_time_ms - a.step_time_ms;
  if (a.step_time_ms > 0) c.step_difference_percent = 100 * c.step_difference_ms / a.step_time_ms;
  // A simulation of a recorded step has no interval. It becomes an interval of length 0.
  const auto band = [](const Forecast& f, double& p10, double& p90) {
    p10 = f.step_time_p10_ms > 0 ? f.step_time_p10_ms : f.step_time_ms;
    p90 = f.step_time_p90_ms > 0 ? f.step_time_p90_ms : f.step_time_ms;
  };
  band(a, c.a_p10_ms, c.a_p90_ms);
  band(b, c.b_p10_ms, c.b_p90_ms);
  c.intervals_overlap = c.a_p10_ms <= c.b_p90_ms && c.b_p10_ms <= c.a_p90_ms;
  c.settings = changed_settings(a, b);
  c.different_jobs = different_jobs(a, b);
  const bool both_have_parts = !a.classes.empty() && !b.classes.empty();
  if (!both_have_parts) {
    c.explanations =
        a.classes.empty() ? explanations_of(b, a.step_time_ms) : explanations_of(a, b.step_time_ms);
    c.verdict = verdict_of(a, b, c);
    return c;
  }
  c.groups = differences(a, b, [](const Forecast& f, auto add) {
    for (const NamedTime& group : f.critical().exposed_comm_by_group_ms) add(group.key, group.time_ms);
  });
  c.parts = differences(a, b, [](const Forecast& f, auto add) {
    for (const NamedTime& part : f.critical().parts()) add(part.key, part.time_ms);
  });
  c.rank_classes = differences(a, b, [](const Forecast& f, auto add) {
    for (const ForecastClass& rank_class : f.classes) add(rank_class.name, rank_class.window_ms);
  });
  c.collectives = differences(
      a, b,
      [](const Forecast& f, auto add) {
        for (const ForecastCollective& collective : f.collectives) {
          const std::string key = fmt::format("{} #{}", collective.name, collective.ordinal);
          add(key + " wait", collective.longest_wait_us * 1e-3);
          add(key + " transfer", collective.transfer_us * 1e-3);
        }
      },
      cut_collectives(a, b));
  c.critical_path = differences(a, b, [](const Forecast& f, auto add) {
    for (const ForecastShare& share : f.critical_path.by_class) add("class: " + share.what, share.time_ms);
  });
  const std::vector<Difference> names = differences(
      a, b,
      [](const Forecast& f, auto add) {
        for (const ForecastShare& share : f.critical_path.by_name) add("name: " + share.what, share.time_ms);
      },
      cut_names(a, b));
  c.critical_path.insert(c.critical_path.end(), names.begin(), names.end());
  std::stable_sort(c.critical_path.begin(), c.critical_path.end(), is_larger);  // classes and names together
  c.verdict = verdict_of(a, b, c);
  return c;
}

}  // namespace stepcast
