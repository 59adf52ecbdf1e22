#include "stepcast/analyze/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace stepcast {
namespace {

// Joins both sides by key.
class Joined {
 public:
  void add_a(const std::string& key, double ms) { both_[key].first += ms; }
  void add_b(const std::string& key, double ms) { both_[key].second += ms; }

  std::vector<Difference> sorted() const {
    std::vector<Difference> list;
    for (const auto& [key, times] : both_) {
      if (times.first != times.second) list.push_back({key, times.first, times.second});
    }
    std::stable_sort(list.begin(), list.end(), [](const Difference& x, const Difference& y) {
      return std::abs(x.difference_ms()) > std::abs(y.difference_ms());
    });
    return list;
  }

 private:
  std::map<std::string, std::pair<double, double>> both_;
};

// `list` calls its argument with every key and time of a forecast.
template <class List>
std::vector<Difference> differences(const Forecast& a, const Forecast& b, const List& list) {
  Joined joined;
  list(a, [&](const std::string& key, double ms) { joined.add_a(key, ms); });
  list(b, [&](const std::string& key, double ms) { joined.add_b(key, ms); });
  return joined.sorted();
}

std::string text_of(const Setting& setting) {
  if (const bool* truth = std::get_if<bool>(&setting.value)) return *truth ? "true" : "false";
  if (const double* number = std::get_if<double>(&setting.value)) return fmt::format("{}", *number);
  return std::get<std::string>(setting.value);
}

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
    changed.push_back(fmt::format("{}: {} -> {}", name, values.first.empty() ? "-" : values.first,
                                  values.second.empty() ? "-" : values.second));
  }
  return changed;
}

}  // namespace

Comparison compare(const Forecast& a, const Forecast& b) {
  Comparison c;
  c.a_step_time_ms = a.step_time_ms;
  c.b_step_time_ms = b.step_time_ms;
  c.step_difference_ms = b.step_time_ms - a.step_time_ms;
  if (a.step_time_ms > 0) c.step_difference_percent = 100 * c.step_difference_ms / a.step_time_ms;
  c.settings = changed_settings(a, b);
  c.parts = differences(a, b, [](const Forecast& f, auto add) {
    if (f.classes.empty()) return;
    for (const NamedTime& part : f.critical().parts()) add(part.key, part.time_ms);
  });
  c.rank_classes = differences(a, b, [](const Forecast& f, auto add) {
    for (const ForecastClass& rank_class : f.classes) add(rank_class.name, rank_class.window_ms);
  });
  c.collectives = differences(a, b, [](const Forecast& f, auto add) {
    for (const ForecastCollective& collective : f.collectives) {
      const std::string key = fmt::format("{} #{}", collective.name, collective.ordinal);
      add(key + " wait", collective.longest_wait_us * 1e-3);
      add(key + " transfer", collective.transfer_us * 1e-3);
    }
  });
  c.critical_path = differences(a, b, [](const Forecast& f, auto add) {
    for (const ForecastShare& share : f.critical_path.by_class) add("class: " + share.what, share.time_ms);
    for (const ForecastShare& share : f.critical_path.by_name) add("name: " + share.what, share.time_ms);
  });
  return c;
}

}  // namespace stepcast
