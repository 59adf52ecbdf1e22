// One fitted kernel model: a reference time with fitted constants, corrected by trees or Gaussian
// processes that learned ln(measured / reference), with an interval from residuals of rows that were held out.
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

// `kind` of the model records that this evaluates, and the version of their parameters.
inline constexpr std::string_view kKernelRecordKind = "kernel_time";
inline constexpr int kKernelRecordVersion = 1;

// Adds weight * (what it learned) to the logarithm of the reference.
struct Correction {
  double weight = 1;
  std::variant<GradientTrees, GaussianProcess> learned;
};

// ln(measured / predicted) of rows that were held out: 10 % lie below `low` and 10 % above `high`.
struct ResidualBand {
  // Inside of the measured sizes, at knots of ln(predicted us), linear in between.
  std::vector<double> log_time, low, high;
  // Beyond the measured sizes: what holding out the largest ones showed at `outside_distance` (in ln of a
  // size); farther out wider.
  double outside_low = -0.2, outside_high = 0.2, outside_distance = 0.5;
};

struct FittedTime {
  double log_us = 0;
  double log_low = 0, log_high = 0;  // added to log_us: 10 and 90 % of measurements
  double distance = 0;               // beyond the measured sizes, in ln; 0: inside
  double below = 0;                  // how far the work is below the least that was measured, in ln
  // Of another layout, function or other discrete feature than was asked for, which was not measured at such
  // an amount of work.
  bool of_another_value = false;
};

// Behind the name of a record that was measured with flushed caches, as kernels of a step find them; without it on warm ones.
inline constexpr std::string_view kColdCaches = "(cold caches)";

// What a record answers for: the part of its parameters that is read before it is asked.
struct KernelRecordHeader {
  std::string family;  // as family_of() or narrow_family_of() says
  DType dtype = DType::unknown;
  Direction direction = Direction::forward;
  KernelFeatureSet features = KernelFeatureSet::none;
  bool cold = false;  // measured with flushed caches

  // Errors name what is wrong: "version 7 (this program reads 1)".
  [[nodiscard]] static Result<KernelRecordHeader> read(const JsonValue& parameters);
};

class FittedKernel : public KernelRecordHeader {
 public:
  ReferenceParameters reference;
  double log_offset = 0;                  // of the reference to the middle of what was measured
  std::vector<float> low, high, typical;  // of each feature in the rows it was fitted on
  MeasuredValues measured_values;         // of discrete features; empty: not known, it answers for all
  // Products: FLOPs per microsecond of the fastest row. No product is predicted to run faster. 0: not known.
  double fastest_flops_per_us = 0;
  // Measured in runs of a second and more, at the clock that the power limit sustains; else in short ones.
  bool sustained = false;
  std::vector<Correction> corrections;
  ResidualBand band;
  std::vector<AttentionKernel> attention_kernels;  // that were measured; empty: not known

  // Errors as of the header, and of everything else: "`range` is missing".
  [[nodiscard]] static Result<FittedKernel> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;

  // Its corrections from now on.
  void correct_with(std::vector<Correction> learned);

  // out[i] is the time of *operations[i], all of this family.
  void estimate(std::span<const Operation* const> operations, std::span<FittedTime> out) const;

  // The features of an operation with unknown ones replaced, not yet clamped.
  void prepare(const Operation& operation, std::span<float, kMostKernelFeatures> out,
               double& log_reference) const;
};

// The family of a record that answers for operations like this one alone, beside one that answers for all of family_of():
// "attention_flash3", "memcpy_h2d_pageable", "layer_norm_unaligned". Empty where nothing but sizes sets them apart.
[[nodiscard]] std::string_view narrow_family_of(const Operation& operation);

// "gemm/bf16/forward"
[[nodiscard]] std::string kernel_record_name(std::string_view family, DType dtype, Direction direction);

}  // namespace stepcast
