// The time of any Operation on the device of a platform: fitted models where the platform has them, formulas
// everywhere else.
//
//   const KernelModel model{platform};
//   const Estimate t = model.estimate(gemm({.m = 8192, .n = 4096, .k = 4096}, DType::bf16));
//   t.time, t.p10, t.p90, t.source
//
// Order of lookup: a record of the platform for this family, dtype and direction; a record of the family in a
// dtype or direction with similar times (fp16 for bf16), with a wider band; the analytic model. No answer is
// below the lower bound of the analytic model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/cost/analytic_model.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// An estimate and its basis, for reports.
struct ExplainedEstimate {
  Estimate estimate;
  std::string_view record;    // name of the model record, valid as long as the model; empty: analytic
  bool extrapolated = false;  // outside of the range that the record was fitted on
  // The record was fitted on GEMMs in the layout of the operation, with similar amounts of work.
  bool layout_measured = false;
  // At the clock that the power limit sustains: from a record of long runs.
  bool sustained = false;
};

class KernelModel {
 public:
  // Records are parsed when an operation first needs them. Unreadable records (unknown kind or version,
  // missing numbers) fall through to the next model and are named in skipped().
  explicit KernelModel(const Platform& platform);
  KernelModel(const Device& device, std::span<const ModelRecord> records);
  KernelModel(KernelModel&&) noexcept;
  KernelModel& operator=(KernelModel&&) noexcept;
  ~KernelModel();

  // Estimate with its basis. Thread-safe.
  [[nodiscard]] ExplainedEstimate explain(const Operation& operation) const;
  [[nodiscard]] Estimate estimate(const Operation& operation) const { return explain(operation).estimate; }
  // Batch version: out[i] belongs to operations[i]. Operations of one record are evaluated together.
  void estimate(std::span<const Operation> operations, std::span<Estimate> out) const;

  [[nodiscard]] const AnalyticModel& analytic() const;
  // Whether GEMMs of the device, or of a sibling, were measured in some type.
  [[nodiscard]] bool has_measured_products() const;
  // "model gemm/fp32/forward: the reason" of every unreadable record. Forces reading of all records, or of
  // those that are not shipped.
  [[nodiscard]] std::vector<std::string> skipped(bool also_shipped = true) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast
