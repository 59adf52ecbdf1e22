#include "stepcast/trace/detail/known_names.h"

namespace stepcast::detail {

std::string_view known_names() {
  static constexpr std::string_view kNames =
      R"names(3["", "1"]
3["", "[2, 2048, 8192]"]
3["", "3"]
3["", "15", "0", "", "", "False", ""]
3["", "1."]
3["", "6", "", "", "", "False", ""]
3["", "15", "0", "", "", "False", "False", ""]
3["", "[128, 512, -1]"]
3["[0]", "6", "0", "", "", ""]
3["", "[1, 32, 4, 64]", "[8192, 256, 64, 1]", ""]
3["[1, 4, 32, 64]", "[8192, 64, 256, 1]", "15", "0", "", ""]
3["[32]", "6", "0", "", "", ""]
3["", "[256]", "", "", "1.0000000000000001e-05", "True"]
3["[1, 32, 256]", "6", "0", "", "", "0"]
3["", "[1, 32, 1]"]
3["", "[32, 256]"]
3["", "11", "0", "", "", ""]
3["", "", "1.1111111111111112"]
3["", "[2, 2048, 512]"]
3["", "3", "0", "32", "1"]
3["", "[4096, 8192]"]
3["", "2."]
3["", "[768, 8192]", "[1, 768]", ""]
3["", "[768, 768]", "[768, 1]", ""]
3["", "2"]
3["[8192]", "6", "0", "", "", ""]
3["[768]", "6", "0", "", "", "0"]
3["[768]", "[1]", "15", "0", "", "False"]
3["[768]", "[1]", "6", "0", "", "False"]
3["", "[768]"]
3["", "[768, 768]", "[1, 768]", ""]
3["", "[128, 256, -1]"]
3["[256]", "6", "0", "", "", "0"]
3["[]", "4", "", "", "", ""]
3["", "3."]
3["", "[8, 1024, 768]"]
3["", "0.10000000000000001", "True"]
3["", "0"]
3["", "[0]", "True", ""]
3["", "[8192, 768]"]
3["", "[16, 512, 768]"]
3["", "", "", "", "", "0"]
3["", "[2, 2048, 2048]"]
3["", "[1, 32, 256]"]
3["", "[4096, 2048]"]
3["", "6", "False", "False", ""]
3["", "", ""]
3["", "", "", "1", "1"]
3["", "", "", "", "", ""]
3["", "1", "2"]
3["", "6", "0", "", "", "False", ""]
3["", "6", "0", "", "", "False", "False", ""]
3["", "", "1"]
3["", "15", "", "", "", "False", ""]
3["", "15", "False", "False", ""]
3["", "0", "1"]
3["", "", "False"]
3["", ""]
3[""]
2["bool"]
2["float", "float", "Scalar", "float"]
2["long int", "float", "ScalarList", "Scalar", "Scalar", "", "", ""]
2["long int", "float", "ScalarList", "", "", "", "", ""]
2["float", "long int", "long int", "long int", "long int", "Scalar", "Scalar", "Scalar", "", "Scalar"]
2["float", "long int", "long int", "long int", "long int", "long int", "Scalar", "Scalar", "Scalar", "Scalar", "", "Scalar"]
2["long int", "Scalar", "Scalar", "Scalar", ""]
2["c10::BFloat16", "float", "float"]
2["float", "ScalarList", "ScalarList", "Scalar"]
2["float", "Scalar", "long int", "Scalar", "float"]
2["float", "Scalar", "long int"]
2["c10::BFloat16", "Scalar", "Scalar", "", "", "Scalar"]
2["c10::BFloat16", "float"]
2["float", "c10::BFloat16", "float", "Scalar", "Scalar"]
2["float", "c10::BFloat16"]
2["float", "long int"]
2["float", "ScalarList", "Scalar"]
2["float", "long int", "Scalar", "Scalar", "Scalar"]
2["long int", "ScalarList", "Scalar"]
2["Scalar", "Scalar", "ScalarList", "long int", "float", "Scalar", "Scalar", "", "", ""]
2["c10::BFloat16", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"]
2["c10::BFloat16", "float", "float", "float", "float", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "ScalarList", "ScalarList", "ScalarList", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"]
2["c10::BFloat16", "", "", "", "", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "ScalarList", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar", "ScalarList"]
2["c10::BFloat16", "c10::BFloat16", "float", "float", "float", "float", "float", "Scalar", "Scalar", "ScalarList"]
2["long int", "Scalar"]
2["long int", "ScalarList", ""]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", "", "Scalar", "Scalar", "Scalar", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "Scalar", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "ScalarList", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "double"]
2["float", "float", "float"]
2["float", "double", "Scalar"]
2["long int", "ScalarList", "ScalarList", ""]
2["c10::BFloat16", "Scalar", "Scalar", "Scalar", ""]
2["float", "Scalar", "Scalar", "", "", "Scalar", ""]
2["c10::BFloat16", "Scalar", "", "", "", "Scalar", ""]
2["ScalarList", "Scalar", "Scalar", "", ""]
2["long int", "long int", "Scalar"]
2["float", "Scalar", "Scalar", "", "", "Scalar", "Scalar", ""]
2["TensorList", "Scalar"]
2["float", "ScalarList", ""]
2["float", "ScalarList", "Scalar", ""]
2["c10::BFloat16", "Scalar", "Scalar", "", "", ""]
2["c10::BFloat16", "bool", "Scalar"]
2["float", "ScalarList", "float", "float", "Scalar"]
2["float", "float", "ScalarList", "float", "float", "float", "float", "ScalarList"]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "float", "float", "float", "float", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"]
2["float", "float", "float", "Scalar", "Scalar"]
2["float", "", "", "", "", "Scalar"]
2["long int", "ScalarList"]
2["float", "Scalar", "Scalar"]
2["ScalarList", "Scalar", "", "", "", ""]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "float", "long int", "long int", "", "", "", "Scalar", "Scalar", "Scalar", "Scalar", "Scalar"]
2["c10::BFloat16", "c10::BFloat16", ""]
2["c10::BFloat16", "", "", "", "", "Scalar"]
2["c10::BFloat16", "Scalar", "Scalar", "Scalar"]
2["float", "ScalarList", "float", "float", "Scalar", "Scalar"]
2["float", "ScalarList", "ScalarList", ""]
2["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"]
2["c10::BFloat16", "Scalar"]
2["c10::BFloat16", "ScalarList", "Scalar", ""]
2["float", "float", "Scalar"]
2["c10::BFloat16", "ScalarList", "ScalarList", "Scalar"]
2["c10::BFloat16", "Scalar", "Scalar", "Scalar", "Scalar"]
2["float", "double"]
2["float", "float"]
2["c10::BFloat16", "", "", "", "", ""]
2["c10::BFloat16", "c10::BFloat16", "Scalar"]
2["ScalarList", "ScalarList", "Scalar", "Scalar", "", ""]
2["float", "Scalar"]
2["c10::BFloat16", "Scalar", "Scalar", "", "", "Scalar", ""]
2["float", "ScalarList"]
2["c10::BFloat16", "Scalar", "Scalar", "", "", "Scalar", "Scalar", ""]
2["ScalarList", "Scalar", "Scalar", "", "", "Scalar"]
2["ScalarList", "Scalar", "Scalar", "", "", ""]
2["float", "c10::BFloat16", "Scalar"]
2["float", "Scalar", "", "", "", "Scalar", ""]
2["c10::BFloat16", "float", "Scalar"]
2["float", "Scalar", "Scalar", "Scalar", ""]
2["c10::BFloat16", "c10::BFloat16"]
2["ScalarList", "ScalarList", "Scalar", "Scalar", "", "Scalar"]
2["c10::BFloat16", "ScalarList", "ScalarList", ""]
2["c10::BFloat16", "Scalar", "Scalar"]
2["c10::BFloat16", "ScalarList"]
2["float"]
2["c10::BFloat16"]
4cudaEventQuery
4cudaPointerGetAttributes
4cudaFuncSetAttribute
4INVALID
4cudaStreamSynchronize
4cudaStreamWaitEvent
4cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
4cudaDeviceSynchronize
4cudaMemcpyAsync
4cuLaunchKernel
4cudaDeviceGetAttribute
4cudaGetFuncBySymbol
4cudaLaunchKernelExC
4cudaFuncGetAttributes
4cudaPeekAtLastError
4cudaStreamIsCapturing
4cudaMemsetAsync
4cudaGetErrorString
4cuLaunchKernelEx
4cudaLaunchKernel
0aten::zeros_like
0torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>
0autograd::engine::evaluate_function: torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>
0All2All_Pooled_ReqBackward
0autograd::engine::evaluate_function: All2All_Pooled_ReqBackward
0torch::autograd::CppNode<SplitLookupFunction_Dense_Op>
0autograd::engine::evaluate_function: torch::autograd::CppNode<SplitLookupFunction_Dense_Op>
0All2All_Pooled_WaitBackward
0autograd::engine::evaluate_function: All2All_Pooled_WaitBackward
0aten::log_
0aten::exp_
0aten::split_with_sizes
0All2All_Pooled_Wait
0fbgemm::dense_embedding_codegen_lookup_function
0All2All_Pooled_Req
0fbgemm::split_embedding_codegen_lookup_adagrad_function
0fbgemm::bounds_check_indices
0fbgemm::asynchronous_complete_cumsum
0fbgemm::permute_2D_sparse_data
0c10d::allreduce_
0aten::_foreach_mul_
0aten::flatten
0aten::adaptive_avg_pool2d
0aten::max_pool2d_with_indices
0aten::max_pool2d
0aten::max_pool2d_with_indices_backward
0MaxPool2DWithIndicesBackward0
0autograd::engine::evaluate_function: MaxPool2DWithIndicesBackward0
0aten::sin
0aten::cos
0aten::_pin_memory
0aten::is_pinned
0aten::pin_memory
0c10d::alltoall_base_
0aten::view_as
0aten::log_sigmoid_forward
0aten::log_sigmoid
0aten::stack
0StackBackward0
0autograd::engine::evaluate_function: StackBackward0
0aten::divide_
0aten::new_empty
0SqueezeBackward1
0autograd::engine::evaluate_function: SqueezeBackward1
0aten::addcdiv_
0aten::sqrt
0aten::addcmul_
0aten::binary_cross_entropy_with_logits
0aten::index
0BmmBackward0
0autograd::engine::evaluate_function: BmmBackward0
0aten::_index_put_impl_
0aten::new_zeros
0IndexBackward0
0autograd::engine::evaluate_function: IndexBackward0
0aten::sigmoid
0BinaryCrossEntropyWithLogitsBackward0
0autograd::engine::evaluate_function: BinaryCrossEntropyWithLogitsBackward0
0aten::record_stream
0aten::constant_pad_nd
0aten::pad
0aten::is_nonzero
0aten::all
0aten::eq
0aten::ne
0aten::diff
0AliasBackward0
0autograd::engine::evaluate_function: AliasBackward0
0record_param_comms
0aten::_fused_adamw_
0aten::alias
0aten::nll_loss_forward
0aten::nll_loss_nd
0aten::_log_softmax
0aten::cross_entropy_loss
0aten::_log_softmax_backward_data
0LogSoftmaxBackward0
0autograd::engine::evaluate_function: LogSoftmaxBackward0
0aten::nll_loss_backward
0NllLossBackward0
0autograd::engine::evaluate_function: NllLossBackward0
0aten::cumsum
0aten::sub_
0aten::contiguous
0aten::_foreach_add_
0aten::_local_scalar_dense
0aten::sub
0aten::bmm
0aten::remainder
0aten::ones_like
0aten::div_
0aten::item
0aten::embedding
0aten::embedding_dense_backward
0aten::embedding_backward
0EmbeddingBackward0
0autograd::engine::evaluate_function: EmbeddingBackward0
0aten::nll_loss
0aten::log_softmax
0aten::gelu
0aten::gelu_backward
0GeluBackward0
0autograd::engine::evaluate_function: GeluBackward0
0aten::clamp_min
0aten::relu
0aten::silu
0aten::silu_backward
0SiluBackward0
0autograd::engine::evaluate_function: SiluBackward0
0aten::arange
0aten::index_add_
0aten::is_coalesced
0aten::sparse_dim
0aten::_nnz
0aten::_embedding_bag
0aten::embedding_bag
0aten::embedding_sparse_backward
0aten::_embedding_bag_sparse_backward
0aten::_embedding_bag_backward
0EmbeddingBagBackward0
0autograd::engine::evaluate_function: EmbeddingBagBackward0
0aten::squeeze
0aten::select
0NegBackward0
0autograd::engine::evaluate_function: NegBackward0
0aten::tanh
0aten::split
0SplitBackward0
0autograd::engine::evaluate_function: SplitBackward0
0aten::tanh_backward
0TanhBackward0
0autograd::engine::evaluate_function: TanhBackward0
0aten::index_select
0aten::rsqrt
0RsqrtBackward0
0autograd::engine::evaluate_function: RsqrtBackward0
0aten::gather
0MeanBackward1
0autograd::engine::evaluate_function: MeanBackward1
0CatBackward0
0autograd::engine::evaluate_function: CatBackward0
0aten::clone
0aten::mean
0aten::unsqueeze
0aten::_sparse_coo_tensor_with_dims_and_tensors
0aten::_sparse_coo_tensor_unsafe
0aten::clamp_min_
0aten::relu_
0aten::native_batch_norm
0aten::_batch_norm_impl_index
0aten::batch_norm
0aten::cudnn_convolution
0aten::_convolution
0aten::convolution
0aten::convolution_backward
0ConvolutionBackward0
0autograd::engine::evaluate_function: ConvolutionBackward0
0aten::native_batch_norm_backward
0NativeBatchNormBackward0
0autograd::engine::evaluate_function: NativeBatchNormBackward0
0aten::_cudnn_attention_forward
0aten::_scaled_dot_product_cudnn_attention
0aten::_cudnn_attention_backward
0aten::_scaled_dot_product_cudnn_attention_backward
0ScaledDotProductCudnnAttentionBackward0
0autograd::engine::evaluate_function: ScaledDotProductCudnnAttentionBackward0
0aten::threshold_backward
0ReluBackward0
0autograd::engine::evaluate_function: ReluBackward0
0aten::slice_backward
0SliceBackward0
0autograd::engine::evaluate_function: SliceBackward0
)names"
      R"names(0aten::neg
0PowBackward0
0autograd::engine::evaluate_function: PowBackward0
0aten::div
0aten::zeros
0aten::cat
0aten::expand
0aten::zero_
0aten::native_dropout
0aten::dropout
0aten::native_dropout_backward
0NativeDropoutBackward0
0autograd::engine::evaluate_function: NativeDropoutBackward0
0aten::_values
0aten::_indices
0aten::native_layer_norm
0aten::native_layer_norm_backward
0NativeLayerNormBackward0
0autograd::engine::evaluate_function: NativeLayerNormBackward0
0aten::fill_
0aten::mul_
0aten::scaled_dot_product_attention
0aten::conv2d
0MmBackward0
0autograd::engine::evaluate_function: MmBackward0
0UnsafeViewBackward0
0autograd::engine::evaluate_function: UnsafeViewBackward0
0aten::matmul
0aten::resize_
0aten::_unsafe_view
0aten::narrow
0aten::layer_norm
0aten::result_type
0aten::pow
0TBackward0
0autograd::engine::evaluate_function: TBackward0
0AddmmBackward0
0autograd::engine::evaluate_function: AddmmBackward0
0TransposeBackward0
0autograd::engine::evaluate_function: TransposeBackward0
0AddBackward0
0autograd::engine::evaluate_function: AddBackward0
0MulBackward0
0autograd::engine::evaluate_function: MulBackward0
0aten::linear
0aten::sum
0aten::slice
0aten::add
0aten::addmm
0aten::add_
0ToCopyBackward0
0autograd::engine::evaluate_function: ToCopyBackward0
0ViewBackward0
0autograd::engine::evaluate_function: ViewBackward0
0aten::mm
0aten::empty_like
0detach
0aten::detach
0torch::autograd::AccumulateGrad
0autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
0aten::mul
0aten::t
0aten::reshape
0aten::empty
0aten::_to_copy
0aten::copy_
0aten::transpose
0aten::to
0aten::empty_strided
0aten::as_strided
0aten::view
5volta_sgemm_128x32_nn
5void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>
5void at::native::(anonymous namespace)::CatArrayBatchedCopy_alignedK_contig<at::native::(anonymous namespace)::OpaqueType<8u>, unsigned int, 2, 128, 1, 16>
5void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::(anonymous namespace)::threshold_kernel_impl<float> >, at::detail::Array<char*, 3> >
5void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar, at::detail::Array<char*, 3> >
5volta_sgemm_128x64_tn
5sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_on_kernel__5x_cudnn
5void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma__5x_cudnn::implicit_gemm::fprop::Warp_specialized_params_non_template<xmma__5x_cudnn::Grid_constant_params> >
5void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, at::native::(anonymous namespace)::LogSoftMaxBackwardEpilogue>
5void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>
5void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, at::native::func_wrapper_t<bool, at::native::and_kernel_cuda(at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda()#12}::operator()() const::{lambda(bool, bool)#1}>, unsigned int, bool, 4, 4> >
5void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::AUnaryFunctor<long, long, bool, at::native::(anonymous namespace)::CompareEqFunctor<long> > >
5void at::native::tensor_kernel_scan_innermost_dim<long, std::plus<long> >
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<long> >
5void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<8u>, unsigned int, 2, 64, 64>
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctorOnSelf_add<long> >
5void (anonymous namespace)::indexing_backward_kernel_stride_1<float>
5void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortSingleTileKernel<at_cuda_detail::cub::detail::radix::policy_hub<long, at::cuda::cub::detail::OpaqueType<8>, unsigned long long>::Policy1000, (at_cuda_detail::cub::SortOrder)0, long, at::cuda::cub::detail::OpaqueType<8>, unsigned long long, at_cuda_detail::cub::detail::identity_decomposer_t>
5void at::native::vectorized_elementwise_kernel<2, at::native::BUnaryFunctor<long, long, long, at::native::binary_internal::div_trunc_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(long, long)#1}>, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctor_add<long>, std::array<char*, 3ul> >
5sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_split_k_kernel__5x_cublas
5std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float, false, true, false, false, 8, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float> >
5void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::launch_log_sigmoid_forward_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >
5void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float> >
5void at::native::(anonymous namespace)::CatArrayBatchedCopy_alignedK_contig<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 2, 128, 1, 16>
5void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<4> >
5void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 2, 128, 1, 16, 4>
5sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
5void at::native::(anonymous namespace)::sum_and_scatter<float, long>
5void at::native::(anonymous namespace)::compute_grad_weight<float, long>
5void at::native::vectorized_elementwise_kernel<4, at::native::addcdiv_cuda_kernel, at::detail::Array<char*, 3> >
5void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, at::detail::Array<char*, 3> >
5void at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda, at::detail::Array<char*, 3> >
5void at::native::vectorized_elementwise_kernel<4, at::native::addcmul_cuda_kernel, at::detail::Array<char*, 3> >
5void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float> >, unsigned int, float, 4> >
5volta_sgemm_128x32_nt
5volta_sgemm_128x64_nn
5void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 3> >
5void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>
5sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_warpgroupsize1x1x1_g1_execute_split_k_kernel__5x_cudnn
5sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_warpgroupsize1x1x1_g1_execute_segment_k_on_kernel__5x_cudnn
5sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
5sm90_xmma_dgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x256x64_warpgroupsize2x1x1_g1_strided_execute_kernel__5x_cudnn
5sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
5sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
5void at::native::vectorized_elementwise_kernel<2, at::native::FillFunctor<long>, std::array<char*, 1ul> >
5Memcpy DtoH (Device -> Pinned)
5void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#4}::operator()() const::{lambda(long)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >
5void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<long, long, bool, at::native::(anonymous namespace)::CompareEqFunctor<long> >, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::masked_scale_kernel<bool, float, float>
5void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>
5sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_split_k_kernel__5x_cudnn
5void at::native::vectorized_elementwise_kernel<2, at::native::AUnaryFunctor<long, long, long, at::native::binary_internal::MulFunctor<long> >, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<2, at::native::BUnaryFunctor<long, long, long, at::native::remainder_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(long, long)#1}>, std::array<char*, 2ul> >
5void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}>
5sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
5void at::native::(anonymous namespace)::krn_partial_segment_offset<long>
5void at::native::(anonymous namespace)::compute_num_of_partial_segments<long>
5void at_cuda_detail::cub::detail::scan::DeviceScanKernel<at_cuda_detail::cub::detail::scan::policy_hub<long, long, long, unsigned int, at::cuda::cub::(anonymous namespace)::SumOp<long> >::Policy1000, long const*, long*, at_cuda_detail::cub::ScanTileState<long, true>, at::cuda::cub::(anonymous namespace)::SumOp<long>, at_cuda_detail::cub::detail::InputValue<long, long*>, unsigned int, long, false, long>
5void at::native::(anonymous namespace)::krn_partials_per_segment<long>
5void at_cuda_detail::cub::detail::scan::DeviceCompactInitKernel<at_cuda_detail::cub::ScanTileState<unsigned long long, true>, long*>
5void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortExclusiveSumKernel<at_cuda_detail::cub::detail::radix::policy_hub<long, at::cuda::cub::detail::OpaqueType<8>, unsigned long long>::Policy1000, unsigned long long>
5void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortHistogramKernel<at_cuda_detail::cub::detail::radix::policy_hub<long, at::cuda::cub::detail::OpaqueType<8>, unsigned long long>::Policy1000, (at_cuda_detail::cub::SortOrder)0, long, unsigned long long, at_cuda_detail::cub::detail::identity_decomposer_t>
5void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x4_nt_align2>
)names"
      R"names(5sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
5void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nt_align1>
5sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
5sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
5sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
5void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>
5void at_cuda_detail::cub::detail::scan::DeviceScanInitKernel<at_cuda_detail::cub::ScanTileState<long, true> >
5void at::native::(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d<float, long>
5void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>
5void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>
5void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nt_align2>
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> >
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#4}::operator()() const::{lambda(long)#1}>
5void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>
5void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::plus<float>, float>
5void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(c10::Scalar const&, c10::Scalar const&, c10::Scalar const&, at::Tensor&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(long)#1}>
5sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
5void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_nn_align2>
5void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, false, float, float, float, true, false, false, false>
5void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::(anonymous namespace)::threshold_kernel_impl<float>
5void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<8, at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}, std::array<char*, 3ul> >
5void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >
5sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x64_warpgroupsize1x1x1_g1_execute_segment_k_on_kernel__5x_cudnn
5void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >
5sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_on_kernel__5x_cudnn
5void cudnn::cnn::reduce_wgrad_nchw_helper<float, __nv_bfloat16>
5void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_backward_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}, std::array<char*, 3ul> >
5void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#6}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >
5sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
5void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*>
5void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true, at::native::(anonymous namespace)::ReduceAdd>
5void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, long>
5void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >
5void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma__5x_cudnn::implicit_gemm::wgrad_indexed::Warp_specialized_params<xmma__5x_cudnn::Grid_constant_params> >
5void cudnn::fusion::fmha_reduce_head<true>
5void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>
5void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 3, 128, 1, 16, 8>
5void at::native::vectorized_elementwise_kernel<4, at::native::tanh_backward_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::{lambda(float, float)#1}, std::array<char*, 3ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >
5void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::detail::radix::policy_hub<long, at::cuda::cub::detail::OpaqueType<8>, unsigned long long>::Policy1000, (at_cuda_detail::cub::SortOrder)0, long, at::cuda::cub::detail::OpaqueType<8>, unsigned long long, int, int, at_cuda_detail::cub::detail::identity_decomposer_t>
5void at::native::vectorized_gather_kernel<16, long>
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >
5void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >
5void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >
5void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >
5Memcpy DtoD (Device -> Device)
5void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float, 32u, 1u, 8u, true, true, false>
5at::cuda::philox::unpack_cudnn(at::PhiloxCudaState, long*, long*)
5void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::(anonymous namespace)::threshold_kernel_impl<c10::BFloat16>
5void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() const::{lambda()#9}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >
5void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float, 32u, 32u, 256u, false, true, false>
5void at::native::batch_norm_backward_kernel<c10::BFloat16, float, float, int>
5void at::native::batch_norm_transform_input_kernel<c10::BFloat16, float, float, true, int>
5void at::native::batch_norm_collect_statistics_kernel<at::native::Var, c10::BFloat16, c10::BFloat16, float, int>
5void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul> >
5void cudnn::fusion::convert_dq_to_16bits<true>
5cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_1x4x1_cga1x1x1_kernel0_0
5void cudnn::fusion::compute_dot_do_o_specialized<true, 64>
5cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0
5void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<c10::BFloat16> >
5void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#9}::operator()() const::{lambda(c10::BFloat16)#1}>
5void at::native::unrolled_elementwise_kernel<at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>, 4, TrivialOffsetCalculator<2, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<2>, at::native::memory::StoreWithCast<1> >
5void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>
5void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >
5void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, __nv_bfloat16, float, true, false, (cudnnKernelDataType_t)0>
5void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >
5void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*>
5void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >
5void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::masked_scale_kernel<bool, c10::BFloat16, float>
5void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16, float, unsigned int, 1, 8, bool>
5void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<float, float, false>
5void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>
5void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>
)names"
      R"names(5void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>, 4, TrivialOffsetCalculator<2, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<2>, at::native::memory::StoreWithCast<1> >
5void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true, (cudnnKernelDataType_t)0>
5void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >
5void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >
5void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float, c10::BFloat16>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, c10::BFloat16, 4, 8> >
5void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >
5void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >
5Memset (Device)
5void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >
5void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >
)names";
  return kNames;
}

}  // namespace stepcast::detail
