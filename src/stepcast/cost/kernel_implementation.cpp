#include "stepcast/cost/kernel_implementation.h"

#include <algorithm>
#include <string>

namespace stepcast {
namespace {

struct Pattern {
  std::string_view part;
  KernelImplementation implementation;
};

// The first pattern that occurs in the lower-case name decides, so special patterns come before general ones.
constexpr Pattern kPatterns[] = {
    // With the closing bracket: these end the name, so "align128" does not match.
    {"_align1>", KernelImplementation::pieces_of_one},
    {"_align2>", KernelImplementation::pieces_of_two},
    {"max_pool_backward", KernelImplementation::pooling_backward},
    {"avg_pool2d_backward", KernelImplementation::pooling_backward},
    {"max_pool_forward", KernelImplementation::pooling_forward},
    {"batch_norm_collect_statistics_kernel", KernelImplementation::channel_statistics},
    {"batch_norm_backward_kernel", KernelImplementation::channel_statistics},

    {"nchwtonhwc", KernelImplementation::to_channels_last},
    {"nhwctonchw", KernelImplementation::to_channels_first},
    {"batched_transpose", KernelImplementation::layout_transpose},

    {"winogradwgrad", KernelImplementation::winograd_weight_gradient},
    {"winograd_nonfused", KernelImplementation::winograd},
    {"winograd", KernelImplementation::winograd_fused},
    {"miopensp3asmconv", KernelImplementation::winograd_fused},

    {"wgrad_alg", KernelImplementation::plain_weight_gradient},
    {"wgrad_engine", KernelImplementation::plain_weight_gradient},
    {"dgrad_engine", KernelImplementation::plain_data_gradient},
    {"dgrad2d_alg", KernelImplementation::plain_data_gradient},
    {"implicit_convolve", KernelImplementation::plain_convolution},
    {"explicit_convolve", KernelImplementation::plain_convolution},
    {"wgrad", KernelImplementation::tuned_weight_gradient},
    {"igemm_wrw", KernelImplementation::tuned_weight_gradient},
    {"stridedb_splitk", KernelImplementation::tuned_weight_gradient},
    {"dgrad", KernelImplementation::tuned_data_gradient},
    {"igemm_bwd", KernelImplementation::tuned_data_gradient},
    {"stridedb", KernelImplementation::tuned_data_gradient},
    {"scudnn", KernelImplementation::tuned_convolution},
    {"fprop", KernelImplementation::tuned_convolution},
    {"igemm_fwd", KernelImplementation::tuned_convolution},

    {"catarraybatched", KernelImplementation::concatenation},
    {"index_elementwise", KernelImplementation::indexing},
    {"indexselect", KernelImplementation::row_gather},
    {"vectorized_gather", KernelImplementation::row_gather},
    {"radixsort", KernelImplementation::sorting},
    {"topk", KernelImplementation::selection},
    {"bitonicsort", KernelImplementation::selection},
    {"vectorized_elementwise", KernelImplementation::other},
    {"unrolled_elementwise", KernelImplementation::mixed_types},
    {"elementwise_kernel", KernelImplementation::strided},
};

}  // namespace

KernelImplementation implementation_of(std::string_view kernel_name) {
  std::string name{kernel_name};
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const Pattern& pattern : kPatterns)
    if (name.find(pattern.part) != std::string::npos) return pattern.implementation;
  return KernelImplementation::other;
}

}  // namespace stepcast
