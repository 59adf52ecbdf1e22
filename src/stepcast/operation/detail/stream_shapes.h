// Device-independent properties of operations that stream data: element by element, or by rows of tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "stepcast/operation/detail/operation_names.h"
#include "stepcast/operation/detail/shape_facts.h"
#include "stepcast/operation/optimizer_rule.h"

namespace stepcast::detail {

// Element-wise arithmetic; see shape_traits.h for the members.
template <>
struct ShapeTraits<ElementwiseShape> {
  static constexpr auto fields() {
    using S = ElementwiseShape;
    return std::tuple{ShapeField{"function", &S::function},
                      ShapeField{"elements", &S::elements, 0},
                      ShapeField{"reads", &S::reads, 0},
                      ShapeField{"writes", &S::writes, 0},
                      ShapeField{"flops_per_element", &S::flops_per_element, 0},
                      ShapeField{"inner", &S::inner, 0}};
  }
  static std::string_view family(const ElementwiseShape& s) { return family_of_elementwise(s.function); }
  static KernelClass kernel_class(const ElementwiseShape&) { return KernelClass::elementwise; }
  static std::string describe(const ElementwiseShape& s) {
    std::string out = fmt::format("{} elements={} reads={:g} writes={:g} flops_per_element={:g}",
                                  to_string(s.function), s.elements, s.reads, s.writes, s.flops_per_element);
    if (s.inner != 0) out += fmt::format(" inner={}", s.inner);
    return out;
  }
  static std::string problem(const ElementwiseShape&) { return {}; }
  static Work work(const ElementwiseShape& s, const AskedWork& of) {
    const double elements = real_of(s.elements);
    const bool mask =
        s.function == ElementwiseFunction::dropout || s.function == ElementwiseFunction::masked_fill;
    const double mask_bytes = mask ? elements * kBytesOfMask : 0;
    const double reads = static_cast<double>(s.reads);
    const double writes = static_cast<double>(s.writes);
    double flops = elements * static_cast<double>(s.flops_per_element);
    if (of.forward()) {
      const bool writes_mask = s.function == ElementwiseFunction::dropout;
      return make_work(flops, elements * reads * of.element + (writes_mask ? 0 : mask_bytes),
                       elements * writes * of.element + (writes_mask ? mask_bytes : 0));
    }
    // Default: bytes of the output's gradient in, of the inputs' gradients out.
    double in = writes, out = reads;
    switch (s.function) {
      // Where a residual forks, the gradients of both branches are added.
      case ElementwiseFunction::residual_add: in = reads, out = writes; break;
      // The gradient is equal for every operand: it is copied at most once.
      case ElementwiseFunction::add: out = writes; break;
      case ElementwiseFunction::add_scalar:
      case ElementwiseFunction::multiply_scalar:
      case ElementwiseFunction::divide_scalar:
      case ElementwiseFunction::cast:
      case ElementwiseFunction::masked_fill:
      case ElementwiseFunction::dropout:
      case ElementwiseFunction::rotary:
      case ElementwiseFunction::rotary_unfused: break;
      default:  // the derivative depends on the operands
        in += reads;
        flops *= 2;
    }
    return make_work(flops, elements * in * of.element + mask_bytes, elements * out * of.element);
  }
  static ElementwiseShape smallest(ElementwiseShape s) {
    s.elements = 16;
    s.inner = 16;
    return s;
  }
  static bool grow(ElementwiseShape& s, const BatchGrowth& batch, Direction, bool) {
    return batch.grow_elements(s.elements);
  }
};

// Data movement within the device.
template <>
struct ShapeTraits<MovementShape> {
  static constexpr auto fields() {
    using S = MovementShape;
    return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"elements", &S::elements, 0},
                      ShapeField{"inner", &S::inner, 0}, ShapeField{"routes_tokens", &S::routes_tokens}};
  }
  static std::string_view family(const MovementShape& s) { return to_string(s.kind); }
  static KernelClass kernel_class(const MovementShape& s) {
    if (s.routes_tokens) return KernelClass::expert_routing;
    const bool indexed = s.kind == MovementKind::gather || s.kind == MovementKind::scatter;
    return indexed ? KernelClass::embedding : KernelClass::memory;
  }
  static std::string describe(const MovementShape& s) {
    return fmt::format("elements={}{}", s.elements, s.inner == 0 ? "" : fmt::format(" inner={}", s.inner));
  }
  static std::string problem(const MovementShape&) { return {}; }
  static Work work(const MovementShape& s, const AskedWork& of) {
    const double bytes = real_of(s.elements) * of.element;
    if (s.kind == MovementKind::fill) return make_work(0, 0, bytes);
    const bool indexed = s.kind == MovementKind::gather || s.kind == MovementKind::scatter;
    const double indices =
        indexed && s.inner > 0 ? real_of(s.elements) / real_of(s.inner) * kBytesOfIndex : 0;
    return make_work(0, bytes + indices, bytes);
  }
  static MovementShape smallest(MovementShape s) {
    s.elements = 16;
    s.inner = s.inner > 0 ? 16 : 0;
    return s;
  }
  static bool grow(MovementShape& s, const BatchGrowth& batch, Direction, bool) {
    return batch.grow_elements(s.elements);
  }
};

// Embedding lookups.
template <>
struct ShapeTraits<LookupShape> {
  static constexpr auto fields() {
    using S = LookupShape;
    return std::tuple{ShapeField{"tables", &S::tables, 0},
                      ShapeField{"rows", &S::rows, 0},
                      ShapeField{"dim", &S::dim, 1},
                      ShapeField{"bags", &S::bags, 0},
                      ShapeField{"pooling", &S::pooling, 0},
                      ShapeField{"distinct_fraction", &S::distinct_fraction},
                      ShapeField{"fused_update", &S::fused_update}};
  }
  static std::string_view family(const LookupShape&) { return "embedding_lookup"; }
  static KernelClass kernel_class(const LookupShape&) { return KernelClass::embedding; }
  static std::string describe(const LookupShape& s) {
    std::string out = fmt::format("tables={} rows={} dim={} bags={} pooling={:g}", s.tables, s.rows, s.dim,
                                  s.bags, s.pooling);
    if (s.distinct_fraction >= 0) out += fmt::format(" distinct_fraction={:g}", s.distinct_fraction);
    if (s.fused_update) out += " fused_update";
    return out;
  }
  // Constraints between fields.
  static std::string problem(const LookupShape& s) {
    if (s.distinct_fraction <= 1) return {};
    return fmt::format("distinct_fraction = {:g} (must be at most 1)", s.distinct_fraction);
  }
  static Work work(const LookupShape& s, const AskedWork& of) {
    const double bags = real_of(s.tables) * real_of(s.bags);
    const double lookups = bags * s.pooling;
    const double row = real_of(s.dim) * of.element;
    const double touched = distinct_rows(s) * row;
    // One lookup per bag needs no offsets.
    const double indices = (lookups + (s.pooling == 1 ? 0 : bags)) * kBytesOfIndex;
    const double sums = std::max(lookups - bags, 0.0) * real_of(s.dim);
    if (of.forward()) return make_work(sums, indices + touched, bags * row);
    const double scatter_adds = lookups * real_of(s.dim);
    // Kernels: sorting of the indices, joining of equal ones, and the update.
    if (s.fused_update) return make_work(2 * scatter_adds, indices + bags * row + touched, touched, 4);
    const double gradient = s.rows > 0 ? real_of(s.tables) * real_of(s.rows) * row : touched;
    return make_work(scatter_adds, indices + bags * row, gradient, 2);
  }
  // Distinct rows over all tables; if unknown, the expected number for uniformly drawn indices.
  static double distinct_rows(const LookupShape& s) {
    const double lookups_of_table = real_of(s.bags) * s.pooling;
    const double rows = real_of(s.rows);
    if (s.distinct_fraction >= 0) {
      const double distinct = s.distinct_fraction * lookups_of_table;
      return real_of(s.tables) * (rows > 0 ? std::min(distinct, rows) : distinct);
    }
    if (rows <= 0) return real_of(s.tables) * lookups_of_table;
    if (rows == 1) return real_of(s.tables) * std::min(lookups_of_table, 1.0);
    return real_of(s.tables) * rows * -std::expm1(lookups_of_table * std::log1p(-1 / rows));
  }
  static LookupShape smallest(LookupShape s) {
    s.tables = 1;
    s.bags = 1;
    s.pooling = 1;
    s.rows = std::min<std::int64_t>(s.rows, 16);
    return s;
  }
  static bool grow(LookupShape& s, const BatchGrowth& batch, Direction, bool) { return batch.grow(s.bags); }
};

// Optimizer steps.
template <>
struct ShapeTraits<OptimizerShape> {
  static constexpr auto fields() {
    using S = OptimizerShape;
    return std::tuple{ShapeField{"kind", &S::kind},
                      ShapeField{"implementation", &S::implementation},
                      ShapeField{"parameters", &S::parameters, 0},
                      ShapeField{"tensors", &S::tensors, 1},
                      ShapeField{"bytes_read_per_parameter", &S::bytes_read_per_parameter, 0},
                      ShapeField{"bytes_written_per_parameter", &S::bytes_written_per_parameter, 0}};
  }
  static std::string_view family(const OptimizerShape&) { return "optimizer"; }
  static KernelClass kernel_class(const OptimizerShape&) { return KernelClass::elementwise; }
  static std::string describe(const OptimizerShape& s) {
    constexpr std::string_view kImplementation[] = {"fused", "foreach", "for_loop"};
    return fmt::format("{} {} parameters={} tensors={} bytes_per_parameter={:g}+{:g}", to_string(s.kind),
                       kImplementation[static_cast<std::size_t>(s.implementation)], s.parameters, s.tensors,
                       s.bytes_read_per_parameter, s.bytes_written_per_parameter);
  }
  static std::string problem(const OptimizerShape&) { return {}; }
  static Work work(const OptimizerShape& s, const AskedWork&) {
    const double n = real_of(s.parameters);
    return make_work(n * rule_of(s.kind).flops_per_parameter,
                     n * static_cast<double>(s.bytes_read_per_parameter),
                     n * static_cast<double>(s.bytes_written_per_parameter), optimizer_kernels(s));
  }
  // Launches of an implementation.
  static std::int64_t optimizer_kernels(const OptimizerShape& s) {
    // PyTorch's multi_tensor_apply: at most 320 chunks of 65,536 elements and a few dozen tensors per launch.
    constexpr std::int64_t kElementsOfLaunch = 320LL * 65536, kTensorsOfLaunch = 36;
    const auto launches =
        std::max<std::int64_t>(1, std::max((s.parameters + kElementsOfLaunch - 1) / kElementsOfLaunch,
                                           (s.tensors + kTensorsOfLaunch - 1) / kTensorsOfLaunch));
    if (s.implementation == OptimizerImplementation::fused) return launches;
    const std::int64_t steps = rule_of(s.kind).kernels_unfused;
    return steps * (s.implementation == OptimizerImplementation::foreach ? launches : s.tensors);
  }
  static OptimizerShape smallest(OptimizerShape s) {
    s.parameters = 16;
    s.tensors = 1;
    return s;
  }
  static bool grow(OptimizerShape&, const BatchGrowth&, Direction, bool) { return false; }
};

// Copies by the copy engine.
template <>
struct ShapeTraits<TransferShape> {
  static constexpr auto fields() {
    using S = TransferShape;
    return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"bytes", &S::bytes, 0},
                      ShapeField{"pinned", &S::pinned}};
  }
  static std::string_view family(const TransferShape& s) { return kTransferNames[s.kind]; }
  static KernelClass kernel_class(const TransferShape&) { return KernelClass::memory; }
  static std::string describe(const TransferShape& s) {
    return fmt::format("bytes={}{}", s.bytes, s.pinned ? "" : " pageable");
  }
  static std::string problem(const TransferShape&) { return {}; }
  static Work work(const TransferShape& s, const AskedWork&) {
    const double bytes = real_of(s.bytes);
    return make_work(0, s.kind == MemcpyKind::none ? 0 : bytes, bytes);
  }
  static TransferShape smallest(TransferShape s) {
    s.bytes = 4;
    return s;
  }
  static bool grow(TransferShape& s, const BatchGrowth& batch, Direction, bool) {
    return batch.grow_transfer(s);
  }
};

// Work known only by its amounts; all of them grow with the samples.
template <>
struct ShapeTraits<AmountShape> {
  static constexpr auto fields() {
    using S = AmountShape;
    return std::tuple{ShapeField{"flops", &S::flops, 0}, ShapeField{"bytes_read", &S::bytes_read, 0},
                      ShapeField{"bytes_written", &S::bytes_written, 0}, ShapeField{"matrix", &S::matrix},
                      ShapeField{"kernel_class", &S::kernel_class}};
  }
  static std::string_view family(const AmountShape&) { return "fused"; }
  static KernelClass kernel_class(const AmountShape& s) { return s.kernel_class; }
  static std::string describe(const AmountShape& s) {
    return fmt::format("{} flops={:.0f} bytes={:.0f}+{:.0f}", to_string(s.kernel_class), s.flops,
                       s.bytes_read, s.bytes_written);
  }
  static std::string problem(const AmountShape&) { return {}; }
  static Work work(const AmountShape& s, const AskedWork&) {
    return make_work(s.flops, s.bytes_read, s.bytes_written, 1, s.matrix);
  }
  static AmountShape smallest(AmountShape s) {
    s.flops = std::min(s.flops, 64.0);
    s.bytes_read = s.bytes_written = 64;
    return s;
  }
  static bool grow(AmountShape& s, const BatchGrowth& batch, Direction, bool) {
    const double ratio = batch.ratio();
    s.flops *= ratio;
    s.bytes_read *= ratio;
    s.bytes_written *= ratio;
    return true;
  }
};

}  // namespace stepcast::detail
