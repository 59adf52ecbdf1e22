#include "stepcast/cost/host_overheads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"
#include "stepcast/operation/framework_ops.h"
#include "stepcast/operation/overhead_name.h"
#include "stepcast/platform/host_spread_kind.h"

// Lookup of host overheads by operator, with fallbacks from the exact name to families and to all operators.

namespace stepcast {
namespace {

constexpr auto kGroundNames = names<OverheadTimeSource>({{OverheadTimeSource::own, "own"},
                                                         {OverheadTimeSource::family, "family"},
                                                         {OverheadTimeSource::all, "all"},
                                                         {OverheadTimeSource::none, "none"}});

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Operators of the autograd engine and backward formulas.
bool is_backward(std::string_view op) {
  return op.starts_with("autograd::") || op.starts_with("torch::autograd::") || contains(op, "Backward");
}

// Family of a runtime call, by parts of its name (CUDA and HIP).
std::string_view family_of_call(std::string_view call) {
  if (contains(call, "Synchronize")) return "(synchronization)";
  if (contains(call, "Memcpy") || contains(call, "Memset")) return "(copy)";
  if (contains(call, "Launch")) return "(launch)";
  // Calls at the start of a program, or calls that wait for the device while they free memory: milliseconds
  // each.
  for (const std::string_view part : {"Malloc", "Free", "Alloc", "Create", "Destroy", "Module", "Init"})
    if (contains(call, part)) return "(set-up)";
  return "(other call)";
}

std::string_view family_of_operator(std::string_view op) {
  const OpRole role = role_of(op);
  if (role == OpRole::communication || op.starts_with("c10d::")) return "(communication)";
  if (is_backward(op)) return "(backward)";
  return role == OpRole::view ? "(view)" : "(operator)";
}

// A finite number of 0 or more under `key`. Error: missing or another value.
Result<double> number_at_least_0(const JsonValue& op, std::string_view key) {
  const JsonValue* value = op.find(key);
  if (value == nullptr) return Error{fmt::format("`{}` is missing", key)};
  if (!value->is_number() || !std::isfinite(value->number()) || value->number() < 0)
    return Error{fmt::format("`{}` is not a number of 0 or more", key)};
  return value->number();
}

// One entry of a launch table.
Result<OpLaunches> read_op(const JsonValue& value) {
  if (!value.is_object()) return Error{"found no object"};
  OpLaunches op;
  const JsonValue* calls = value.find("calls");
  if (calls == nullptr || !calls->is_array()) return Error{"`calls` is not a list of calls"};
  for (const JsonValue& call : calls->items()) {
    if (!call.is_text()) return Error{"`calls` is not a list of calls"};
    op.calls.push_back(call.text());
  }
  STEPCAST_ASSIGN(op.mean_calls, number_at_least_0(value, "mean_calls"));
  STEPCAST_ASSIGN(const double n, number_at_least_0(value, "n"));
  if (n != std::floor(n) || n > 1e15) return Error{"`n` is not a count"};
  op.n = static_cast<std::uint64_t>(n);
  return op;
}

}  // namespace

std::string_view to_string(OverheadTimeSource ground) { return kGroundNames[ground]; }

// Generated backward names end with a number ("AddmmBackward0").
std::string_view overhead_name(std::string_view op) {
  const std::size_t digits = op.find_last_not_of("0123456789") + 1;
  const bool generated = digits < op.size() && op.substr(0, digits).ends_with("Backward");
  return generated ? op.substr(0, digits) : op;
}

std::string_view overhead_family(OverheadType type, std::string_view op) {
  for (std::string_view kin = less_special(op); !kin.empty(); kin = less_special(op)) op = kin;
  return type == OverheadType::t4 ? family_of_call(op) : family_of_operator(op);
}

Estimate HostOverhead::estimate() const {
  const bool known = ground == OverheadTimeSource::own || ground == OverheadTimeSource::family;
  return {Microseconds{mean_us}, Microseconds{std::min(p10_us, mean_us)},
          Microseconds{std::max(p90_us, mean_us)}, known ? EstimateSource::fitted : EstimateSource::assumed};
}

Result<LaunchTable> read_launches(const JsonValue& parameters) {
  if (!parameters.is_object()) return Error{"the parameters are not an object"};
  LaunchTable table;
  for (const JsonValue::Member& member : parameters.members()) {
    Result<OpLaunches> op = read_op(member.value);
    if (!op.ok()) return Error{fmt::format("`{}`: {}", member.key, op.error().message())};
    table.insert_or_assign(member.key, std::move(op).value());
  }
  return table;
}

JsonValue write_host_band(std::optional<double> band, std::size_t jobs) {
  JsonValue out = JsonValue::object();
  out.add("jobs", JsonValue{static_cast<double>(jobs)});
  if (band) out.add("band", JsonValue{std::round(*band * 1e4) / 1e4});
  return out;
}

JsonValue write_launches(const LaunchTable& launches) {
  JsonValue out = JsonValue::object();
  for (const auto& [name, op] : launches) {
    JsonValue calls = JsonValue::array();
    for (const std::string& call : op.calls) calls.items().emplace_back(call);
    JsonValue value = JsonValue::object();
    value.add("calls", std::move(calls)).add("mean_calls", JsonValue{op.mean_calls});
    value.add("n", JsonValue{static_cast<double>(op.n)});
    out.add(name, std::move(value));
  }
  return out;
}

Result<HostOverheads> HostOverheads::of(const Platform& platform, const HostOverheadOptions& options) {
  HostOverheads host;
  for (const OverheadRecord& record : *platform.overheads) {
    // Cost of the profiler in this record: events per occurrence times the cost per event.
    const double taken_off = options.profiler_cost_us * record.profiler_events.value_or(0);
    const auto without_profiler = [&](double us) { return std::max(0.0, us - taken_off); };
    HostOverhead one;
    one.mean_us = without_profiler(record.mean_us);
    one.std_us = record.std_us.value_or(0);
    one.p10_us = without_profiler(record.p10_us.value_or(record.mean_us));
    one.p50_us = without_profiler(record.p50_us.value_or(record.mean_us));
    one.p90_us = without_profiler(record.p90_us.value_or(record.mean_us));
    one.n = record.n;
    host.records_.insert_or_assign(record.key(), one);
  }
  if (const ModelRecord* launches = platform.find_model(kHostLaunchesKind)) {
    Result<LaunchTable> table = read_launches(launches->parameters);
    if (!table.ok()) return std::move(table).error().in_file(fmt::format("record {}", kHostLaunchesKind));
    host.launches_ = std::move(table).value();
  }
  const ModelRecord* spread = platform.find_model(kHostSpreadKind);
  if (spread != nullptr && spread->parameters.find("band") != nullptr) {
    Result<double> band = number_at_least_0(spread->parameters, "band");
    if (!band.ok()) return std::move(band).error().in_file(fmt::format("record {}", kHostSpreadKind));
    host.band_ = *band;
  }
  return host;
}

// Keys of records are "T1/aten::addmm"; an empty name is the record of all operators.
const HostOverhead* HostOverheads::find(OverheadType type, std::string_view op) const {
  const auto found = records_.find(fmt::format("{}/{}", to_string(type), op));
  return found == records_.end() ? nullptr : &found->second;
}

// Order: exact name, less special names (less_special()), family, all operators.
HostOverhead HostOverheads::time(OverheadType type, std::string_view op) const {
  const auto on = [](const HostOverhead& record, OverheadTimeSource ground) {
    HostOverhead out = record;
    out.ground = ground;
    return out;
  };
  if (const HostOverhead* own = find(type, overhead_name(op))) return on(*own, OverheadTimeSource::own);
  if (const std::string_view kin = less_special(op); !kin.empty()) return time(type, kin);
  if (const HostOverhead* kin = find(type, overhead_family(type, op)))
    return on(*kin, OverheadTimeSource::family);
  if (const HostOverhead* all = find(type, {})) return on(*all, OverheadTimeSource::all);
  return {};
}

double HostOverheads::us_per_launch() const {
  double us = 0, n = 0;
  // us: all recorded host time. n: launches and copies.
  for (const OverheadType type :
       {OverheadType::t1, OverheadType::t2, OverheadType::t3, OverheadType::t4, OverheadType::t5})
    if (const HostOverhead* all = find(type, {})) us += all->mean_us * static_cast<double>(all->n);
  for (const std::string_view call : {"(launch)", "(copy)"})
    if (const HostOverhead* calls = find(OverheadType::t4, call)) n += static_cast<double>(calls->n);
  return n > 0 ? us / n : 0;
}

const OpLaunches* HostOverheads::launches(std::string_view op) const {
  const auto found = launches_.find(overhead_name(op));
  return found == launches_.end() ? nullptr : &found->second;
}

}  // namespace stepcast
