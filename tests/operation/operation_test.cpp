#include "stepcast/operation/operation.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::operation_test {
namespace {

double flops(const Operation& operation) { return work_of(operation).flops.value(); }
double read(const Operation& operation) { return work_of(operation).bytes_read.value(); }
double written(const Operation& operation) { return work_of(operation).bytes_written.value(); }

TEST(WorkOfGemm, ForwardReadsBothOperandsAndWritesTheProduct) {
  // A 2x4, B 4x3, C 2x3 in 2-byte elements: 2 * 2*3*4 = 48 FLOPs; (8 + 12) * 2 = 40 B; 6 * 2 = 12 B.
  const Operation op = gemm({.m = 2, .n = 3, .k = 4}, DType::bf16);
  EXPECT_EQ(flops(op), 48);
  EXPECT_EQ(read(op), 40);
  EXPECT_EQ(written(op), 12);
  EXPECT_EQ(work_of(op).bytes().value(), 52);
  EXPECT_TRUE(work_of(op).matrix);
  EXPECT_EQ(work_of(op).kernels, 1);
}

TEST(WorkOfGemm, BatchBiasAccumulationAndResultTypeCount) {
  // Five of the above with a bias of 3 elements, added into fp32: reads 5 * 40 + 6 + 5 * 24, writes 5 * 24.
  const Operation op =
      gemm({.batch = 5, .m = 2, .n = 3, .k = 4, .bias = true, .accumulates = true, .output = DType::fp32},
           DType::bf16);
  EXPECT_EQ(flops(op), 240);
  EXPECT_EQ(read(op), 200 + 6 + 120);
  EXPECT_EQ(written(op), 120);
}

TEST(WorkOfGemm, BackwardIsBothGradientsAndTheBiasReduction) {
  // dA = dC B^T and dB = A^T dC take 48 FLOPs each, the bias adds up the 6 elements of dC.
  // Reads dC 12, B 24, A 16; writes dA 16, dB 24, dbias 6.
  const Operation op = gemm({.m = 2, .n = 3, .k = 4, .bias = true}, DType::bf16, Direction::backward);
  EXPECT_EQ(flops(op), 96 + 6);
  EXPECT_EQ(read(op), 12 + 24 + 16);
  EXPECT_EQ(written(op), 16 + 24 + 6);
  EXPECT_EQ(work_of(op).kernels, 3);
}

TEST(WorkOfGemm, TheTwoGradientsAlone) {
  const Operation input = gemm({.m = 2, .n = 3, .k = 4}, DType::bf16, Direction::input_gradient);
  EXPECT_EQ(flops(input), 48);
  EXPECT_EQ(read(input), 12 + 24);  // dC, B
  EXPECT_EQ(written(input), 16);    // dA

  // Into an fp32 buffer of 12 elements: read 48 B and written 48 B.
  const Operation weight = gemm({.m = 2, .n = 3, .k = 4, .accumulates = true, .output = DType::fp32},
                                DType::bf16, Direction::weight_gradient);
  EXPECT_EQ(flops(weight), 48);
  EXPECT_EQ(read(weight), 12 + 16 + 48);  // dC, A, dB
  EXPECT_EQ(written(weight), 48);
}

TEST(WorkOfAttention, FullAndCausal) {
  // 2 x 3 heads, 4 queries, 4 keys, head_dim 8: 6 * 16 pairs, each 2*8 for the score and 2*8 for the value.
  AttentionShape shape{
      .batch = 2, .query_length = 4, .key_length = 4, .heads = 3, .key_value_heads = 3, .head_dim = 8};
  shape.causal = false;
  EXPECT_EQ(flops(attention(shape, DType::fp16)), 6 * 16 * 32);
  // q, k, v: 6 * 4 * 8 elements of 2 B each; o the same, and 6 * 4 log-sum-exps of 4 B.
  EXPECT_EQ(read(attention(shape, DType::fp16)), 3 * 384);
  EXPECT_EQ(written(attention(shape, DType::fp16)), 384 + 96);

  shape.causal = true;  // the queries see 1 + 2 + 3 + 4 = 10 keys
  EXPECT_EQ(flops(attention(shape, DType::fp16)), 6 * 10 * 32);
  EXPECT_EQ(flops(attention(shape, DType::fp16, Direction::backward)), 2.5 * 6 * 10 * 32);
  // Reads q, k, v, o, do and the log-sum-exps; writes dq, dk, dv.
  EXPECT_EQ(read(attention(shape, DType::fp16, Direction::backward)), 5 * 384 + 96);
  EXPECT_EQ(written(attention(shape, DType::fp16, Direction::backward)), 3 * 384);
}

TEST(WorkOfAttention, CausalAlignsTheLastQueryWithTheLastKey) {
  AttentionShape shape{.query_length = 2, .key_length = 5, .heads = 1, .key_value_heads = 1, .head_dim = 1};
  EXPECT_EQ(flops(attention(shape, DType::fp16)), (4 + 5) * 4);
  shape.query_length = 5, shape.key_length = 2;  // queries see 0, 0, 0, 1, 2
  EXPECT_EQ(flops(attention(shape, DType::fp16)), (1 + 2) * 4);
}

TEST(WorkOfAttention, WindowCapsWhatAQuerySees) {
  AttentionShape shape{
      .query_length = 6, .key_length = 6, .heads = 1, .key_value_heads = 1, .head_dim = 1, .window = 3};
  EXPECT_EQ(flops(attention(shape, DType::fp16)), (1 + 2 + 3 + 3 + 3 + 3) * 4);
  shape.query_length = 2;  // queries 5 and 6 see 3 each; of the keys, only the last 4 are needed
  EXPECT_EQ(flops(attention(shape, DType::fp16)), 6 * 4);
  EXPECT_EQ(read(attention(shape, DType::fp16)), 2 * (2 + 4 + 4));
  shape.causal = false;
  EXPECT_EQ(flops(attention(shape, DType::fp16)), 6 * 4);
  shape.window = 100;
  EXPECT_EQ(flops(attention(shape, DType::fp16)), 12 * 4);
}

TEST(WorkOfAttention, CausalWindowAgreesWithCountingQueryByQuery) {
  for (std::int64_t queries = 1; queries <= 7; ++queries) {
    for (std::int64_t keys = 1; keys <= 7; ++keys) {
      for (std::int64_t window = 0; window <= 8; ++window) {
        std::int64_t pairs = 0;
        for (std::int64_t i = 0; i < queries; ++i) {
          const std::int64_t seen = std::max<std::int64_t>(0, i + 1 + keys - queries);
          pairs += window == 0 ? seen : std::min(seen, window);
        }
        const Operation op = attention({.query_length = queries,
                                        .key_length = keys,
                                        .heads = 1,
                                        .key_value_heads = 1,
                                        .head_dim = 1,
                                        .window = window},
                                       DType::fp16);
        EXPECT_EQ(flops(op), static_cast<double>(4 * pairs)) << describe(op);
      }
    }
  }
}

TEST(WorkOfAttention, GroupedQueriesAndOtherValueDimensions) {
  // 4 query heads share 2 key/value heads; keys of 3, values of 5 elements, 2 queries and 2 keys, not causal.
  const Operation op = attention({.query_length = 2,
                                  .key_length = 2,
                                  .heads = 4,
                                  .key_value_heads = 2,
                                  .head_dim = 3,
                                  .value_head_dim = 5,
                                  .causal = false},
                                 DType::fp32);
  EXPECT_EQ(flops(op), 4 * 4 * 2 * (3 + 5));
  EXPECT_EQ(read(op), 4 * (4 * 2 * 3 + 2 * 2 * 3 + 2 * 2 * 5));
  EXPECT_EQ(written(op), 4 * (4 * 2 * 5) + 4 * (4 * 2));
}

TEST(WorkOfConvolution, CountsTheOutputPixels) {
  // 7x7 image, 3x3 kernel, stride 2, padding 1: (7 + 2 - 2 - 1) / 2 + 1 = 4.
  const ConvolutionShape shape{.batch = 2,
                               .in_channels = 4,
                               .out_channels = 6,
                               .height = 7,
                               .width = 7,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .stride = 2,
                               .padding = 1};
  EXPECT_EQ(shape.out_height(), 4);
  EXPECT_EQ(shape.out_width(), 4);
  // Outputs 2*6*16 = 192, each 4*9 = 36 products.
  const Operation forward{shape, DType::fp32};
  EXPECT_EQ(flops(forward), 2 * 192 * 36);
  EXPECT_EQ(read(forward), 4 * (2 * 4 * 49 + 6 * 36));
  EXPECT_EQ(written(forward), 4 * 192);
  const Operation backward{shape, DType::fp32, Direction::backward};
  EXPECT_EQ(flops(backward), 2 * 2 * 192 * 36);
  EXPECT_EQ(read(backward), 4 * (192 + 216 + 392));
  EXPECT_EQ(written(backward), 4 * (392 + 216));
}

TEST(WorkOfConvolution, GroupsStridesBeyondTheKernelAndOneDimension) {
  // Depthwise: every output channel has one input channel.
  const Operation depthwise{ConvolutionShape{.in_channels = 8,
                                             .out_channels = 8,
                                             .height = 4,
                                             .width = 4,
                                             .kernel_height = 3,
                                             .kernel_width = 3,
                                             .padding = 1,
                                             .groups = 8},
                            DType::fp16};
  EXPECT_EQ(flops(depthwise), 2 * 8 * 16 * 9);
  // A 1x1 kernel with stride 2 reads a quarter of the pixels.
  const Operation strided{
      ConvolutionShape{.in_channels = 1, .out_channels = 1, .height = 4, .width = 4, .stride = 2},
      DType::fp16};
  EXPECT_EQ(read(strided), 2 * (4 + 1));
  // One dimension: padding widens the line and adds no rows.
  const ConvolutionShape line{
      .in_channels = 1, .out_channels = 1, .width = 10, .kernel_width = 3, .padding = 1};
  EXPECT_EQ(line.out_height(), 1);
  EXPECT_EQ(line.out_width(), 10);
}

TEST(WorkOfLookup, ReadsEveryDistinctRowOnce) {
  // 2 tables, 3 bags each, 4 lookups a bag, rows of 8 fp32 = 32 B. Half of the 24 lookups are distinct.
  LookupShape shape{.tables = 2, .rows = 1000, .dim = 8, .bags = 3, .pooling = 4, .distinct_fraction = 0.5};
  EXPECT_EQ(read(Operation{shape, DType::fp32}), (24 + 6) * 8 + 12 * 32);
  EXPECT_EQ(written(Operation{shape, DType::fp32}), 6 * 32);
  EXPECT_EQ(flops(Operation{shape, DType::fp32}), (24 - 6) * 8);  // three additions per bag and column
  // Backward: the gradient of a whole table unless the update is fused: then the touched rows, in and out.
  EXPECT_EQ(written(Operation{shape, DType::fp32, Direction::backward}), 2 * 1000 * 32);
  shape.fused_update = true;
  EXPECT_EQ(read(Operation{shape, DType::fp32, Direction::backward}), (24 + 6) * 8 + 6 * 32 + 12 * 32);
  EXPECT_EQ(written(Operation{shape, DType::fp32, Direction::backward}), 12 * 32);
}

TEST(WorkOfLookup, ExpectsTheDistinctRowsOfUniformIndices) {
  // Two draws from two rows: 2 * (1 - (1/2)^2) = 1.5 distinct rows. One lookup a bag: no offsets, no sums.
  const Operation op{LookupShape{.rows = 2, .dim = 4, .bags = 2}, DType::fp32};
  EXPECT_NEAR(read(op), 2 * 8 + 1.5 * 16, 1e-9);
  EXPECT_EQ(flops(op), 0);
  // Never more rows than the table has, whatever is claimed.
  const Operation claimed{LookupShape{.rows = 2, .dim = 4, .bags = 100, .distinct_fraction = 1}, DType::fp32};
  EXPECT_EQ(read(claimed), 100 * 8 + 2 * 16);
}

TEST(WorkOfNorm, LayerRmsAndBatch) {
  // 10 rows of 20 in bf16: a tensor is 400 B, a parameter vector 40 B.
  const Operation layer = norm({NormKind::layer_norm, 10, 20}, DType::bf16);
  EXPECT_EQ(read(layer), 400 + 2 * 40);
  EXPECT_EQ(written(layer), 400 + 10 * 8);  // mean and reciprocal deviation
  const Operation layer_backward = norm({NormKind::layer_norm, 10, 20}, DType::bf16, Direction::backward);
  EXPECT_EQ(read(layer_backward), 2 * 400 + 40 + 80);
  EXPECT_EQ(written(layer_backward), 400 + 80);
  const Operation rms_backward = norm({NormKind::rms_norm, 10, 20}, DType::bf16, Direction::backward);
  EXPECT_EQ(read(rms_backward), 2 * 400 + 40 + 40);
  EXPECT_EQ(written(rms_backward), 400 + 40);
  // Batch norm of 10 channels: parameters of 10 elements, and running statistics read and written.
  const Operation batch = norm({NormKind::batch_norm, 10, 20}, DType::bf16);
  EXPECT_EQ(read(batch), 400 + 2 * 20 + 80);
  EXPECT_EQ(written(batch), 400 + 80 + 80);
}

TEST(WorkOfSoftmax, MaskedReadsTheTriangle) {
  // 2 squares of 4x4: rows see 1 + 2 + 3 + 4 columns, twice.
  const Operation masked{SoftmaxShape{SoftmaxKind::causal_masked, 8, 4}, DType::fp16};
  EXPECT_EQ(read(masked), 2 * 20);
  EXPECT_EQ(written(masked), 2 * 32);
  const Operation backward{SoftmaxShape{SoftmaxKind::plain, 8, 4}, DType::fp16, Direction::backward};
  EXPECT_EQ(read(backward), 2 * 2 * 32);  // y and dy
  EXPECT_EQ(written(backward), 2 * 32);
}

TEST(WorkOfCrossEntropy, FusedKeepsNoProbabilities) {
  const CrossEntropyShape shape{.rows = 10, .classes = 100};
  // Unfused: logits in, log-probabilities out, 10 of them read back.
  EXPECT_EQ(read(Operation{shape, DType::fp32}), 4000 + 80 + 40);
  EXPECT_EQ(written(Operation{shape, DType::fp32}), 4000 + 40);
  const CrossEntropyShape fused{.rows = 10, .classes = 100, .fused = true};
  EXPECT_EQ(written(Operation{fused, DType::fp32}), 80);
  EXPECT_EQ(written(Operation{fused, DType::fp32, Direction::backward}), 4000);
}

TEST(WorkOfElementwise, ForwardAndBackwardByWhatIsSaved) {
  const auto of = [](ElementwiseFunction function, float reads, Direction direction) {
    const Work work =
        work_of(elementwise({.function = function, .elements = 100, .reads = reads}, DType::fp32, direction));
    return std::pair{work.bytes_read.value(), work.bytes_written.value()};
  };
  using Function = ElementwiseFunction;
  EXPECT_EQ(of(Function::gelu, 1, Direction::forward), std::pair(400.0, 400.0));
  EXPECT_EQ(of(Function::gelu, 1, Direction::backward), std::pair(800.0, 400.0));  // dy, x; dx
  // dy, a, b; da, db.
  EXPECT_EQ(of(Function::gated_silu, 2, Direction::backward), std::pair(1200.0, 800.0));
  EXPECT_EQ(of(Function::multiply, 2, Direction::backward), std::pair(1200.0, 800.0));
  EXPECT_EQ(of(Function::add, 2, Direction::backward), std::pair(400.0, 400.0));
  EXPECT_EQ(of(Function::residual_add, 2, Direction::backward), std::pair(800.0, 400.0));
  EXPECT_EQ(of(Function::multiply_scalar, 1, Direction::backward), std::pair(400.0, 400.0));
  // The mask takes a byte per element: written by the forward, read by the backward.
  EXPECT_EQ(of(Function::dropout, 1, Direction::forward), std::pair(400.0, 500.0));
  EXPECT_EQ(of(Function::dropout, 1, Direction::backward), std::pair(500.0, 400.0));
  EXPECT_EQ(of(Function::masked_fill, 1, Direction::forward), std::pair(500.0, 400.0));
}

TEST(WorkOfMovement, IndicesCountAndFillsReadNothing) {
  const Operation copy{MovementShape{MovementKind::copy, 10}, DType::fp16};
  EXPECT_EQ(read(copy), 20);
  EXPECT_EQ(written(copy), 20);
  const Operation gather{MovementShape{MovementKind::gather, 12, 4}, DType::fp16};  // 3 indices
  EXPECT_EQ(read(gather), 24 + 24);
  const Operation fill{MovementShape{MovementKind::fill, 10}, DType::fp16};
  EXPECT_EQ(read(fill), 0);
  EXPECT_EQ(written(fill), 20);
}

TEST(WorkOfTheRest, ReductionOptimizerTransferSparseAmounts) {
  const Operation sum{ReductionShape{3, 5}, DType::fp32};
  EXPECT_EQ(flops(sum), 15);
  EXPECT_EQ(read(sum), 60);
  EXPECT_EQ(written(sum), 12);
  EXPECT_EQ(written(Operation{ReductionShape{3, 5}, DType::fp32, Direction::backward}), 60);

  const Operation adam{OptimizerShape{.parameters = 1000}, DType::fp32};
  EXPECT_EQ(read(adam), 16000);
  EXPECT_EQ(written(adam), 12000);
  EXPECT_EQ(work_of(adam).kernels, 1);
  // 73 tensors fill two launches of 36 and begin a third.
  EXPECT_EQ(work_of(Operation{OptimizerShape{.parameters = 1000, .tensors = 73}, DType::fp32}).kernels, 3);

  const Operation upload{TransferShape{MemcpyKind::host_to_device, 64}, DType::fp32};
  EXPECT_EQ(read(upload), 64);
  EXPECT_EQ(written(upload), 64);
  EXPECT_EQ(read(Operation{TransferShape{MemcpyKind::none, 64}, DType::fp32}), 0);  // memset

  // 10 rows with 30 entries times 20x4: entries of 4 + 8 B, 11 row starts, at most 20 rows of D.
  SparseShape sparse{.rows = 10, .inner = 20, .cols = 4, .nonzeros = 30};
  EXPECT_EQ(flops(Operation{sparse, DType::fp32}), 2 * 30 * 4);
  EXPECT_EQ(read(Operation{sparse, DType::fp32}), 30 * 12 + 88 + 20 * 16);
  EXPECT_EQ(written(Operation{sparse, DType::fp32}), 10 * 16);
  sparse.reuse = 2;  // each fetched row serves three entries
  EXPECT_EQ(read(Operation{sparse, DType::fp32}), 30 * 12 + 88 + 10 * 16);

  const Operation amounts{AmountShape{.flops = 7, .bytes_read = 8, .bytes_written = 9, .matrix = true}};
  EXPECT_EQ(flops(amounts), 7);
  EXPECT_EQ(work_of(amounts).bytes().value(), 17);
  EXPECT_TRUE(work_of(amounts).matrix);
}

// One operation of every shape, each with a name of its own.
std::vector<Operation> one_of_each() {
  return {gemm({.m = 1, .n = 1, .k = 1}, DType::fp32),
          gemm({.batch = 2, .m = 1, .n = 1, .k = 1}, DType::fp32),
          attention({.query_length = 1, .key_length = 1, .heads = 1, .head_dim = 1}, DType::fp32),
          Operation{ConvolutionShape{.in_channels = 1, .out_channels = 1, .width = 1}},
          Operation{LookupShape{.dim = 1}},
          norm({}, DType::fp32),
          norm({.kind = NormKind::rms_norm}, DType::fp32),
          norm({.kind = NormKind::batch_norm}, DType::fp32),
          Operation{SoftmaxShape{}},
          Operation{SoftmaxShape{.kind = SoftmaxKind::causal_masked}},
          Operation{CrossEntropyShape{}},
          elementwise({.function = ElementwiseFunction::multiply}, DType::fp32),
          elementwise({.function = ElementwiseFunction::gelu}, DType::fp32),
          Operation{MovementShape{}},
          Operation{MovementShape{.kind = MovementKind::transpose}},
          Operation{ReductionShape{}},
          Operation{OptimizerShape{}},
          Operation{TransferShape{.kind = MemcpyKind::host_to_device}},
          Operation{SparseShape{}},
          Operation{AmountShape{}}};
}

TEST(FamilyOf, NamesEveryShapeDifferently) {
  const std::vector<std::string_view> expected{
      "gemm",          "batched_gemm", "attention",  "convolution", "embedding_lookup",
      "layer_norm",    "rms_norm",     "batch_norm", "softmax",     "causal_softmax",
      "cross_entropy", "elementwise",  "gelu",       "copy",        "transpose",
      "reduction",     "optimizer",    "memcpy_h2d", "sparse",      "fused"};
  std::vector<std::string_view> families;
  for (const Operation& op : one_of_each()) families.push_back(family_of(op));
  EXPECT_EQ(families, expected);
}

TEST(KernelClassOf, FollowsTheClassesOfKernels) {
  EXPECT_EQ(kernel_class_of(gemm({}, DType::fp32)), KernelClass::gemm);
  EXPECT_EQ(kernel_class_of(Operation{LookupShape{}}), KernelClass::embedding);
  EXPECT_EQ(kernel_class_of(Operation{SoftmaxShape{}}), KernelClass::normalization);
  EXPECT_EQ(kernel_class_of(Operation{MovementShape{.kind = MovementKind::gather}}), KernelClass::embedding);
  EXPECT_EQ(kernel_class_of(Operation{MovementShape{}}), KernelClass::memory);
  EXPECT_EQ(kernel_class_of(Operation{AmountShape{.kernel_class = KernelClass::reduction}}),
            KernelClass::reduction);
}

TEST(ShapeProblem, NamesTheExtentThatCannotBe) {
  for (const Operation& op : one_of_each()) EXPECT_EQ(shape_problem(op), "") << describe(op);
  EXPECT_EQ(shape_problem(gemm({.m = 1, .n = -1, .k = 1}, DType::fp32)), "n = -1 (must be at least 0)");
  EXPECT_EQ(shape_problem(Operation{
                ConvolutionShape{.in_channels = 6, .out_channels = 8, .height = 3, .width = 3, .groups = 4}}),
            "groups = 4 (must divide in_channels = 6 and out_channels = 8)");
  EXPECT_EQ(shape_problem(Operation{ConvolutionShape{.in_channels = 1,
                                                     .out_channels = 1,
                                                     .height = 3,
                                                     .width = 3,
                                                     .kernel_height = 5,
                                                     .kernel_width = 5}}),
            "kernel 5x5 with dilation 1 does not fit the padded image 3x3 (padding 0)");
  EXPECT_EQ(shape_problem(attention(
                {.query_length = 1, .key_length = 1, .heads = 8, .key_value_heads = 3, .head_dim = 1},
                DType::fp16)),
            "key_value_heads = 3 (must divide heads = 8)");
  EXPECT_EQ(shape_problem(Operation{LookupShape{.dim = 1, .distinct_fraction = 1.5}}),
            "distinct_fraction = 1.5 (must be at most 1)");
  EXPECT_EQ(shape_problem(Operation{AmountShape{.flops = std::numeric_limits<double>::quiet_NaN()}}),
            "flops = nan (must be at least 0)");
}

TEST(Describe, IsForPeople) {
  EXPECT_EQ(describe(gemm({.m = 8192, .n = 16384, .k = 4096}, DType::bf16)),
            "gemm bf16 forward m=8192 n=16384 k=4096");
  EXPECT_EQ(describe(gemm({.batch = 3, .m = 1, .n = 2, .k = 4, .bias = true}, DType::fp16,
                          Direction::weight_gradient)),
            "batched_gemm fp16 weight_gradient batch=3 m=1 n=2 k=4 bias");
}

TEST(HashOf, EqualOperationsHaveEqualHashesAndEveryMemberCounts) {
  std::set<std::size_t> hashes;
  for (const Operation& op : one_of_each()) {
    EXPECT_EQ(hash_of(op), hash_of(Operation{op}));
    hashes.insert(hash_of(op));
  }
  EXPECT_EQ(hashes.size(), one_of_each().size());
  const Operation base = gemm({.m = 2, .n = 3, .k = 4}, DType::bf16);
  std::set<std::size_t> variants{hash_of(base)};
  variants.insert(hash_of(gemm({.m = 3, .n = 2, .k = 4}, DType::bf16)));
  variants.insert(hash_of(gemm({.m = 2, .n = 3, .k = 4, .bias = true}, DType::bf16)));
  variants.insert(hash_of(gemm({.m = 2, .n = 3, .k = 4, .accumulates = true}, DType::bf16)));
  variants.insert(hash_of(gemm({.m = 2, .n = 3, .k = 4, .output = DType::fp32}, DType::bf16)));
  variants.insert(hash_of(gemm({.m = 2, .n = 3, .k = 4}, DType::fp16)));
  variants.insert(hash_of(gemm({.m = 2, .n = 3, .k = 4}, DType::bf16, Direction::backward)));
  EXPECT_EQ(variants.size(), 7U);
  // 0.0 and -0.0 are equal.
  EXPECT_EQ(hash_of(Operation{AmountShape{.flops = 0.0}}), hash_of(Operation{AmountShape{.flops = -0.0}}));
}

}  // namespace
}  // namespace stepcast::operation_test
