// The fitted kernel models of one device, indexed by family, dtype and direction.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/on_demand.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/families/fitted_kernel.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/device_siblings.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

class KernelRecords {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // `device` must outlive the records.
  explicit KernelRecords(const Device& device) : device_(&device) {}

  // Sets the sibling that lends its records to this device, scaled by the factors of the record
  // "kernel_sibling". Call it before add().
  void set_sibling(KernelSibling sibling) { sibling_ = std::move(sibling); }

  // Adds a record. Errors: another version, unknown operations, a device of another architecture. Errors in
  // the rest of a record show on first use.
  [[nodiscard]] Status add(const ModelRecord& record);

  [[nodiscard]] bool empty() const { return records_.empty(); }
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  // Index of the record for operations of this family, dtype and direction; kNone if there is no readable
  // one.
  [[nodiscard]] std::size_t find(const Operation& operation) const;
  [[nodiscard]] std::size_t find(std::string_view family, DType dtype, Direction direction) const;
  // Whether find() gives a record. Shipped records are assumed readable and are not parsed for this.
  [[nodiscard]] bool has(std::string_view family, DType dtype, Direction direction) const;

  // The model of an index from find().
  [[nodiscard]] const FittedKernel& kernel(std::size_t index) const { return *records_[index]->kernel.get(); }
  [[nodiscard]] const std::string& name(std::size_t index) const { return records_[index]->name; }
  // The name for times of another layout or kind than requested: "gemm/fp32/forward (in another layout)".
  [[nodiscard]] const std::string& name_of_another_value(std::size_t index) const {
    return records_[index]->name_of_another_value;
  }
  // Widening of the band on each side, in ln, for a record of another device.
  [[nodiscard]] double widening(std::size_t index) const { return records_[index]->widening; }
  // Correction, in ln, of the time `time_us` of a sibling's record. Arithmetic and bytes, as far as they
  // limit the time, scale with the rates of this device; the floor without the launch scales with its
  // arithmetic. Attention and lookups of a relative that the platform file names scale likewise. 0 for all
  // other records, and for copies from and to the host.
  [[nodiscard]] double log_of_sibling(std::size_t index, const Operation& operation, double time_us) const;

  // "model gemm/fp32/forward: the reason" of every unreadable record. Forces reading of all records, or of
  // those that are not shipped.
  [[nodiscard]] std::vector<std::string> unreadable(bool also_shipped) const;

 private:
  static constexpr std::size_t kDirections = 4;
  // Index into `records_` by dtype and direction, or kNone.
  using Slots = std::array<std::array<std::size_t, kDirections>, kDTypeCount>;
  struct Family {
    std::string name;
    Slots slots;
  };
  struct Record {
    std::string name, name_of_another_value;
    double widening = 0;
    bool of_sibling = false;  // of `sibling_`
    // Attention or lookups that the platform file took from another device of the architecture.
    bool of_relative = false;
    OnDemand<FittedKernel> kernel;
  };

  const Device* device_;
  std::optional<KernelSibling> sibling_;
  std::vector<Family> families_;
  std::vector<std::unique_ptr<Record>> records_;
};

}  // namespace stepcast::detail
