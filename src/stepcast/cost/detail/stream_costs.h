// Costs of operations that stream data: element by element, or by rows of tables.
#pragma once

#include <algorithm>
#include <cmath>

#include "stepcast/cost/detail/embedding_lookup.h"
#include "stepcast/cost/detail/shape_cost_facts.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// Element-wise arithmetic, with efficiencies per function.
template <>
struct ShapeCost<ElementwiseShape> {
  static double closed_form_us(const ElementwiseShape& s, const PlainKernel& of) {
    if (s.function == ElementwiseFunction::gelu)
      return of.streamed(of.forward() ? Efficiency::gelu : Efficiency::gelu_backward);
    if (s.function == ElementwiseFunction::rotary_unfused)
      return of.streamed(of.forward() ? Efficiency::rotary_unfused : Efficiency::rotary_unfused_backward);
    if (s.function == ElementwiseFunction::masked_fill) return of.streamed(Efficiency::masked_fill);
    return of.streamed(Efficiency::elementwise);
  }
  static void reference(const ElementwiseShape& s, ReferenceAmounts& to) {
    const double tensors = static_cast<double>(s.reads) + static_cast<double>(s.writes);
    to.elements = at_least_one(s.elements) * std::max(tensors, 0.5);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::elements;
  static void features(const ElementwiseShape& s, FeatureWriter& write, double, double log_reference) {
    write_elements(write, s.elements, s.inner, static_cast<double>(s.reads) + static_cast<double>(s.writes),
                   static_cast<int>(s.function), static_cast<double>(s.flops_per_element), log_reference);
  }
  static GenericShape generic(const ElementwiseShape& s) {
    return {.inputs = static_cast<double>(s.reads), .power = s.function == ElementwiseFunction::power_scalar};
  }
};

// Copies, fills and rearrangements within the memory of the device.
template <>
struct ShapeCost<MovementShape> {
  static double closed_form_us(const MovementShape& s, const PlainKernel& of) {
    switch (s.kind) {
      case MovementKind::copy:
      case MovementKind::fill: return of.streamed(Efficiency::copy);
      case MovementKind::transpose: return of.streamed(Efficiency::transpose);
      case MovementKind::concatenate:
      case MovementKind::split: return of.streamed(Efficiency::concatenate);
      case MovementKind::gather: return of.streamed(Efficiency::gather);
      case MovementKind::scatter: return of.streamed(Efficiency::scatter);
    }
    return of.streamed(Efficiency::copy);
  }
  static void reference(const MovementShape& s, ReferenceAmounts& to) {
    to.elements = at_least_one(s.elements) * (s.kind == MovementKind::fill ? 1 : 2);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::elements;
  static void features(const MovementShape& s, FeatureWriter& write, double, double log_reference) {
    write_elements(write, s.elements, s.inner, 2, static_cast<int>(s.kind), 0, log_reference);
  }
  static GenericShape generic(const MovementShape&) { return {}; }
};

// Number of lookups over all tables, with at least one per bag.
inline double lookups_of(const LookupShape& s) {
  return at_least_one(s.tables) * at_least_one(s.bags) * std::max(s.pooling, 1.0);
}

// Embedding lookups by the published heuristic (detail/embedding_lookup.h).
template <>
struct ShapeCost<LookupShape> {
  static double closed_form_us(const LookupShape& s, const PlainKernel& of) {
    const double heuristic = lookup_us(s, of.element, of.direction, lookup_device(of.device));
    // A dense gradient of the size of the tables also has to be written.
    if (of.forward() || s.fused_update) return heuristic;
    return std::max(heuristic, of.work.bytes().value() / (of.device.memory.per_us * Efficiency::copy));
  }
  static void reference(const LookupShape& s, ReferenceAmounts& to) {
    const double lookups = lookups_of(s);
    to.elements = at_least_one(s.dim) * (lookups + at_least_one(s.tables) * at_least_one(s.bags));
    // A dense gradient of the table is cleared first.
    if (to.direction != Direction::forward && !s.fused_update)
      to.elements += at_least_one(s.tables) * at_least_one(s.rows) * at_least_one(s.dim);
    to.extra_bytes = lookups * 8;
    to.units = at_least_one(s.tables) * at_least_one(s.bags);
    to.chain = std::max(s.pooling, 1.0);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::lookup;
  static void features(const LookupShape& s, FeatureWriter& write, double, double log_reference) {
    const double log_rows = std::log(at_least_one(s.rows)), log_dim = std::log(at_least_one(s.dim));
    const double log_pooling = std::log(std::max(s.pooling, 1.0));
    const double log_tables = std::log(at_least_one(s.tables));
    const double log_lookups = log_tables + std::log(at_least_one(s.bags)) + log_pooling;
    write(log_rows);
    write(log_dim);
    write(log_lookups);
    write(log_reference);
    write(log_lookups - log_pooling + log_dim);
    write(log_lookups - log_rows - log_tables);
    write(twos_in(s.dim, 12));
    write(log_pooling);
    write(log_tables);
    write(log_tables + log_rows + log_dim);
  }
  static GenericShape generic(const LookupShape&) { return {}; }
};

// Optimizer updates: bytes per parameter, streamed.
template <>
struct ShapeCost<OptimizerShape> {
  static double closed_form_us(const OptimizerShape&, const PlainKernel& of) {
    return of.streamed(Efficiency::optimizer);
  }
  static void reference(const OptimizerShape& s, ReferenceAmounts& to) {
    to.extra_bytes =
        at_least_one(s.parameters) * std::max(1.0, static_cast<double>(s.bytes_read_per_parameter) +
                                                       static_cast<double>(s.bytes_written_per_parameter));
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::optimizer;
  static void features(const OptimizerShape& s, FeatureWriter& write, double, double log_reference) {
    const double log_parameters = std::log(at_least_one(s.parameters)),
                 log_tensors = std::log(at_least_one(s.tensors));
    write(log_parameters);
    write(log_tensors);
    write(log_reference);
    write(log_parameters - log_tensors);
    write(static_cast<double>(s.bytes_read_per_parameter) +
          static_cast<double>(s.bytes_written_per_parameter));
    write(static_cast<float>(s.implementation));
    write(static_cast<float>(s.kind));
  }
  static GenericShape generic(const OptimizerShape&) { return {}; }
};

// Copies between host and device, or within either.
template <>
struct ShapeCost<TransferShape> {
  static double closed_form_us(const TransferShape& s, const PlainKernel& of) {
    const double bytes = as_double(s.bytes);
    switch (s.kind) {
      case MemcpyKind::none: return bytes / (of.device.memory.per_us * Efficiency::copy);
      case MemcpyKind::device_to_device: return 2 * bytes / (of.device.memory.per_us * Efficiency::copy);
      case MemcpyKind::host_to_host: return bytes / host_memory_per_us(of.device);
      default: break;
    }
    return bytes /
           (of.device.host_link.per_us * (s.pinned ? Efficiency::pinned_copy : Efficiency::pageable_copy));
  }
  static void reference(const TransferShape& s, ReferenceAmounts& to) {
    to.extra_bytes = at_least_one(s.bytes);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::elements;
  static void features(const TransferShape& s, FeatureWriter& write, double, double log_reference) {
    write_elements(write, s.bytes, 0, 1, static_cast<int>(s.kind), s.pinned ? 1 : 0, log_reference);
  }
  static GenericShape generic(const TransferShape&) { return {}; }
};

// Operations known only by their amounts of bytes and FLOPs.
template <>
struct ShapeCost<AmountShape> {
  static double closed_form_us(const AmountShape&, const PlainKernel& of) {
    if (!of.work.matrix) return of.streamed(Efficiency::amounts);
    return std::max(
        of.work.bytes().value() / (of.device.memory.per_us * Efficiency::amounts),
        of.work.flops.value() / (of.device.matrix_of(of.dtype).per_us * Efficiency::amounts_matrix));
  }
  static void reference(const AmountShape&, ReferenceAmounts&) {}
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::none;
  static void features(const AmountShape&, FeatureWriter&, double, double) {}
  static GenericShape generic(const AmountShape&) { return {}; }
};

}  // namespace stepcast::detail
