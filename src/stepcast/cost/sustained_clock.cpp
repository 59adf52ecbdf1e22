#include "stepcast/cost/sustained_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

constexpr double kTera = 1e12;

// Error unless a slowdown is at least 1.
Status check_slowdown(double value, std::string_view key) {
  if (!(value >= 1)) return Error{fmt::format("`{}` is {:g} (must be 1 or more)", key, value)};
  return Ok{};
}

// Factor of a curve; also for work that is not a number, which takes the first knot.
double at(const SustainedClock::Curve& curve, Flops work) {
  if (!(work > curve.work.front())) return curve.factor.front();
  if (!(work < curve.work.back())) return curve.factor.back();
  const auto above = std::upper_bound(curve.work.begin(), curve.work.end(), work);
  const auto i = static_cast<std::size_t>(above - curve.work.begin());
  const double share = std::log(work / curve.work[i - 1]) / std::log(curve.work[i] / curve.work[i - 1]);
  return curve.factor[i - 1] + (curve.factor[i] - curve.factor[i - 1]) * share;
}

// One entry of `curves`.
Result<SustainedClock::Curve> read_curve(const JsonValue& value) {
  if (!value.is_object()) return Error{"`curves` must hold objects"};
  SustainedClock::Curve curve;
  const JsonValue* kernels = value.find("kernels");
  const std::string_view name =
      kernels != nullptr && kernels->is_text() ? kernels->text() : std::string_view{};
  if (name == to_string(KernelClass::attention))
    curve.kernel_class = KernelClass::attention;
  else if (name != to_string(KernelClass::gemm))
    return Error{"`kernels` of a curve must be gemm or attention"};
  const JsonValue* dtypes = value.find("dtypes");
  if (dtypes == nullptr || !dtypes->is_array() || dtypes->items().empty())
    return Error{"`dtypes` of a curve must list element types"};
  for (const JsonValue& item : dtypes->items()) {
    const DType dtype = item.is_text() ? parse_dtype(item.text()) : DType::unknown;
    if (dtype == DType::unknown) return Error{"`dtypes` of a curve holds a type that is not known"};
    curve.dtypes.push_back(dtype);
  }
  STEPCAST_ASSIGN(const std::vector<double> work, finite_numbers(value, "work_TFLOP"));
  if (work.empty() || !(work.front() > 0)) return Error{"`work_TFLOP` must hold numbers above 0"};
  for (const double w : work) {
    if (!curve.work.empty() && !(Flops{w * kTera} > curve.work.back()))
      return Error{"`work_TFLOP` must rise"};
    curve.work.emplace_back(w * kTera);
  }
  STEPCAST_ASSIGN(curve.factor, finite_numbers(value, "factor", work.size()));
  for (const double factor : curve.factor) STEPCAST_TRY(check_slowdown(factor, "factor"));
  return curve;
}

}  // namespace

double SustainedClock::factor(KernelClass kernel_class, DType dtype, Flops work, bool sustained) const {
  if (sustained) return power_factor;
  for (const Curve& curve : curves) {
    if (curve.kernel_class != kernel_class) continue;
    if (std::ranges::find(curve.dtypes, dtype) == curve.dtypes.end()) continue;
    return at(curve, work) * power_factor;
  }
  return power_factor;
}

Result<SustainedClock> SustainedClock::read(const JsonValue& parameters) {
  SustainedClock clock;
  const JsonValue* curves = parameters.find("curves");
  if (curves == nullptr || !curves->is_array()) return Error{"`curves` is missing (an array)"};
  for (const JsonValue& item : curves->items()) {
    STEPCAST_ASSIGN(Curve curve, read_curve(item));
    clock.curves.push_back(std::move(curve));
  }
  if (parameters.find("power_factor") != nullptr) {
    STEPCAST_ASSIGN(clock.power_factor, finite_number(parameters, "power_factor"));
    STEPCAST_TRY(check_slowdown(clock.power_factor, "power_factor"));
  }
  if (parameters.find("log_band") != nullptr) {
    STEPCAST_ASSIGN(clock.log_band, finite_number(parameters, "log_band"));
    if (!(clock.log_band >= 0 && clock.log_band <= 1))
      return Error{fmt::format("`log_band` is {:g} (must be from 0 to 1)", clock.log_band)};
  }
  return clock;
}

JsonValue SustainedClock::write() const {
  JsonValue value = JsonValue::object();
  JsonValue list = JsonValue::array();
  for (const Curve& curve : curves) {
    JsonValue item = JsonValue::object();
    item.add("kernels", JsonValue{to_string(curve.kernel_class)});
    JsonValue dtypes = JsonValue::array();
    for (const DType dtype : curve.dtypes) dtypes.add(JsonValue{to_string(dtype)});
    item.add("dtypes", std::move(dtypes));
    JsonValue work = JsonValue::array();
    for (const Flops w : curve.work) work.add(JsonValue{w.value() / kTera});
    item.add("work_TFLOP", std::move(work));
    item.add("factor", number_array(curve.factor));
    list.add(std::move(item));
  }
  value.add("curves", std::move(list));
  if (power_factor != 1) value.add("power_factor", JsonValue{power_factor});
  if (log_band != 0) value.add("log_band", JsonValue{log_band});
  return value;
}

}  // namespace stepcast
