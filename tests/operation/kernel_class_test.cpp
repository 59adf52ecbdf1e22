#include "stepcast/operation/kernel_class.h"

#include <array>
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "stepcast/trace/readers.h"

#include "tests/support/data.h"

namespace stepcast::kernel_class_test {
namespace {

struct Case {
  const char* name;
  KernelClass kernel_class;
};

// Names as they stand in traces; shortened where the rest repeats.
constexpr Case kCases[] = {
    {"volta_sgemm_128x64_nn", KernelClass::gemm},
    {"ampere_sgemm_32x32_sliced1x4_tn", KernelClass::gemm},
    {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nt_align4>(...)", KernelClass::gemm},
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_warpgroupsize1x1x1_execute_segment_k_off_"
     "kernel__5x_cublas",
     KernelClass::gemm},
    {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32", KernelClass::gemm},
    {"nvjet_tst_128x256_64x4_2x1_v_bz_TNT", KernelClass::gemm},
    {"void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false>(...)",
     KernelClass::gemm},
    {"void splitKreduce_kernel<float, float, float, float, true, false, false>(cublasSplitKParams<float>)",
     KernelClass::gemm},
    {"void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>(...)", KernelClass::gemm},
    {"void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, true, true>(...)",
     KernelClass::gemm},
    {"void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(...)", KernelClass::gemm},
    {"cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)", KernelClass::gemm},
    {"void fft2d_r2c_32x32<float, false, 0u, false>(...)", KernelClass::gemm},
    {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, "
     "false, "
     "cutlass::bfloat16_t>>(...)",
     KernelClass::attention},
    {"fmha_cutlassF_f32_aligned_64x64_rf_sm80(...)", KernelClass::attention},
    {"void split_embedding_codegen_forward_unweighted_kernel<float, float, float, false, long, 1ul, "
     "8ul>(...)",
     KernelClass::embedding},
    {"void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, int>(...)",
     KernelClass::embedding},
    {"void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)",
     KernelClass::embedding},
    {"void at::native::(anonymous namespace)::indexSelectLargeIndex<float, int, unsigned int, 1, 1, -2, "
     "true>(...)",
     KernelClass::embedding},
    {"void at::native::index_elementwise_kernel<128, 4, "
     "at::native::gpu_index_kernel<at::native::index_kernel_impl>>(...)",
     KernelClass::embedding},
    {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(...)",
     KernelClass::normalization},
    {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(...)",
     KernelClass::normalization},
    {"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(...)", KernelClass::normalization},
    {"triton_per_fused__to_copy_add_native_layer_norm_3", KernelClass::normalization},
    {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "
     "at::detail::Array<char*, 3> >(...)",
     KernelClass::elementwise},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<...TensorListMetadata<2>...>(...)",
     KernelClass::elementwise},
    {"triton_poi_fused_add_cos_neg_sin_0", KernelClass::elementwise},
    {"void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, "
     "bool>(...)",
     KernelClass::elementwise},
    {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
     "float>>>(...)",
     KernelClass::reduction},
    {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
     "at::detail::Array<char*, 1> >(...)",
     KernelClass::memory},
    {"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(...)>(...)",
     KernelClass::memory},
    {"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(...)",
     KernelClass::memory},
    {"void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(...)",
     KernelClass::memory},
    {"Memcpy HtoD (Pageable -> Device)", KernelClass::memory},
    {"Memset (Device)", KernelClass::memory},
    {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", KernelClass::communication},
    {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", KernelClass::communication},
    {"ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)", KernelClass::communication},
    {"void dpsk::ep::internode::dispatch<8>(...)", KernelClass::communication},
    {"void cub::DeviceScanInitKernel<cub::ScanTileState<int, true> >(cub::ScanTileState<int, true>, int)",
     KernelClass::other},
};

TEST(KernelClass, IsToldByTheName) {
  for (const Case& c : kCases)
    EXPECT_EQ(to_string(classify_kernel(c.name)), to_string(c.kernel_class)) << c.name;
}

TEST(KernelClass, AsksTheFrameworkOpWhereTheNameTellsNothing) {
  EXPECT_EQ(classify_kernel("kernel_17"), KernelClass::other);
  EXPECT_EQ(classify_kernel("kernel_17", "aten::addmm"), KernelClass::gemm);
  EXPECT_EQ(classify_kernel("kernel_17", "aten::embedding_bag"), KernelClass::embedding);
  EXPECT_EQ(classify_kernel("kernel_17", "aten::copy_"), KernelClass::memory);
  EXPECT_EQ(classify_kernel("volta_sgemm_128x64_nn", "aten::copy_"), KernelClass::gemm)
      << "the name comes first";
}

TEST(KernelClass, TellsCommunication) {
  EXPECT_EQ(classify_kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            KernelClass::communication);
  EXPECT_NE(classify_kernel("void my::kernel<ncclLike>(int)"), KernelClass::communication);
}

TEST(MemcpyKindOf, TakesAllSpellings) {
  EXPECT_EQ(memcpy_kind("Memcpy HtoD (Pageable -> Device)"), MemcpyKind::host_to_device);
  EXPECT_EQ(memcpy_kind("Memcpy HtoD (Host -> Device)"), MemcpyKind::host_to_device);
  EXPECT_EQ(memcpy_kind("Memcpy DtoH (Device -> Pinned)"), MemcpyKind::device_to_host);
  EXPECT_EQ(memcpy_kind("Memcpy DtoD (Device -> Device)"), MemcpyKind::device_to_device);
  EXPECT_EQ(memcpy_kind("Memcpy PtoP (Device -> Device)"), MemcpyKind::peer);
  EXPECT_EQ(memcpy_kind("CopyHostToDevice"), MemcpyKind::host_to_device);
  EXPECT_EQ(memcpy_kind("Memset (Device)"), MemcpyKind::none);
}

// Every kernel of the measured traces, by its share of the kernels and of the kernel time: what nobody
// classified stays small.
TEST(KernelClass, KnowsNearlyAllRecordedKernels) {
  SKIP_WITHOUT_DATA();
  struct Seen {
    std::uint64_t count = 0;
    double us = 0;
  };
  std::map<std::string, Seen> kernels;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*test::measured_data() / "traces")) {
    if (!entry.path().string().ends_with(".json.gz")) continue;
    const auto rank = read_kineto(entry.path());
    if (!rank.ok()) continue;
    for (const GpuOp& op : rank->gpu_ops) {
      if (op.kind != GpuOp::Kind::kernel) continue;
      Seen& seen = kernels[std::string(rank->names.text(op.name))];
      ++seen.count;
      seen.us += to_microseconds(op.duration).value();
    }
  }
  ASSERT_GT(kernels.size(), 500U);
  std::array<Seen, kKernelClassCount> sums;
  Seen all;
  std::string others;
  for (const auto& [name, seen] : kernels) {
    const KernelClass kernel_class = classify_kernel(name);
    Seen& sum = sums[static_cast<std::size_t>(kernel_class)];
    sum.count += seen.count;
    sum.us += seen.us;
    all.count += seen.count;
    all.us += seen.us;
    if (kernel_class == KernelClass::other)
      others += "  " + std::to_string(seen.count) + " " + name.substr(0, 150) + "\n";
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::printf("%-14s %7llu kernels %6.2f %% of the time\n",
                std::string(to_string(static_cast<KernelClass>(i))).c_str(),
                static_cast<unsigned long long>(sums[i].count), 100 * sums[i].us / all.us);
  }
  const Seen& other = sums[static_cast<std::size_t>(KernelClass::other)];
  EXPECT_LT(other.us, 0.02 * all.us) << others;
  EXPECT_LT(static_cast<double>(other.count), 0.03 * static_cast<double>(all.count)) << others;
  std::printf("other:\n%s", others.c_str());
}

}  // namespace
}  // namespace stepcast::kernel_class_test
