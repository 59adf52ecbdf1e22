// Parameters of a step forecast that neither the platform nor the layout gives. None was fitted to a step
// time. docs/constants.md lists their origins and says which were tuned on step times. `stepcast calibrate
// iterations` can replace them by values fitted to the measured steps of a user.
#pragma once

#include <cstdint>

#include "stepcast/cost/training_kernels.h"

namespace stepcast {

// Times are in microseconds. A factor multiplies a time, so 2 is twice as long.
struct StepAssumptions {
  // Host time per kernel launch in eager frameworks. A layer is never faster than its launches.
  double host_launch_us = 4.5;
  // The same with torch.compile, which needs fewer and cheaper launches.
  double compiled_host_launch_us = 3;
  // Host time between two steps: loss to the host, data loader hand-over, learning-rate schedule.
  double step_fixed_us = 3000;
  // Standard deviation of the compute speed of GPUs of the same kind, as a share. A synchronous step waits
  // for the slowest GPU (slowest_gpu_excess).
  double gpu_speed_spread = 0.015;
  // Factor on all GEMMs relative to isolated benchmarks, because GPUs run hotter in training.
  double gemm_factor = 1;
  // Additional factor on fp8 and fp4 GEMMs.
  double fp8_gemm_factor = 1;
  // Additional factor on all kernels without a measurement on this device.
  double unmeasured_kernels_factor = 1;
  // Time of a weight-gradient GEMM / time of the forward GEMM of the same shape.
  double weight_gradient_factor = TrainingKernelOptions{}.weight_gradient_factor;
  // Factor on attention kernels.
  double attention_factor = 1;
  // Time of an fp8 GEMM / time of the same GEMM in bf16, used if no fp8 GEMM was measured.
  double fp8_gemm_time_ratio = TrainingKernelOptions{}.fp8_gemm_time_ratio;
  // Factor on memory-bound kernels relative to isolated benchmarks.
  double memory_bound_factor = 1;
  // Factor on all collectives and transfers.
  double communication_factor = 1;
  // Factor on everything that experts add to a layer: their GEMMs, sorting of tokens, all-to-all by NCCL or
  // by libraries, and host work other than launches.
  double expert_factor = 1;
  // Factors on transfers inside a node and between nodes.
  double intra_node_factor = 1, inter_node_factor = 1;
  // Factor on host time that was recorded or learned from traces.
  double host_factor = 1;
  // Share by which computation slows down while a transfer runs on the same GPU.
  double overlap_slowdown = 0.02;
  // Half-width of the band for effects that the model does not include, as a share of the step: to the fast
  // side and to the slow side. Real clusters are more often slower than forecast.
  double structure_low = 0.045, structure_high = 0.10;
  // The same for computation with an assumed time or an assumed clock under load.
  double structure_assumed = 0.12;
  // Standard deviation of ln(step time) according to measured steps (anchor.h). 0: the band follows from the
  // parts and the structure.
  double log_sd = 0;
  // Demand of other jobs on the links between switches, as a share of their capacity (network_sharing.h). It
  // belongs to a single forecast, not to the machine, so platform files have no name for it.
  double background_load = 0;
  friend bool operator==(const StepAssumptions&, const StepAssumptions&) = default;
};

// Relative excess time of the slowest of `n_gpus` GPUs over the slowest of the eight GPUs of a node, if the
// speeds of GPUs differ by the standard deviation `spread` (0.015 is 1.5 %). In a synchronous step all other
// GPUs wait for it. 0 for up to eight GPUs, because the measurements behind the prices (records and clocks
// under load) come from single nodes.
//
// Uses the expected maximum of n normal deviates by Blom's approximation (1958): the quantile of (n - 3/8) /
// (n + 1/4). It is within 1 % of the exact value for n >= 8.
[[nodiscard]] double slowest_gpu_excess(std::int64_t n_gpus, double spread);

}  // namespace stepcast
