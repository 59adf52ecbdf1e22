// The measured device that one nobody measured is most like, and what separates the two: a new product of a known
// generation runs the kernels of its sibling.
//
//   sibling_distance(b200, b300)       0.10: near; nothing for another architecture
//   sibling_of(b200, b300).sustained   1.03: matrix rate of a B300 over that of a B200, in long runs
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Name and `kind` of the record that says whose kernel records a platform holds, and how its device compares.
inline constexpr std::string_view kKernelSiblingKind = "kernel_sibling";

struct KernelSibling {
  std::string device;
  // Rates of this device over those of the sibling: matrix units in short runs and in long ones, bytes of the memory.
  double compute = 1, sustained = 1, memory = 1;
  std::map<DType, double> peak_TFLOPs;  // of the sibling's matrix units, as its platform states them
  double sm_count = 0;                  // of the sibling; 0: not stated

  // What the time `us` of a kernel of the sibling becomes, as a factor, that neither bytes nor arithmetic bind alone: as
  // far as its bytes bind, which take `streamed_us` there at full bandwidth, it goes with the memory, the rest with the
  // rate of arithmetic. `launched_us` of it stay. `sustained`: the time is of a long run already.
  [[nodiscard]] double time_ratio(double us, double streamed_us, double launched_us, bool sustained) const;
  // How far a run of `us` is from the clock of the units, 0, to what the power limit leaves, 1.
  [[nodiscard]] static double limited_share(double us);

  friend bool operator==(const KernelSibling&, const KernelSibling&) = default;

  // Keys: device, compute, sustained, memory, peak_TFLOPs (an object by type), sm_count. Errors: a rate that is missing or
  // not above 0.
  [[nodiscard]] static Result<KernelSibling> read(const JsonValue& parameters);
  [[nodiscard]] ModelRecord record() const;
};

// How `sibling` and `device` compare. Matrix units run at their clock in short runs, and in long ones at what the power
// limit leaves: power grows with the cube of the clock, so the rate of N units at power P goes with N^(2/3) P^(1/3).
// Neither is farther from the ratio of the 16-bit peaks than kernels stay below a peak; those of narrower types do not
// count. Figures that one of both does not state count as equal.
[[nodiscard]] KernelSibling sibling_of(const Device& sibling, const Device& device);

// How far apart two devices of one architecture are, in ln: the largest difference of memory bandwidth, 16-bit peak, units,
// power and what fp4 gains counts, the others break ties. Nothing for two architectures, or where a figure is missing.
[[nodiscard]] std::optional<double> sibling_distance(const Device& a, const Device& b);

}  // namespace stepcast
