// The measured sibling of an unmeasured device and the ratios between the two: a new device of a known
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

// Name and `kind` of the record that names the origin of the kernel records of a platform, and the ratios.
inline constexpr std::string_view kKernelSiblingKind = "kernel_sibling";

// A sibling and the ratios of the device to it.
struct KernelSibling {
  std::string device;  // name of the sibling
  // Rates of this device over those of the sibling: matrix units in short runs and in long ones, memory
  // bandwidth.
  double compute = 1, sustained = 1, memory = 1;
  std::map<DType, double> peak_TFLOPs;  // of the sibling's matrix units, as stated in its platform
  double sm_count = 0;                  // of the sibling; 0: not stated

  // Factor on the time `us` of a sibling's kernel that is limited by neither bytes nor arithmetic alone. The
  // share that its bytes limit scales with the memory (they take `streamed_us` at full bandwidth there), the
  // rest with the rate of arithmetic; `launched_us` stay unchanged. `sustained`: the time is already of a
  // long run.
  [[nodiscard]] double time_ratio(double us, double streamed_us, double launched_us, bool sustained) const;
  // Position of a run of `us` microseconds between the clock of the units (0) and the power-limited clock
  // (1).
  [[nodiscard]] static double limited_share(double us);

  friend bool operator==(const KernelSibling&, const KernelSibling&) = default;

  // Keys: device, compute, sustained, memory, peak_TFLOPs (an object by type), sm_count. Errors: a rate that
  // is missing or not above 0.
  [[nodiscard]] static Result<KernelSibling> read(const JsonValue& parameters);
  [[nodiscard]] ModelRecord record() const;
};

// The ratios of `device` to `sibling`. Matrix units run at their clock in short runs, and at the
// power-limited clock in long ones: power grows with the cube of the clock, so the rate of N units at power P
// is proportional to N^(2/3) P^(1/3). Both ratios stay within a factor of 1 / 0.8 of the ratio of 16-bit
// peaks, the margin by which kernels miss a peak; peaks of narrower types do not count. Figures that either
// device does not state count as equal.
[[nodiscard]] KernelSibling sibling_of(const Device& sibling, const Device& device);

// Distance of two devices of one architecture, in ln: the largest difference of memory bandwidth, 16-bit
// peak, units, power and fp4 gain; the other differences break ties. None for two architectures, or where a
// figure is missing.
[[nodiscard]] std::optional<double> sibling_distance(const Device& a, const Device& b);

}  // namespace stepcast
