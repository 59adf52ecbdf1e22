#include "stepcast/cost/device_time.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace stepcast {
namespace {

// From this multiple of its floor on an answer is the kernel's own time: launches run ahead of the GPU.
constexpr double kFreeOfLaunches = 2;

struct Smallest {
  OperationShape operator()(GemmShape s) const {
    s.batch = s.batch > 1 ? 2 : 1;  // one product alone is another family
    s.m = s.n = s.k = 16;
    return s;
  }
  OperationShape operator()(AttentionShape s) const {
    s.batch = 1;
    s.query_length = s.key_length = 16;
    s.heads = s.key_value_heads = 1;
    return s;
  }
  OperationShape operator()(ConvolutionShape s) const {
    s.batch = 1;
    s.in_channels = s.groups > 1 ? s.groups : 16;
    s.out_channels = s.groups > 1 ? s.groups : 16;
    s.height = std::min<std::int64_t>(s.height, std::max<std::int64_t>(s.kernel_height, 1));
    s.width = std::max<std::int64_t>(s.kernel_width, 1);
    return s;
  }
  OperationShape operator()(LookupShape s) const {
    s.tables = 1;
    s.bags = 1;
    s.pooling = 1;
    s.rows = std::min<std::int64_t>(s.rows, 16);
    return s;
  }
  OperationShape operator()(NormShape s) const {
    s.rows = 1;
    s.cols = 32;
    return s;
  }
  OperationShape operator()(SoftmaxShape s) const {
    s.rows = 1;
    s.cols = 32;
    return s;
  }
  OperationShape operator()(CrossEntropyShape s) const {
    s.rows = 1;
    s.classes = 32;
    return s;
  }
  OperationShape operator()(ElementwiseShape s) const {
    s.elements = 16;
    s.inner = 16;
    return s;
  }
  OperationShape operator()(MovementShape s) const {
    s.elements = 16;
    s.inner = s.inner > 0 ? 16 : 0;
    return s;
  }
  OperationShape operator()(ReductionShape s) const {
    s.rows = 1;
    s.cols = 16;
    return s;
  }
  OperationShape operator()(OptimizerShape s) const {
    s.parameters = 16;
    s.tensors = 1;
    return s;
  }
  OperationShape operator()(TransferShape s) const {
    s.bytes = 4;
    return s;
  }
  OperationShape operator()(SparseShape s) const {
    s.rows = s.inner = s.cols = 16;
    s.nonzeros = 16;
    return s;
  }
  OperationShape operator()(AmountShape s) const {
    s.flops = std::min(s.flops, 64.0);
    s.bytes_read = s.bytes_written = 64;
    return s;
  }
};

}  // namespace

Operation smallest_like(const Operation& operation) {
  Operation smallest = operation;
  smallest.shape = std::visit(Smallest{}, operation.shape);
  return smallest;
}

double DeviceTime::floor_us(const Operation& operation, std::string_view record) {
  std::string key = fmt::format("{} {}", record, family_of(operation));
  const auto found = floors_.find(key);
  if (found != floors_.end()) return found->second;
  const ExplainedEstimate least = model_->explain(smallest_like(operation));
  const double us = least.record == record ? least.estimate.time.value() : 0;
  floors_.emplace(std::move(key), us);
  return us;
}

Estimate DeviceTime::of(const Operation& operation, const PricedOperation& priced) {
  if (priced.record.empty() || priced.time.time.value() <= 0) return priced.time;
  const double floor = floor_us(operation, priced.record);
  if (priced.time.time.value() >= kFreeOfLaunches * floor) return priced.time;
  const Estimate physics = model_->analytic().estimate(operation);
  // 0 at the floor, 1 where launches no longer count.
  const double known =
      std::clamp(std::log(priced.time.time.value() / floor) / std::log(kFreeOfLaunches), 0.0, 1.0);
  const auto between = [&](Microseconds a, Microseconds b) {
    if (a.value() <= 0 || b.value() <= 0) return b;
    return Microseconds{std::exp((1 - known) * std::log(a.value()) + known * std::log(b.value()))};
  };
  Estimate time = {between(physics.time, priced.time.time), between(physics.p10, priced.time.p10),
                   between(physics.p90, priced.time.p90),
                   known > 0.5 ? priced.time.source : weaker(physics.source, priced.time.source)};
  if (time.time > priced.time.time) time = {priced.time.time, priced.time.p10, priced.time.p90, time.source};
  return time;
}

}  // namespace stepcast
