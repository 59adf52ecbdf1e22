#include "stepcast/operation/framework_ops.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::framework_ops_test {
namespace {

using Kind = CallArgument::Kind;

CallArgument tensor(std::uint32_t index) {
  return {.kind = Kind::tensor, .first_tensor = index, .tensors = 1};
}
CallArgument tensors(std::uint32_t first, std::uint32_t count) {
  return {.kind = Kind::tensors, .first_tensor = first, .tensors = count};
}
CallArgument none() { return {}; }
CallArgument integer(std::int64_t value) { return {.kind = Kind::integer, .integer = value}; }
CallArgument flag(bool value) { return {.kind = Kind::boolean, .integer = value ? 1 : 0}; }
CallArgument real(double value) { return {.kind = Kind::real, .real = value}; }
CallArgument list(std::vector<std::int64_t> values) {
  return {.kind = Kind::integers, .integers = std::move(values)};
}
CallArgument text(std::string value) { return {.kind = Kind::text, .text = std::move(value)}; }

// What a call launches, one description a line; the message of an Error.
std::string launched(std::string_view name, const std::vector<TensorArgument>& inputs,
                     const std::vector<CallArgument>& arguments = {},
                     const std::vector<TensorArgument>& outputs = {}) {
  const auto operations =
      operations_of({.name = name, .inputs = inputs, .outputs = outputs, .arguments = arguments});
  if (!operations.ok()) return operations.error().message();
  std::string out;
  for (const Operation& operation : *operations) out += (out.empty() ? "" : "\n") + describe(operation);
  return out;
}

constexpr DType kBf16 = DType::bf16;
constexpr DType kFp32 = DType::fp32;

TEST(FrameworkOps, MatrixProducts) {
  EXPECT_EQ(launched("aten::mm", {{{8, 16}, kBf16}, {{16, 4}, kBf16}}), "gemm bf16 forward m=8 n=4 k=16");
  // addmm(bias, A, B): a vector is the bias, a matrix is added up.
  EXPECT_EQ(launched("aten::addmm", {{{4}, kBf16}, {{8, 16}, kBf16}, {{16, 4}, kBf16}}),
            "gemm bf16 forward m=8 n=4 k=16 bias");
  EXPECT_EQ(launched("aten::addmm", {{{8, 4}, kBf16}, {{8, 16}, kBf16}, {{16, 4}, kBf16}}),
            "gemm bf16 forward m=8 n=4 k=16 accumulates");
  EXPECT_EQ(launched("aten::bmm", {{{3, 8, 16}, kBf16}, {{3, 16, 4}, kBf16}}),
            "batched_gemm bf16 forward batch=3 m=8 n=4 k=16");
  EXPECT_EQ(launched("aten::baddbmm", {{{3, 8, 4}, kBf16}, {{3, 8, 16}, kBf16}, {{3, 16, 4}, kBf16}},
                     {tensor(0), tensor(1), tensor(2), integer(0), integer(1)}),
            "batched_gemm bf16 forward batch=3 m=8 n=4 k=16");  // beta = 0: nothing is added
  // A linear layer: x [2, 5, 16], weight [out, in].
  EXPECT_EQ(launched("aten::linear", {{{2, 5, 16}, kBf16}, {{4, 16}, kBf16}, {{4}, kBf16}}),
            "gemm bf16 forward m=10 n=4 k=16 bias");
  EXPECT_EQ(launched("linear3", {{{2, 5, 16}, kBf16}, {{4, 16}, kBf16}}), "gemm bf16 forward m=10 n=4 k=16");
  EXPECT_EQ(launched("aten::matmul", {{{2, 3, 8, 16}, kBf16}, {{2, 3, 16, 4}, kBf16}}),
            "batched_gemm bf16 forward batch=6 m=8 n=4 k=16");
  EXPECT_EQ(launched("aten::matmul", {{{2, 3, 16}, kBf16}, {{16, 4}, kBf16}}),
            "gemm bf16 forward m=6 n=4 k=16");
  EXPECT_EQ(launched("aten::mv", {{{8, 16}, kBf16}, {{16}, kBf16}}), "gemm bf16 forward m=8 n=1 k=16");
  // Grouped by experts: 30 rows in 3 groups.
  EXPECT_EQ(launched("aten::_grouped_mm", {{{30, 16}, kBf16}, {{3, 16, 4}, kBf16}}),
            "batched_gemm bf16 forward batch=3 m=10 n=4 k=16");
  EXPECT_EQ(
      launched("aten::_scaled_mm", {{{8, 16}, DType::fp8}, {{16, 4}, DType::fp8}}, {}, {{{8, 4}, kBf16}}),
      "gemm fp8 forward m=8 n=4 k=16 output=bf16");
}

TEST(FrameworkOps, Tf32OnlyWhereTheCallAllowsIt) {
  const std::vector<TensorArgument> inputs{{{8, 16}, kFp32}, {{16, 4}, kFp32}};
  EXPECT_EQ(operations_of({.name = "aten::mm", .inputs = inputs})->front().dtype, DType::fp32);
  EXPECT_EQ(operations_of({.name = "aten::mm", .inputs = inputs, .tf32_allowed = true})->front().dtype,
            DType::tf32);
  const std::vector<TensorArgument> halves{{{8, 16}, DType::fp16}, {{16, 4}, DType::fp16}};
  EXPECT_EQ(operations_of({.name = "aten::mm", .inputs = halves, .tf32_allowed = true})->front().dtype,
            DType::fp16);
}

TEST(FrameworkOps, Einsum) {
  // i, b kept; j only left, k only right, l summed.
  EXPECT_EQ(launched("aten::einsum", {{{2, 3, 5}, kFp32}, {{2, 5, 7}, kFp32}},
                     {text("bjl, blk -> bjk"), tensors(0, 2)}),
            "batched_gemm fp32 forward batch=2 m=3 n=7 k=5");
  EXPECT_THAT(launched("aten::einsum", {{{2, 3, 5}, kFp32}, {{2, 5, 7}, kFp32}},
                       {text("...l,blk->..k"), tensors(0, 2)}),
              ::testing::HasSubstr("expected an equation like"));
}

TEST(FrameworkOps, BackwardOfALinearLayerIsThreeKernels) {
  // dC [8, 4], A [8, 16], B [16, 4].
  EXPECT_EQ(launched("AddmmBackward0", {{{8, 4}, kBf16}, {{8, 16}, kBf16}, {{16, 4}, kBf16}}),
            "gemm bf16 input_gradient m=8 n=4 k=16\n"
            "gemm bf16 weight_gradient m=8 n=4 k=16\n"
            "reduction bf16 forward rows=4 cols=8");
  EXPECT_EQ(launched("autograd::engine::evaluate_function: BmmBackward0",
                     {{{3, 8, 4}, kBf16}, {{3, 8, 16}, kBf16}, {{3, 16, 4}, kBf16}}),
            "batched_gemm bf16 input_gradient batch=3 m=8 n=4 k=16\n"
            "batched_gemm bf16 weight_gradient batch=3 m=8 n=4 k=16");
  // As traces hold it, with the gradient alone, it does not say its inner extent.
  EXPECT_THAT(launched("AddmmBackward0", {{{8, 4}, kBf16}}), ::testing::HasSubstr("both operands"));
}

TEST(FrameworkOps, Convolutions) {
  const std::vector<TensorArgument> image{{{32, 3, 224, 224}, kFp32}, {{64, 3, 7, 7}, kFp32}};
  const std::string expected =
      "convolution fp32 forward batch=32 channels=3->64 image=224x224 kernel=7x7 stride=2 padding=3 "
      "dilation=1 "
      "groups=1";
  // conv2d(x, w, bias, stride, padding, dilation, groups)
  EXPECT_EQ(launched("aten::conv2d", image,
                     {tensor(0), tensor(1), none(), list({2, 2}), list({3, 3}), list({1, 1}), integer(1)}),
            expected);
  // cuDNN's operator has padding before stride.
  EXPECT_EQ(launched("aten::cudnn_convolution", image,
                     {tensor(0), tensor(1), list({3, 3}), list({2, 2}), list({1, 1}), integer(1), flag(false),
                      flag(false), flag(true)}),
            expected);
  EXPECT_EQ(launched("aten::convolution", image,
                     {tensor(0), tensor(1), none(), list({2, 2}), list({3, 3}), list({1, 1}), flag(false),
                      list({0, 0}), integer(1)}),
            expected);
  // One dimension, one group per channel.
  EXPECT_EQ(
      launched("aten::conv1d", {{{4, 8, 100}, kFp32}, {{8, 1, 3}, kFp32}},
               {tensor(0), tensor(1), none(), list({1}), list({1}), list({1}), integer(8)}),
      "convolution fp32 forward batch=4 channels=8->8 image=1x100 kernel=1x3 stride=1 padding=1 dilation=1 "
      "groups=8");
}

TEST(FrameworkOps, ConvolutionsInOtherArgumentOrders) {
  const std::vector<TensorArgument> image{{{4, 8, 28, 28}, kFp32}, {{16, 8, 3, 3}, kFp32}};
  const std::string expected =
      "convolution fp32 forward batch=4 channels=8->16 image=28x28 kernel=3x3 stride=2 padding=1 dilation=1 "
      "groups=1";
  EXPECT_EQ(launched("aten::miopen_convolution", image,
                     {tensor(0), tensor(1), none(), list({1, 1}), list({2, 2}), list({1, 1}), integer(1)}),
            expected);
  EXPECT_EQ(launched("aten::cudnn_convolution_relu", image,
                     {tensor(0), tensor(1), none(), list({2, 2}), list({1, 1}), list({1, 1}), integer(1)}),
            expected);
  EXPECT_EQ(
      launched("aten::conv2d", image,
               {tensor(0), tensor(1), none(), list({1, 1}), text("same"), list({1, 1}), integer(1)}),
      "convolution fp32 forward batch=4 channels=8->16 image=28x28 kernel=3x3 stride=1 padding=1 dilation=1 "
      "groups=1");
  EXPECT_EQ(
      launched("aten::_conv_depthwise2d", {{{4, 8, 28, 28}, kFp32}, {{8, 1, 3, 3}, kFp32}},
               {tensor(0), tensor(1), list({3, 3}), none(), list({1, 1}), list({1, 1}), list({1, 1})}),
      "convolution fp32 forward batch=4 channels=8->8 image=28x28 kernel=3x3 stride=1 padding=1 dilation=1 "
      "groups=8");
  EXPECT_EQ(
      launched("aten::cudnn_convolution_backward", {image[0], {{4, 16, 14, 14}, kFp32}, image[1]},
               {tensor(0), tensor(1), tensor(2), list({1, 1}), list({2, 2}), list({1, 1}), integer(1)}),
      "convolution fp32 backward batch=4 channels=8->16 image=28x28 kernel=3x3 stride=2 padding=1 dilation=1 "
      "groups=1");
  // Transposed: [4, 16, 14, 14] to [4, 8, 28, 28] is the input gradient of the convolution back.
  EXPECT_EQ(
      launched("aten::convolution", {{{4, 16, 14, 14}, kFp32}, image[1]},
               {tensor(0), tensor(1), none(), list({2, 2}), list({1, 1}), list({1, 1}), flag(true),
                list({1, 1}), integer(1)},
               {{{4, 8, 28, 28}, kFp32}}),
      "convolution fp32 input_gradient batch=4 channels=8->16 image=28x28 kernel=3x3 stride=2 padding=1 "
      "dilation=1 groups=1");
}

// Old profilers left the values of arguments out: extents before and behind tell the stride.
// (224 + 2 * 3 - 7) / 2 + 1 = 112; (56 - 1) / 2 + 1 = 28.
TEST(FrameworkOps, ConvolutionsWithoutValues) {
  EXPECT_THAT(launched("aten::cudnn_convolution", {{{32, 3, 224, 224}, kFp32}, {{64, 3, 7, 7}, kFp32}},
                       {tensor(0), tensor(1)}, {{{32, 64, 112, 112}, kFp32}}),
              ::testing::HasSubstr("kernel=7x7 stride=2 padding=3"));
  EXPECT_THAT(launched("aten::cudnn_convolution_backward",
                       {{{32, 256, 56, 56}, kFp32}, {{32, 512, 28, 28}, kFp32}, {{512, 256, 1, 1}, kFp32}},
                       {tensor(0), tensor(1), tensor(2)}),
              ::testing::HasSubstr("kernel=1x1 stride=2 padding=0"));
  EXPECT_THAT(launched("aten::cudnn_convolution", {{{32, 3, 224, 224}, kFp32}, {{64, 3, 7, 7}, kFp32}},
                       {tensor(0), tensor(1)}),
              ::testing::HasSubstr("stride=1 padding=0"))
      << "nothing tells";
}

TEST(FrameworkOps, BackwardOfConvolutions) {
  const std::vector<TensorArgument> call{
      {{32, 64, 112, 112}, kFp32}, {{32, 3, 224, 224}, kFp32}, {{64, 3, 7, 7}, kFp32}};
  const auto with_mask = [&](std::vector<std::int64_t> mask) {
    return launched("aten::convolution_backward", call,
                    {tensor(0), tensor(1), tensor(2), list({0}), list({2, 2}), list({3, 3}), list({1, 1}),
                     flag(false), list({0, 0}), integer(1), list(std::move(mask))});
  };
  EXPECT_THAT(with_mask({1, 1, 0}),
              ::testing::StartsWith("convolution fp32 backward batch=32 channels=3->64"));
  EXPECT_THAT(with_mask({1, 1, 0}), ::testing::HasSubstr("stride=2 padding=3"));
  // The first layer of a network has no gradient of its input.
  EXPECT_THAT(with_mask({0, 1, 0}), ::testing::StartsWith("convolution fp32 weight_gradient"));
  EXPECT_THAT(with_mask({1, 0, 0}), ::testing::StartsWith("convolution fp32 input_gradient"));
}

TEST(FrameworkOps, Attention) {
  const std::vector<TensorArgument> heads_first{
      {{2, 32, 512, 128}, kBf16}, {{2, 8, 512, 128}, kBf16}, {{2, 8, 512, 128}, kBf16}};
  const std::string shape = "batch=2 query_length=512 key_length=512 heads=32 key_value_heads=8 head_dim=128";
  EXPECT_EQ(launched("aten::_scaled_dot_product_flash_attention", heads_first,
                     {tensor(0), tensor(1), tensor(2), real(0), flag(true), flag(false)}),
            "attention bf16 forward " + shape + " causal flash2");
  EXPECT_EQ(launched("aten::_scaled_dot_product_efficient_attention", heads_first,
                     {tensor(0), tensor(1), tensor(2), none(), flag(true), real(0), flag(false)}),
            "attention bf16 forward " + shape + " efficient");
  EXPECT_EQ(launched("aten::scaled_dot_product_attention", heads_first,
                     {tensor(0), tensor(1), tensor(2), none(), real(0), flag(true)}),
            "attention bf16 forward " + shape + " causal");
  const std::vector<TensorArgument> tokens_first{
      {{2, 512, 32, 128}, kBf16}, {{2, 512, 8, 128}, kBf16}, {{2, 512, 8, 128}, kBf16}};
  EXPECT_EQ(launched("flash_atten", tokens_first), "attention bf16 forward " + shape + " causal flash2");
  // Backward: the gradient comes first.
  std::vector<TensorArgument> backward{{{2, 32, 512, 128}, kBf16}};
  backward.insert(backward.end(), heads_first.begin(), heads_first.end());
  EXPECT_EQ(launched("aten::_scaled_dot_product_cudnn_attention_backward", backward),
            "attention bf16 backward " + shape + " causal flash3");
  // Packed sequences: 1024 tokens of 2 sequences.
  EXPECT_EQ(launched("flash_attn::_flash_attn_varlen_forward", {{{1024, 32, 128}, kBf16},
                                                                {{1024, 8, 128}, kBf16},
                                                                {{1024, 8, 128}, kBf16},
                                                                {{3}, DType::int32},
                                                                {{3}, DType::int32}}),
            "attention bf16 forward " + shape + " causal flash2");
}

TEST(FrameworkOps, Norms) {
  const TensorArgument x{{4, 128, 1024}, kBf16};
  EXPECT_EQ(launched("aten::native_layer_norm", {x, {{1024}, kBf16}, {{1024}, kBf16}},
                     {tensor(0), list({1024}), tensor(1), tensor(2), real(1e-5)}),
            "layer_norm bf16 forward rows=512 cols=1024");
  EXPECT_EQ(launched("aten::layer_norm", {x}, {tensor(0), list({128, 1024})}),
            "layer_norm bf16 forward rows=4 cols=131072");
  EXPECT_EQ(launched("aten::native_layer_norm_backward", {x, x}),
            "layer_norm bf16 backward rows=512 cols=1024");
  EXPECT_EQ(launched("aten::rms_norm", {x}), "rms_norm bf16 forward rows=512 cols=1024");
  EXPECT_EQ(launched("RMSlayernorm", {x}), "rms_norm bf16 forward rows=512 cols=1024");
  EXPECT_EQ(launched("aten::cudnn_batch_norm", {{{32, 64, 7, 7}, kFp32}}),
            "batch_norm fp32 forward rows=64 cols=1568");
  EXPECT_EQ(launched("CudnnBatchNormBackward0", {{{32, 64, 7, 7}, kFp32}}),
            "batch_norm fp32 backward rows=64 cols=1568");
  EXPECT_EQ(launched("aten::group_norm", {{{2, 64, 8, 8}, kFp32}}, {tensor(0), integer(32)}),
            "group_norm fp32 forward rows=64 cols=128");
}

TEST(FrameworkOps, SoftmaxAndLosses) {
  EXPECT_EQ(launched("aten::_softmax", {{{2, 8, 128, 64}, kFp32}}, {tensor(0), integer(-1), flag(false)}),
            "softmax fp32 forward rows=2048 cols=64");
  EXPECT_EQ(launched("aten::_softmax", {{{2, 8, 128, 64}, kFp32}}, {tensor(0), integer(1), flag(false)}),
            "softmax fp32 forward rows=16384 cols=8");
  EXPECT_EQ(launched("aten::_log_softmax_backward_data", {{{32, 1000}, kFp32}, {{32, 1000}, kFp32}},
                     {tensor(0), tensor(1), integer(1), integer(6)}),
            "softmax fp32 backward log rows=32 cols=1000");
  EXPECT_EQ(launched("ScaledUpperTriangMaskedSoftmax", {{{64, 512, 512}, DType::fp16}}),
            "causal_softmax fp16 forward rows=32768 cols=512");
  EXPECT_EQ(launched("aten::cross_entropy_loss", {{{32, 1000}, kFp32}, {{32}, DType::int64}}),
            "cross_entropy fp32 forward rows=32 classes=1000");
  EXPECT_EQ(launched("LigerCrossEntropyFunction", {{{32, 1000}, kFp32}, {{32}, DType::int64}}),
            "cross_entropy fp32 forward rows=32 classes=1000 fused");
  EXPECT_EQ(launched("aten::nll_loss_backward", {{{}, kFp32}, {{32, 1000}, kFp32}, {{32}, DType::int64}}),
            "fill fp32 forward elements=32000");
}

TEST(FrameworkOps, ElementwiseCountsWhatIsReadAndWritten) {
  const TensorArgument x{{64, 256}, kBf16};
  EXPECT_EQ(launched("aten::add", {x, x}),
            "elementwise bf16 forward add elements=16384 reads=2 writes=1 flops_per_element=1 inner=256");
  EXPECT_EQ(
      launched("aten::add_", {x}, {tensor(0), real(1)}),
      "elementwise bf16 forward add_scalar elements=16384 reads=1 writes=1 flops_per_element=1 inner=256");
  // A vector is read once: 256 of 16384 elements.
  EXPECT_EQ(launched("aten::mul", {x, {{256}, kBf16}}),
            "elementwise bf16 forward multiply elements=16384 reads=1.01562 writes=1 flops_per_element=1 "
            "inner=256");
  // The result of a comparison takes one byte where the operands take two.
  EXPECT_EQ(
      launched("aten::eq", {x, x}, {}, {{{64, 256}, DType::boolean}}),
      "elementwise bf16 forward elementwise elements=16384 reads=2 writes=0.5 flops_per_element=1 inner=256");
  EXPECT_EQ(launched("aten::gelu_backward", {x, x}),
            "gelu bf16 backward gelu elements=16384 reads=1 writes=1 flops_per_element=5 inner=256");
  EXPECT_EQ(
      launched("MulBackward0", {x}),
      "elementwise bf16 backward multiply elements=16384 reads=2 writes=1 flops_per_element=1 inner=256");
  // The mask that dropout writes belongs to the function.
  EXPECT_EQ(launched("aten::native_dropout", {x}, {}, {x, {{64, 256}, DType::boolean}}),
            "dropout bf16 forward dropout elements=16384 reads=1 writes=1 flops_per_element=2 inner=256");
  EXPECT_EQ(
      launched("fillmask", {x, {{64, 256}, DType::boolean}}),
      "masked_fill bf16 forward masked_fill elements=16384 reads=1 writes=1 flops_per_element=0 inner=256");
}

TEST(FrameworkOps, OneTensorTwiceIsReadOnce) {
  const TensorArgument x{.shape = {64}, .dtype = kFp32, .memory = 7},
      y{.shape = {64}, .dtype = kFp32, .memory = 8};
  EXPECT_THAT(launched("aten::addcmul_", {y, x, x}), ::testing::HasSubstr("reads=2 "));
  EXPECT_THAT(launched("aten::addcmul_", {y, x, {{64}, kFp32}}), ::testing::HasSubstr("reads=3 "));
  // mul(x, 2, out=y) writes y, mul_(y, x) reads it as well.
  EXPECT_THAT(launched("aten::mul", {x, y}, {}, {y}), ::testing::HasSubstr("reads=1 writes=1"));
  EXPECT_THAT(launched("aten::mul_", {y, x}, {}, {y}), ::testing::HasSubstr("reads=2 writes=1"));
}

TEST(FrameworkOps, ListsOfTensors) {
  const std::vector<TensorArgument> lists{{{100}, kFp32}, {{28}, kFp32}, {{100}, kFp32}, {{28}, kFp32}};
  EXPECT_EQ(launched("aten::_foreach_add_", lists, {tensors(0, 2), tensors(2, 2), integer(1)}),
            "elementwise fp32 forward add elements=128 reads=2 writes=1 flops_per_element=1");
  EXPECT_EQ(launched("aten::_foreach_mul_", {lists[0], lists[1]}, {tensors(0, 2), real(0.9)}),
            "elementwise fp32 forward multiply_scalar elements=128 reads=1 writes=1 flops_per_element=1");
  EXPECT_EQ(launched("aten::_foreach_zero_", {lists[0], lists[1]}, {tensors(0, 2)}),
            "fill fp32 forward elements=128");
  EXPECT_EQ(launched("aten::_foreach_norm", {lists[0], lists[1]}, {tensors(0, 2)}),
            "reduction fp32 forward rows=2 cols=64");
  // Adam: weight, gradient and two moments of 128 elements are read, all but the gradients written; two
  // steps.
  std::vector<TensorArgument> adam = lists;
  adam.insert(adam.end(), lists.begin(), lists.end());
  EXPECT_EQ(launched("aten::_fused_adam_", adam,
                     {tensors(0, 2), tensors(2, 2), tensors(4, 2), tensors(6, 2), tensors(8, 0)}),
            "optimizer fp32 forward adam fused parameters=128 tensors=2 bytes_per_parameter=16+12");
}

TEST(FrameworkOps, Reductions) {
  const TensorArgument x{{4, 8, 16}, kFp32};
  EXPECT_EQ(launched("aten::sum", {x}, {tensor(0), list({0, 1}), flag(false)}),
            "reduction fp32 forward rows=16 cols=32");
  EXPECT_EQ(launched("aten::mean", {x}, {tensor(0), list({-1}), flag(true)}),
            "reduction fp32 forward rows=32 cols=16");
  EXPECT_EQ(launched("aten::sum", {x}), "reduction fp32 forward rows=1 cols=512");
  EXPECT_EQ(launched("aten::sum", {x}, {}, {{{4}, kFp32}}), "reduction fp32 forward rows=4 cols=128");
  EXPECT_THAT(launched("aten::max", {x, x}), ::testing::StartsWith("elementwise fp32 forward"));
}

TEST(FrameworkOps, CopiesCastsAndTransfers) {
  const TensorArgument gpu{{8, 4}, kFp32}, cpu{{8, 4}, kFp32, false}, half{{8, 4}, kBf16};
  EXPECT_EQ(launched("aten::copy_", {gpu, gpu}), "copy fp32 forward elements=32 inner=4");
  EXPECT_EQ(launched("aten::copy_", {gpu, half}),
            "cast bf16 forward cast elements=32 reads=1 writes=2 flops_per_element=0 inner=4");
  EXPECT_EQ(launched("aten::copy_", {gpu, cpu}, {tensor(0), tensor(1), flag(true)}),
            "memcpy_h2d fp32 forward bytes=128");
  EXPECT_EQ(launched("aten::copy_", {cpu, gpu}, {tensor(0), tensor(1), flag(false)}),
            "memcpy_d2h fp32 forward bytes=128 pageable");
  EXPECT_EQ(launched("aten::copy_", {cpu, cpu}), "");  // no GPU work
  EXPECT_EQ(launched("aten::clone", {gpu}, {tensor(0), integer(0)}),
            "transpose fp32 forward elements=32 inner=4");
  EXPECT_EQ(launched("aten::clone", {gpu}, {tensor(0), none()}), "copy fp32 forward elements=32 inner=4");
  EXPECT_EQ(launched("aten::_to_copy", {half}, {}, {gpu}),
            "cast bf16 forward cast elements=32 reads=1 writes=2 flops_per_element=0 inner=4");
  EXPECT_EQ(launched("aten::cat", {gpu, gpu}, {tensors(0, 2), integer(0)}, {{{16, 4}, kFp32}}),
            "concatenate fp32 forward elements=64 inner=4");
  EXPECT_EQ(launched("aten::_local_scalar_dense", {{{}, kFp32}}), "memcpy_d2h fp32 forward bytes=4 pageable");
  EXPECT_EQ(launched("aten::zero_", {gpu}), "fill fp32 forward elements=32 inner=4");
  EXPECT_EQ(launched("memset", {gpu}), "memset fp32 forward bytes=128");
}

TEST(FrameworkOps, GatherAndScatter) {
  // 10 indices of rows of 64.
  EXPECT_EQ(launched("aten::index_select", {{{1000, 64}, kFp32}, {{10}, DType::int64}},
                     {tensor(0), integer(0), tensor(1)}, {{{10, 64}, kFp32}}),
            "gather fp32 forward elements=640 inner=64");
  EXPECT_EQ(launched("aten::_index_put_impl_", {{{1000, 64}, kFp32}, {{10}, DType::int64}, {{10, 64}, kFp32}},
                     {tensor(0), tensors(1, 1), tensor(2), flag(true), flag(false)}),
            "scatter fp32 forward elements=640 inner=64");
}

TEST(FrameworkOps, GroupedProductsOfAWeightGradient) {
  EXPECT_EQ(launched("aten::_grouped_mm", {{{16, 30}, kBf16}, {{30, 4}, kBf16}, {{3}, DType::int32}}),
            "batched_gemm bf16 forward batch=3 m=16 n=4 k=10");
}

TEST(FrameworkOps, ScatterOfANumber) {
  // scatter(x, dim, index, 1.0): 40 elements of x's type are written.
  EXPECT_EQ(launched("aten::scatter_", {{{10, 100}, kBf16}, {{10, 4}, DType::int64}},
                     {tensor(0), integer(1), tensor(1), real(1)}, {{{10, 100}, kBf16}}),
            "scatter bf16 forward elements=40 inner=1");
}

TEST(FrameworkOps, EmbeddingTables) {
  EXPECT_EQ(launched("aten::embedding", {{{50257, 768}, kBf16}, {{4, 128}, DType::int64}}),
            "embedding_lookup bf16 forward tables=1 rows=50257 dim=768 bags=512 pooling=1");
  EXPECT_EQ(launched("aten::embedding_dense_backward", {{{4, 128, 768}, kBf16}, {{4, 128}, DType::int64}},
                     {tensor(0), tensor(1), integer(50257), integer(-1), flag(false)}),
            "embedding_lookup bf16 backward tables=1 rows=50257 dim=768 bags=512 pooling=1");
  // 40 indices in 8 bags.
  EXPECT_EQ(
      launched("aten::_embedding_bag", {{{1000, 64}, kFp32}, {{40}, DType::int64}, {{8}, DType::int64}}),
      "embedding_lookup fp32 forward tables=1 rows=1000 dim=64 bags=8 pooling=5");
  EXPECT_EQ(launched("aten::_embedding_bag_dense_backward",
                     {{{8, 64}, kFp32},
                      {{40}, DType::int64},
                      {{40}, DType::int64},
                      {{8}, DType::int64},
                      {{8}, DType::int64}},
                     {tensor(0), tensor(1), tensor(2), tensor(3), tensor(4), integer(1000)}),
            "embedding_lookup fp32 backward tables=1 rows=1000 dim=64 bags=8 pooling=5");
}

TEST(FrameworkOps, ManyTablesInOneKernel) {
  // Two tables of 1000 rows of 16: weights 32000; a batch of 4: 8 bags, 24 indices.
  const std::vector<TensorArgument> call{{{0}, kFp32},         {{32000}, kFp32},    {{2}, DType::int32},
                                         {{2}, DType::int64},  {{3}, DType::int32}, {{3}, DType::int64},
                                         {{24}, DType::int64}, {{9}, DType::int64}};
  const std::vector<CallArgument> arguments{tensor(0),   tensor(1),   tensor(2),   tensor(3),
                                            tensor(4),   integer(32), integer(16), tensor(5),
                                            integer(11), tensor(6),   tensor(7),   integer(0)};
  const std::string shape = "tables=2 rows=1000 dim=16 bags=4 pooling=3";
  EXPECT_EQ(launched("fbgemm::split_embedding_codegen_lookup_adagrad_function", call, arguments),
            "embedding_lookup fp32 forward " + shape);
  EXPECT_EQ(launched("torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>", call, arguments),
            "embedding_lookup fp32 backward " + shape + " fused_update");
  EXPECT_EQ(launched("torch::autograd::CppNode<SplitLookupFunction_Dense_Op>", call, arguments),
            "embedding_lookup fp32 backward " + shape);
  EXPECT_THAT(launched("torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>", {{{4, 32}, kFp32}}),
              ::testing::HasSubstr("needs D_offsets"));
}

TEST(FrameworkOps, SparseProducts) {
  EXPECT_THAT(launched("aten::_sparse_mm", {{{100, 50}, kFp32}, {{50, 8}, kFp32}}),
              ::testing::HasSubstr("nonzeros"));
  EXPECT_EQ(launched("aten::_sparse_mm", {{{100, 50}, kFp32}, {{50, 8}, kFp32}},
                     {tensor(0), tensor(1), integer(700), real(2.5)}),
            "sparse fp32 forward rows=100 inner=50 cols=8 nonzeros=700 reuse=2.5");
  EXPECT_EQ(launched("torch_sparse::spmm_sum",
                     {{{101}, DType::int64}, {{700}, DType::int64}, {{700}, kFp32}, {{50, 8}, kFp32}}),
            "sparse fp32 forward rows=100 inner=50 cols=8 nonzeros=700");
}

TEST(FrameworkOps, FusedKernelsOfInductor) {
  FusedKernelName name;
  ASSERT_TRUE(parse_fused_kernel_name("triton_per_fused__to_copy_add_native_layer_norm_3", name));
  EXPECT_EQ(name.kind, FusedKernelName::Kind::persistent_reduction);
  EXPECT_EQ(name.parts, (std::vector<std::string_view>{"_to_copy", "add", "native_layer_norm"}));
  EXPECT_EQ(name.unknown_parts, 0U);
  ASSERT_TRUE(parse_fused_kernel_name("triton_red_fused_mul_frobnicate__softmax_12", name));
  EXPECT_EQ(name.parts, (std::vector<std::string_view>{"mul", "frobnicate", "_softmax"}));
  EXPECT_EQ(name.unknown_parts, 1U);
  ASSERT_TRUE(parse_fused_kernel_name("triton_poi_fused_0", name));
  EXPECT_TRUE(name.parts.empty());
  EXPECT_FALSE(parse_fused_kernel_name("aten::add", name));

  // Two inputs, one output, add and gelu (5 + 1 FLOPs).
  const TensorArgument x{{64, 256}, kBf16};
  EXPECT_EQ(
      launched("triton_poi_fused_add_gelu_3", {x, x, x}),
      "elementwise bf16 forward elementwise elements=16384 reads=2 writes=1 flops_per_element=6 inner=256");
  EXPECT_EQ(launched("triton_per_fused_native_layer_norm_0", {x, {{256}, kBf16}, x}),
            "fused bf16 forward normalization flops=16384 bytes=33280+32768");
  EXPECT_EQ(launched("triton_tem_fused_mm_2", {{{8, 16}, kBf16}, {{16, 4}, kBf16}, {{8, 4}, kBf16}}),
            "gemm bf16 forward m=8 n=4 k=16");
}

TEST(FrameworkOps, ViewsAndMarksLaunchNothing) {
  for (const char* name : {"aten::view", "aten::t", "aten::transpose", "aten::as_strided", "aten::expand",
                           "aten::empty", "aten::detach_", "TBackward0", "ProfilerStep#12", "## forward ##",
                           "Optimizer.step#SGD.step", "c10d::allreduce_", "nccl:all_to_all"}) {
    EXPECT_TRUE(is_known(name)) << name;
    EXPECT_EQ(launched(name, {{{8, 4}, kFp32}}), "") << name;
  }
}

TEST(FrameworkOps, UnknownOperatorsAreErrorsAndNotNothing) {
  for (const char* name : {"mylib::fused_thing", "", "aten::", "Backward0x", "\n"}) {
    EXPECT_FALSE(is_known(name)) << name;
    const auto operations = operations_of({.name = name});
    ASSERT_FALSE(operations.ok()) << name;
    EXPECT_THAT(operations.error().message(), ::testing::HasSubstr("is not known"));
    EXPECT_EQ(operations.error().message().find('\n'), std::string::npos);
  }
  // Nodes that autograd generates are known to work through operators only.
  EXPECT_EQ(role_of("FrobnicateBackward3"), OpRole::forwarding);
  EXPECT_THAT(launched("FrobnicateBackward3", {{{8}, kFp32}}),
              ::testing::HasSubstr("the operators it calls"));
}

TEST(FrameworkOps, ShapesThatCannotBeAreErrors) {
  EXPECT_THAT(launched("aten::mm", {{{8, 16}, kFp32}, {{17, 4}, kFp32}}),
              ::testing::HasSubstr("16 and 17, expected the same"));
  EXPECT_THAT(launched("aten::mm", {{{8, -16}, kFp32}, {{17, 4}, kFp32}}),
              ::testing::HasSubstr("extent -16"));
  EXPECT_THAT(launched("aten::mm", {{{8, 16}, kFp32}}), ::testing::HasSubstr("no tensor as argument 1"));
  EXPECT_THAT(launched("aten::mm", {{{8, 16}, DType::unknown}, {{16, 4}, DType::unknown}}),
              ::testing::HasSubstr("element type"));
  EXPECT_THAT(launched("aten::conv2d", {{{1, 3, 4, 4}, kFp32}, {{8, 3, 9, 9}, kFp32}}),
              ::testing::HasSubstr("does not fit"));
  EXPECT_EQ(launched("aten::add", {{{0, 4}, kFp32}, {{0, 4}, kFp32}}), "");  // empty: no kernel
}

// The operators that published predictors of training time model.
TEST(FrameworkOps, KnowsTheOperatorsOfTheField) {
  for (const char* name :
       {"aten::linear", "aten::addmm", "AddmmBackward", "AddmmBackward0", "aten::matmul", "aten::bmm",
        "BmmBackward", "aten::einsum", "aten::conv2d", "aten::conv1d", "CudnnConvolutionBackward",
        "ConvolutionBackward", "ConvolutionBackward0", "LookupFunction", "LookupFunctionBackward",
        "fbgemm::split_embedding_codegen_lookup_sgd_function", "CppNode<SplitLookupFunction_sgd_Op>",
        "aten::batch_norm", "CudnnBatchNormBackward", "aten::layer_norm", "NativeLayerNormBackward",
        "aten::index", "IndexBackward", "nccl:all_to_all", "nccl:all_reduce", "aten::cat", "SplitBackward",
        "aten::to", "aten::t", "aten::dropout", "DropoutBackward", "TBackward", "All2All_ReqBackward",
        "torch::autograd::AccumulateGrad", "aten::relu", "ReluBackward", "aten::sigmoid", "SigmoidBackward",
        "aten::binary_cross_entropy", "BinaryCrossEntropyBackward", "aten::mse_loss", "MseLossBackward",
        "aten::gelu", "GeluBackward", "aten::softmax", "SoftmaxBackward", "aten::tanh", "TanhBackward",
        "aten::pow", "PowBackward", "aten::add", "aten::add_", "aten::sub", "aten::mul", "aten::div",
        "aten::__and__", "AddBackward", "MulBackward", "DivBackward", "aten::sum", "aten::index_select",
        "IndexSelectBackward", "aten::contiguous", "aten::copy_", "aten::ones_like", "aten::zero_",
        "ViewBackward", "UnsqueezeBackward", "aten::max_pool2d", "aten::avg_pool2d", "MmBackward",
        "aten::relu_", "aten::mul_", "aten::mm", "aten::embedding", "aten::embedding_bag", "aten::where",
        "aten::masked_fill", "aten::nll_loss", "aten::log_softmax", "Optimizer.step#SGD.step",
        "Optimizer.zero_grad#SGD.zero_grad", "torch.distributed.ddp.reducer::copy_bucket_to_grad",
        "AvgPool2DBackward",
        // operator-level measurements of transformers
        "embedding", "layernorm", "RMSlayernorm", "res_add", "linear1", "linear2", "linear3", "linear4",
        "linear_final", "gelu", "RoPE", "flash_atten", "baddbmm", "bmm", "fillmask", "softmax",
        "ScaledUpperTriangMaskedSoftmax", "parallel_cross_entropy_128", "firstStage_optimizer",
        "middleStage_optimizer", "lastStage_optimizer", "moe"})
    EXPECT_TRUE(is_known(name)) << name;
}

TEST(FrameworkOps, TheTableHasEveryNameOnceAndFamiliesThatExist) {
  const std::set<std::string_view> families{"",
                                            "gemm",
                                            "batched_gemm",
                                            "attention",
                                            "convolution",
                                            "embedding_lookup",
                                            "layer_norm",
                                            "rms_norm",
                                            "batch_norm",
                                            "group_norm",
                                            "softmax",
                                            "causal_softmax",
                                            "cross_entropy",
                                            "elementwise",
                                            "cast",
                                            "masked_fill",
                                            "relu",
                                            "gelu",
                                            "tanh",
                                            "sigmoid",
                                            "silu",
                                            "gated_silu",
                                            "squared_relu",
                                            "exponential",
                                            "dropout",
                                            "rotary",
                                            "residual_add",
                                            "copy",
                                            "transpose",
                                            "concatenate",
                                            "split",
                                            "gather",
                                            "scatter",
                                            "fill",
                                            "reduction",
                                            "optimizer",
                                            "memcpy_h2d",
                                            "memcpy_d2h",
                                            "memcpy_d2d",
                                            "memset",
                                            "sparse",
                                            "fused"};
  std::set<std::string_view> names;
  for (const FrameworkOp& op : framework_ops()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_TRUE(families.contains(op.family)) << op.name << " " << op.family;
    EXPECT_TRUE(!op.name.ends_with('_') || op.name.ends_with("__"))
        << op.name;  // in-place spellings are found by themselves
    EXPECT_EQ(op.name.find('*'), op.name.ends_with('*') ? op.name.size() - 1 : std::string_view::npos)
        << op.name;
    EXPECT_TRUE(op.role != OpRole::kernel || !op.family.empty()) << op.name;
  }
}

// Any call of any operator gives operations that can be, or an error.
TEST(FrameworkOps, EveryOperatorBearsAnyTensors) {
  const std::vector<TensorArgument> shapes[] = {
      {},
      {{{}, kFp32}},
      {{{0}, kFp32}, {{0, 3}, kFp32}},
      {{{4}, kFp32}, {{4}, DType::int64}, {{4}, kFp32}},
      {{{4, 6}, kFp32}, {{6, 8}, kFp32}, {{8}, kFp32}},
      {{{2, 4, 6}, kBf16}, {{2, 6, 8}, kBf16}, {{2, 4, 8}, kBf16}, {{3}, DType::int32}},
      {{{2, 4, 6, 8}, kBf16}, {{2, 4, 6, 8}, kBf16}, {{2, 4, 6, 8}, kBf16}, {{2, 4, 6, 8}, kBf16}},
      {{{1LL << 40, 1LL << 40, 1LL << 40}, kBf16}, {{1LL << 40, 1LL << 40}, kBf16}, {{1LL << 47}, kFp32}},
  };
  std::vector<CallArgument> odd;
  for (std::uint32_t i = 0; i < 16; ++i) {
    odd.push_back(i % 3 == 0 ? tensor(i / 3) : i % 3 == 1 ? integer(-1) : list({}));
  }
  for (const FrameworkOp& op : framework_ops()) {
    for (const std::vector<TensorArgument>& inputs : shapes) {
      for (const bool with_arguments : {false, true}) {
        const auto operations =
            operations_of({.name = op.name,
                           .inputs = inputs,
                           .arguments = with_arguments ? std::span<const CallArgument>(odd)
                                                       : std::span<const CallArgument>()});
        if (!operations.ok()) continue;
        for (const Operation& operation : *operations) {
          EXPECT_EQ(shape_problem(operation), "") << op.name << ": " << describe(operation);
          EXPECT_GE(work_of(operation).flops.value(), 0) << op.name << ": " << describe(operation);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::framework_ops_test
