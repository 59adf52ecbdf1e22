// GEMM and convolution operators.
#include <algorithm>
#include <string>

#include "stepcast/operation/detail/op_rules.h"

namespace stepcast::detail {
namespace {

// Number of elements of some extents; saturates.
std::int64_t product_of(std::span<const std::int64_t> extents) {
  return TensorArgument{{extents.begin(), extents.end()}, DType::unknown, true}.elements();
}
// The last extent, or one counted from the end.
std::int64_t last(const TensorArgument& t, std::size_t from_end = 0) {
  return t.shape[t.shape.size() - 1 - from_end];
}

// Error unless two extents agree.
Status must_agree(const FrameworkCall& call, std::string_view what, std::int64_t a, std::int64_t b) {
  if (a == b) return Ok{};
  return missing(call, std::string(what) + " of the operands are " + std::to_string(a) + " and " +
                           std::to_string(b) + ", expected the same");
}

// The element type of the output, if it differs from that of the operands; else unknown.
DType output_dtype(const FrameworkCall& call, DType operands) {
  if (call.outputs.empty() || call.outputs.front().dtype == operands) return DType::unknown;
  return call.outputs.front().dtype;
}

// Adds a GEMM with the element types of the call.
Status emit(const FrameworkCall& call, GemmShape shape, const TensorArgument& operand, OperationList& out) {
  if (shape.output == DType::unknown) shape.output = output_dtype(call, operand.dtype);
  out.push_back(gemm(shape, product_dtype(call, operand.dtype)));
  return Ok{};
}

// A [.., m, k] times B [k, n] or [.., k, n], as in torch.matmul.
Status matmul(const FrameworkCall& call, const TensorArgument& a, const TensorArgument& b, bool transposed_b,
              GemmShape shape, OperationList& out) {
  if (a.shape.empty() || b.shape.empty()) return missing(call, "an operand has no dimensions");
  shape.k = last(a);
  std::int64_t b_rows = b.shape.size() == 1 ? b.shape[0] : last(b, transposed_b ? 0 : 1);
  if (b.shape.size() > 1) shape.n = last(b, transposed_b ? 1 : 0);
  if (b.shape.size() == 1) {
    // The weight of a linear layer with one output may be a vector; so may the right side of a GEMM.
    shape.n = 1;
    b_rows = b.shape[0];
  }
  STEPCAST_TRY(must_agree(call, "the inner extents", shape.k, b_rows));
  shape.m = a.shape.size() == 1 ? 1 : last(a, 1);
  const auto leading = [](const TensorArgument& t) {
    return t.shape.size() <= 2 ? std::int64_t{1} : product_of(std::span(t.shape).first(t.shape.size() - 2));
  };
  if (b.shape.size() <= 2) {
    // One weight for all of them: the leading dimensions are folded into the rows.
    shape.m = a.shape.size() == 1 ? 1 : product_of(std::span(a.shape).first(a.shape.size() - 1));
  } else {
    shape.batch = std::max(leading(a), leading(b));
  }
  return emit(call, shape, a, out);
}

}  // namespace

Status gemm_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const GemmForm form = rule.as<ProductRule>().form;
  const bool added = form == GemmForm::addmm || form == GemmForm::baddbmm;
  const std::size_t at = added ? 1 : 0;
  STEPCAST_ASSIGN(const TensorArgument* a, need_tensor(call, at, 1));
  STEPCAST_ASSIGN(const TensorArgument* b, need_tensor(call, at + 1, 1));
  GemmShape shape;
  if (added) {
    // addmm and baddbmm add a vector as the bias of a layer, or a whole matrix.
    const TensorArgument* c = tensor_at(call, 0);
    shape.bias = c != nullptr && c->shape.size() <= 1 && form == GemmForm::addmm;
    // beta is the argument after the operands; if it is 0, the matrix is not read.
    shape.accumulates = c != nullptr && !shape.bias && number_at(call, 3, 1) != 0;
  }
  switch (form) {
    case GemmForm::linear: shape.bias = tensor_at(call, 2) != nullptr; break;
    case GemmForm::grouped: {
      if (a->shape.size() == 2 && b->shape.size() == 2) {
        // The weight gradient: A [m, total] times B [total, n], one GEMM per group of `total`.
        const TensorArgument* ends = tensor_at(call, 2);
        const std::int64_t groups = ends == nullptr ? 0 : ends->elements();
        if (groups < 1) return missing(call, "the ends of the groups are not recorded");
        STEPCAST_TRY(must_agree(call, "the inner extents", a->shape[1], b->shape[0]));
        shape.batch = groups;
        shape.m = a->shape[0];
        shape.n = b->shape[1];
        shape.k = (a->shape[1] + groups - 1) / groups;
        return emit(call, shape, *a, out);
      }
      // A [total, k] in groups of rows, B [groups, k, n].
      if (a->shape.size() != 2 || b->shape.size() != 3)
        return missing(call, "expected [total, k] and [groups, k, n]");
      const std::int64_t groups = std::max<std::int64_t>(b->shape[0], 1);
      STEPCAST_TRY(must_agree(call, "the inner extents", a->shape[1], b->shape[1]));
      shape.batch = groups;
      shape.m = (a->shape[0] + groups - 1) / groups;
      shape.n = b->shape[2];
      shape.k = a->shape[1];
      return emit(call, shape, *a, out);
    }
    case GemmForm::mm:
    case GemmForm::addmm:
    case GemmForm::scaled:
      if (a->shape.size() != 2 || b->shape.size() != 2) return missing(call, "expected two matrices");
      break;
    case GemmForm::bmm:
    case GemmForm::baddbmm:
      if (a->shape.size() != 3 || b->shape.size() != 3)
        return missing(call, "expected two batches of matrices");
      break;
    default: break;
  }
  return matmul(call, *a, *b, form == GemmForm::linear, shape, out);
}

// Both gradients and the bias gradient, from the gradient and both operands.
Status linear_backward_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* gradient, need_tensor(call, 0, 2));
  const TensorArgument* a = tensor_at(call, 1);
  const TensorArgument* b = tensor_at(call, 2);
  if (a == nullptr || b == nullptr)
    return missing(call, "needs the gradient and both operands of the GEMM, or the operators it calls");
  OperationList forward;
  const FrameworkCall product{.name = call.name, .tf32_allowed = call.tf32_allowed};
  STEPCAST_TRY(matmul(product, *a, *b, false, {}, forward));
  auto shape = std::get<GemmShape>(forward.front().shape);
  STEPCAST_TRY(must_agree(call, "the columns", last(*gradient), shape.n));
  const DType dtype = forward.front().dtype;
  out.push_back(gemm(shape, dtype, Direction::input_gradient));
  out.push_back(gemm(shape, dtype, Direction::weight_gradient));
  if (rule.as<ProductBackwardRule>().bias) out.push_back({ReductionShape{shape.n, shape.m}, gradient->dtype});
  return Ok{};
}

// Letters in both operands and the result are batch dimensions, letters only in both operands are summed.
Status einsum_rule(const FrameworkCall& call, const Rule&, OperationList& out) {
  const CallArgument* equation = nullptr;
  for (const CallArgument& argument : call.arguments)
    if (argument.kind == CallArgument::Kind::text && equation == nullptr) equation = &argument;
  if (equation == nullptr || call.inputs.size() != 2)
    return missing(call, "expected an equation and two tensors");
  std::string text;
  for (const char c : equation->text)
    if (c != ' ') text += c;
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      text.find('.') != std::string::npos)
    return missing(call, "expected an equation like \"ij,jk->ik\", found \"" + text.substr(0, 40) + "\"");
  const std::string left = text.substr(0, comma), right = text.substr(comma + 1, arrow - comma - 1),
                    result = text.substr(arrow + 2);
  if (left.size() != call.inputs[0].shape.size() || right.size() != call.inputs[1].shape.size())
    return missing(call, "the equation \"" + text.substr(0, 40) + "\" does not fit the tensors");
  const auto has = [](const std::string& letters, char c) { return letters.find(c) != std::string::npos; };
  std::vector<std::int64_t> batch, m, n, k;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::int64_t extent = call.inputs[0].shape[i];
    if (has(right, left[i]))
      (has(result, left[i]) ? batch : k).push_back(extent);
    else
      m.push_back(extent);
  }
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!has(left, right[i])) n.push_back(call.inputs[1].shape[i]);
  return emit(call, {.batch = product_of(batch), .m = product_of(m), .n = product_of(n), .k = product_of(k)},
              call.inputs[0], out);
}

namespace {

// Positions of the arguments of a convolution.
struct ConvolutionPositions {
  std::size_t x = 0, w = 1, stride = 3, padding = 4, dilation = 5;
};
ConvolutionPositions positions_of(ConvolutionForm form) {
  switch (form) {
    case ConvolutionForm::framework: return {};
    case ConvolutionForm::cudnn: return {.stride = 3, .padding = 2, .dilation = 4};
    case ConvolutionForm::miopen: return {.stride = 4, .padding = 3, .dilation = 5};
    case ConvolutionForm::depthwise: return {.stride = 4, .padding = 5, .dilation = 6};
    case ConvolutionForm::backward: return {.x = 1, .w = 2, .stride = 4, .padding = 5, .dilation = 6};
    case ConvolutionForm::cudnn_backward: return {.x = 0, .w = 2, .stride = 4, .padding = 3, .dilation = 5};
  }
  return {};
}

// "same" keeps the extents; "valid" means no padding.
std::int64_t padding_at(const FrameworkCall& call, std::size_t position, std::int64_t kernel,
                        std::int64_t dilation) {
  if (position < call.arguments.size() && call.arguments[position].text == "same")
    return (kernel - 1) / 2 * dilation;
  return list_item(call, position, 0, 0);
}

// Infers stride and padding in traces without argument values, from the extents before (x) and after (y) the
// convolution: the smallest padding that fits.
void infer_stride(const TensorArgument* y, ConvolutionShape& shape) {
  if (y == nullptr || y->shape.size() < 3 || y->shape[1] != shape.out_channels) return;
  const std::int64_t out = y->shape.back();
  if (out < 1 || out > shape.width + 2 * shape.kernel_width) return;
  for (std::int64_t stride = std::max<std::int64_t>(1, shape.width / out); stride <= shape.width / out + 1;
       ++stride) {
    for (std::int64_t padding = 0; padding <= shape.kernel_width; ++padding) {
      ConvolutionShape tried = shape;
      tried.stride = stride;
      tried.padding = padding;
      if (tried.out_width() != out) continue;
      shape = tried;
      return;
    }
  }
}

// Whether the argument at a position is a list of integers or an integer.
bool has_list(const FrameworkCall& call, std::size_t position) {
  return position < call.arguments.size() && (call.arguments[position].kind == CallArgument::Kind::integers ||
                                              call.arguments[position].kind == CallArgument::Kind::integer);
}

// The forward of a transposed convolution is the input gradient of the convolution from its output to its
// input.
Status transpose(const FrameworkCall& call, const TensorArgument& x, ConvolutionShape& shape,
                 Direction& direction) {
  const bool forward = direction == Direction::forward;
  if (call.outputs.empty() && forward) return missing(call, "transposed, and its output is not recorded");
  const TensorArgument* y = forward ? &call.outputs.front() : tensor_at(call, 0);
  if (y == nullptr || y->shape.size() != x.shape.size())
    return missing(call, forward ? "input and output differ in dimensions" : "no gradient");
  shape.in_channels = y->shape[1];
  shape.out_channels = x.shape[1];
  shape.height = x.shape.size() == 3 ? 1 : y->shape[2];
  shape.width = y->shape.back();
  if (forward) direction = Direction::input_gradient;
  return Ok{};
}

}  // namespace

Status convolution_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const ConvolutionForm form = rule.as<ConvolutionRule>().form;
  const ConvolutionPositions at = positions_of(form);
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, at.x, 3));
  STEPCAST_ASSIGN(const TensorArgument* w, need_tensor(call, at.w, 3));
  if (x->shape.size() != w->shape.size() || x->shape.size() > 4)
    return missing(call, "only convolutions over one or two dimensions are modelled");
  std::int64_t groups = integer_at(call, at.dilation + 1, 1);
  bool transposed = false;
  if (form == ConvolutionForm::framework || form == ConvolutionForm::backward) {
    // conv1d and conv2d have the groups where the others have the flag.
    transposed = flag_at(call, at.dilation + 1, false);
    groups = integer_at(call, at.dilation + 1, integer_at(call, at.dilation + 3, 1));
  } else if (form == ConvolutionForm::depthwise) {
    groups = x->shape[1];
  }
  const bool line = x->shape.size() == 3;
  ConvolutionShape shape{
      .batch = x->shape[0],
      .in_channels = x->shape[1],
      .out_channels = w->shape[0],
      .height = line ? 1 : x->shape[2],
      .width = x->shape.back(),
      .kernel_height = line ? 1 : w->shape[2],
      .kernel_width = w->shape.back(),
      .stride = list_item(call, at.stride, 0, 1),
      .padding = padding_at(call, at.padding, w->shape.back(), list_item(call, at.dilation, 0, 1)),
      .dilation = list_item(call, at.dilation, 0, 1),
      .groups = std::max<std::int64_t>(groups, 1)};
  Direction direction = rule.direction;
  if (!has_list(call, at.stride) && !transposed) {
    const bool forward = form != ConvolutionForm::backward && form != ConvolutionForm::cudnn_backward;
    if (!forward)
      infer_stride(tensor_at(call, form == ConvolutionForm::backward ? 0 : 1), shape);
    else if (!call.outputs.empty())
      infer_stride(&call.outputs.front(), shape);
  }
  if (transposed) {
    STEPCAST_TRY(transpose(call, *x, shape, direction));
  } else if (form == ConvolutionForm::backward) {
    // The last argument says which gradients of x, w and bias are computed: the first layer of a network
    // needs no input gradient.
    const std::size_t mask_at = at.dilation + 4;
    const bool wants_input = list_item(call, mask_at, 0, 1) != 0;
    const bool wants_weight = list_item(call, mask_at, 1, 1) != 0;
    if (!wants_input && wants_weight) direction = Direction::weight_gradient;
    if (wants_input && !wants_weight) direction = Direction::input_gradient;
  }
  out.push_back({shape, product_dtype(call, x->dtype), direction});
  return Ok{};
}

}  // namespace stepcast::detail
