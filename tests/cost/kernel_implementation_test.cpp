#include "stepcast/cost/kernel_implementation.h"

#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace stepcast::kernel_implementation_test {
namespace {

using K = KernelImplementation;

// Names as profilers wrote them, one of every sort.
TEST(KernelImplementation, IsReadFromTheNameOfTheKernel) {
  const std::pair<std::string_view, K> names[] = {
      {"void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>", K::pooling_backward},
      {"void cudnn::ops::nchwToNhwcKernel<float, float, float, true, false>", K::to_channels_last},
      {"void cudnn::ops::nhwcToNchwKernel<float, float, float, true, false>", K::to_channels_first},
      {"batched_transpose_32x32_half", K::layout_transpose},
      {"volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", K::winograd_fused},
      {"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", K::winograd},
      {"void cudnn::winograd_nonfused::winogradWgradDelta4x4<float, float>", K::winograd_weight_gradient},
      {"void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5>", K::plain_convolution},
      {"void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", K::plain_data_gradient},
      {"void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3>", K::plain_weight_gradient},
      {"volta_scudnn_128x64_relu_interior_nn_v1", K::tuned_convolution},
      {"volta_scudnn_128x128_stridedB_interior_nn_v1", K::tuned_data_gradient},
      {"volta_scudnn_128x128_stridedB_splitK_small_nn_v1", K::tuned_weight_gradient},
      {"sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc", K::tuned_convolution},
      {"sm90_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc", K::tuned_data_gradient},
      {"sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32", K::tuned_weight_gradient},
      {"igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt64x256x32", K::tuned_weight_gradient},
      {"void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, c10::BFloat16>",
       K::channel_statistics},
      {"void at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<at_cuda_detail::cub>", K::sorting},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>", K::row_gather},
      {"void at::native::vectorized_gather_kernel<16, long>", K::row_gather},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", K::other},
      {"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl>", K::strided},
      {"void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>", K::mixed_types},
      {"ampere_sgemm_128x64_nn", K::other},
      {"void "
       "cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>(cutlass_75_tensorop)",
       K::pieces_of_one},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_nt_align2>(Params)",
       K::pieces_of_two},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_nn_align8>(Params)", K::other},
      {"", K::other},
  };
  for (const auto& [name, implementation] : names) EXPECT_EQ(implementation_of(name), implementation) << name;
}

TEST(SeenKernels, CountsPerOperation) {
  SeenKernels seen;
  seen.add(K::to_channels_last, 10, 0.1);
  seen.add(K::tuned_convolution, 90, 0.9);
  seen.add(K::to_channels_last, 10, 0.1);
  seen.add(K::tuned_convolution, 90, 0.9);
  EXPECT_TRUE(seen.has(K::to_channels_last));
  EXPECT_FALSE(seen.has(K::winograd));
  EXPECT_DOUBLE_EQ(seen.per_operation(K::to_channels_last), 1);
  EXPECT_DOUBLE_EQ(seen.us(K::tuned_convolution), 180);
}

}  // namespace
}  // namespace stepcast::kernel_implementation_test
