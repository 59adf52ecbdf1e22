// Numbers that a step forecast needs and that neither the platform nor the layout gives. None was fitted to a
// step time; docs/constants.md lists their origins and says which were chosen with step times in view.
// `stepcast calibrate iterations` may replace them by what a user's own steps say.
#pragma once

#include <cstdint>

#include "stepcast/cost/training_kernels.h"

namespace stepcast {

struct StepAssumptions {
  // Host time per launched kernel of eager frameworks; a layer cannot be faster than its launches.
  double host_launch_us = 4.5;
  // The same with torch.compile, which launches fewer and cheaper.
  double compiled_host_launch_us = 3;
  // Between two steps: loss to the host, data loader hand-over, learning-rate schedule.
  double step_fixed_us = 3000;
  // Standard deviation of how fast GPUs of one kind compute, as a share: a synchronous step waits for the slowest of
  // all (slowest_gpu_excess).
  double gpu_speed_spread = 0.015;
  // Time of every product relative to what it takes alone: training runs hotter than benchmarks.
  double gemm_factor = 1;
  // On top of gemm_factor, of products in fp8 and fp4.
  double fp8_gemm_factor = 1;
  // On top, of all kernels whose time no measurement of the device stands behind.
  double unmeasured_kernels_factor = 1;
  // Time of a weight gradient over that of the forward product of its shape.
  double weight_gradient_factor = TrainingKernelOptions{}.weight_gradient_factor;
  double attention_factor = 1;
  // Time of an fp8 product over that of the same product in bf16, where no fp8 product is measured.
  double fp8_gemm_time_ratio = TrainingKernelOptions{}.fp8_gemm_time_ratio;
  // Time of memory-bound kernels relative to what they take alone.
  double memory_bound_factor = 1;
  double communication_factor = 1;
  // Of what experts add to a layer: their products, the order of their tokens, exchanges by all-to-all and by
  // libraries, and the host's work beside launching.
  double expert_factor = 1;
  // Of transfers inside a node, and of those between nodes.
  double intra_node_factor = 1, inter_node_factor = 1;
  // Of host time that was recorded or learned from traces.
  double host_factor = 1;
  // Share by which computation slows while a transfer runs on the same GPU.
  double overlap_slowdown = 0.02;
  // Half-width of the band that stands for what the structure of the model leaves out, as a share of the
  // step: to the fast and to the slow side. Clusters err to the slow side.
  double structure_low = 0.045, structure_high = 0.10;
  // The same for computation whose time, or whose clock under load, is only assumed.
  double structure_assumed = 0.12;
  // Standard deviation of the step's logarithm where measured steps say it (anchor.h); 0: its parts and its structure do.
  double log_sd = 0;
  // What other jobs ask of the links between switches, as a share of what these pass (network_sharing.h). Of a
  // question, not of a machine: no name.
  double background_load = 0;
  friend bool operator==(const StepAssumptions&, const StepAssumptions&) = default;
};

// How much longer the slowest of many GPUs takes than those of one node: in a synchronous step all others wait for it.
// Time of the slowest of `n_gpus` over that of the slowest of the eight of a node, less 1, where speeds of GPUs of one
// kind differ by the standard deviation `spread` (0.015: 1.5 %). 0 for up to eight GPUs: what prices hold, records and
// clocks under load, was measured in single nodes.
//
// The expected largest of n normal deviates, by Blom's approximation (1958): the quantile (n - 3/8) / (n + 1/4). Within
// 1 % of the exact value from 8 on.
[[nodiscard]] double slowest_gpu_excess(std::int64_t n_gpus, double spread);

}  // namespace stepcast
