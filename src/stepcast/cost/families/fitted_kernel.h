// One fitted kernel model: a reference time with fitted constants, corrected by trees or Gaussian processes
// trained on ln(measured / reference), with an interval from residuals of held-out rows.
//
// docs/kernels.md describes the parameters of the record.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/families/gaussian_process.h"
#include "stepcast/cost/families/gradient_trees.h"
#include "stepcast/cost/families/kernel_features.h"
#include "stepcast/cost/families/measured_values.h"
#include "stepcast/cost/families/reference_time.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// `kind` of the model records, and the version of their parameters.
inline constexpr std::string_view kKernelRecordKind = "kernel_time";
inline constexpr int kKernelRecordVersion = 1;

// A learned term: weight * value is added to the logarithm of the reference time.
struct Correction {
  double weight = 1;
  std::variant<GradientTrees, GaussianProcess> learned;
};

// Band of ln(measured / predicted) on held-out rows: p10 (`low`) and p90 (`high`).
struct ResidualBand {
  // Within the measured sizes: at knots of ln(predicted us), linear in between.
  std::vector<double> log_time, low, high;
  // Beyond the measured sizes: residuals with the largest sizes held out, at `outside_distance` (in ln of a
  // size); wider at larger distances.
  double outside_low = -0.2, outside_high = 0.2, outside_distance = 0.5;
};

// Time of one operation from a record.
struct FittedTime {
  double log_us = 0;
  double log_low = 0, log_high = 0;  // added to log_us: p10 and p90
  double distance = 0;               // beyond the measured sizes, in ln; 0: inside
  double below = 0;                  // distance of the work below the smallest measured one, in ln
  // The time is of another layout, function or other discrete feature than requested, since the requested one
  // was not measured at this amount of work.
  bool of_another_value = false;
};

// Suffix of the names of records measured with flushed caches, the state that kernels of a step find; records
// without it have warm caches.
inline constexpr std::string_view kColdCaches = "(cold caches)";

// The key of a record: the part of its parameters that is read eagerly.
struct KernelRecordHeader {
  std::string family;  // as in family_of() or narrow_family_of()
  DType dtype = DType::unknown;
  Direction direction = Direction::forward;
  KernelFeatureSet features = KernelFeatureSet::none;
  bool cold = false;  // measured with flushed caches

  // Errors name the cause: "version 7 (this program reads 1)".
  [[nodiscard]] static Result<KernelRecordHeader> read(const JsonValue& parameters);
};

// A record, ready for evaluation. estimate() is thread-safe.
class FittedKernel : public KernelRecordHeader {
 public:
  // Closed form that the corrections multiply.
  ReferenceParameters reference;
  double log_offset = 0;                  // offset of the reference to the middle of the measurements
  std::vector<float> low, high, typical;  // of each feature in the rows of the fit
  MeasuredValues measured_values;         // of discrete features; empty: unknown, the record applies to all
  // GEMM: FLOPs per microsecond of the fastest row, which no forecast exceeds. 0: unknown.
  double fastest_flops_per_us = 0;
  // Measured in runs of a second and more, at the clock that the power limit sustains; else in short runs.
  bool sustained = false;
  std::vector<Correction> corrections;
  ResidualBand band;
  std::vector<AttentionKernel> attention_kernels;  // measured ones; empty: unknown

  // Errors: those of the header, and any missing or invalid field: "`range` is missing".
  [[nodiscard]] static Result<FittedKernel> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;

  // Replaces the corrections.
  void correct_with(std::vector<Correction> learned);

  // out[i] is the time of *operations[i]; all operations must be of this family.
  void estimate(std::span<const Operation* const> operations, std::span<FittedTime> out) const;

  // The features of an operation, with unknown ones replaced by typical values, not yet clamped to the
  // measured range.
  void prepare(const Operation& operation, std::span<float, kMostKernelFeatures> out,
               double& log_reference) const;
};

// A narrower family than family_of(), for kernels that differ by more than sizes: "attention_flash3",
// "memcpy_h2d_pageable", "layer_norm_unaligned". A record of it has priority. Empty: none.
[[nodiscard]] std::string_view narrow_family_of(const Operation& operation);

// Name of a record: "gemm/bf16/forward".
[[nodiscard]] std::string kernel_record_name(std::string_view family, DType dtype, Direction direction);

}  // namespace stepcast
