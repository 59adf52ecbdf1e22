#include "stepcast/platform/device_generation.h"

#include <algorithm>
#include <iterator>

namespace stepcast {
namespace {

using enum NcclGeneration;

// Per W of matrix units: gemm_bf16_fwd.csv, H100 falls from 763 to 703 TFLOP/s at 700 W as GEMMs grow;
// gemm_by_dtype.csv.gz, long runs, GB200 1.18 to 1.25 at 1,170 W, B200 1.3 to 1.35 at 1,000 W;
// simumax_a100_pcie_efficiency.csv, A100 at 300 W reaches 0.74 of its peak in large GEMMs, where
// operators_fwd_bwd_a100_80gb.csv has 0.82 to 0.91 at 400 W. Volta, Turing, CDNA and unknown ones: assumed.
//
// Per W of ordinary arithmetic: neusight_train_matmul_fp32.csv, long batched GEMMs, P4 reaches 52.6 GFLOP/s
// per W and T4 51, both far below their peaks; V100 (46), P100 and A100 (69) are not limited by power. Ampere
// and CDNA: assumed; newer ones: assumed 3.5 times the value of the 16 and 12 nm generations.
//
// Four int8 multiplications in one instruction: compute capability 6.1 and later (Pascal has cards with and
// without; those with it state their rate), gfx906 and later.
//
// Time of an operator on hosts before Hopper: A100 over H100 in the half of Megatron Core's test cases that
// is used for fitting (formats/detail/apply_settings.cpp).
constexpr double kOlderHosts = 1.35;
// Start of element-wise kernels, where it was measured: PyTorch 2.11 on an H100 80GB SXM, sums and GELUs of
// 1,024 to 72,192 elements that the previous kernel wrote, 1.3 to 1.8 us. Other kernels of 2.5 us there are
// GEMMs. The years of the newest architectures are at most one step after the previous ones.
constexpr DeviceGeneration kGenerations[] = {
    // Architecture, year, TFLOP/s, GFLOP/s per W, NCCL, bf16 units, int8 dots, asynchronous GEMM,
    // memory chips, host time, start of element-wise kernels.
    {"maxwell", 2014.8, 0.8, 180, ampere, true, false, false, false, kOlderHosts, 0},
    {"pascal", 2016.4, 0.8, 52, volta, false, false, false, false, kOlderHosts, 0},
    {"volta", 2017.5, 0.45, 52, volta, false, true, false, false, kOlderHosts, 0},
    {"turing", 2018.7, 0.45, 52, volta, false, true, false, true, kOlderHosts, 0},
    {"ampere", 2020.4, 0.80, 100, ampere, true, true, false, false, kOlderHosts, 0},
    {"ada", 2022.6, 1.03, 180, ampere, true, true, false, true, 1, 0},
    {"hopper", 2022.6, 1.03, 180, hopper, true, true, true, false, 1, 1.6},
    {"blackwell", 2023.5, 1.3, 180, blackwell, true, true, true, false, 1, 0},
    {"cdna", 2020.9, 0.8, 100, ampere, true, true, false, false, kOlderHosts, 0},
    {"cdna2", 2021.9, 0.8, 100, ampere, true, true, false, false, kOlderHosts, 0},
    {"cdna3", 2023.5, 0.8, 180, ampere, true, true, false, false, 1, 0},
    {"cdna4", 2023.5, 1.1, 180, ampere, true, true, false, false, 1, 0},
};
constexpr DeviceGeneration kUnknown{"", 2020.4, 0.8, 180, ampere, true, false, false, false, kOlderHosts, 0};

}  // namespace

const DeviceGeneration& generation_of(const Device& device) {
  const auto* const found =
      std::find_if(std::begin(kGenerations), std::end(kGenerations),
                   [&](const DeviceGeneration& g) { return same_name(g.architecture, device.architecture); });
  return found == std::end(kGenerations) ? kUnknown : *found;
}

}  // namespace stepcast
