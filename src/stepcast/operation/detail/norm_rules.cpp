// Normalisation, softmax and losses over classes.
#include <algorithm>

#include "stepcast/operation/detail/op_rules.h"

namespace stepcast::detail {

// Rows and columns by kind of normalisation.
Status norm_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const NormRule& details = rule.as<NormRule>();
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, static_cast<std::size_t>(details.input_at), 1));
  NormShape shape{.kind = details.kind};
  const std::int64_t elements = x->elements();
  switch (shape.kind) {
    case NormKind::layer_norm:
    case NormKind::rms_norm: {
      // The last dimensions, as many as the normalised shape has.
      std::size_t dims = 1;
      const auto at = static_cast<std::size_t>(details.shape_at);
      if (details.shape_at >= 0 && at < call.arguments.size() && !call.arguments[at].integers.empty())
        dims = std::min(call.arguments[at].integers.size(), x->shape.size());
      shape.cols = 1;
      for (std::size_t i = x->shape.size() - dims; i < x->shape.size(); ++i)
        shape.cols = TensorArgument{{shape.cols, x->shape[i]}, x->dtype, true}.elements();
      shape.rows = elements / std::max<std::int64_t>(shape.cols, 1);
      break;
    }
    case NormKind::batch_norm:
      if (x->shape.size() < 2) return missing(call, "expected [batch, channels, ...]");
      shape.rows = x->shape[1];
      shape.cols = elements / std::max<std::int64_t>(shape.rows, 1);
      break;
    case NormKind::group_norm: {
      const std::int64_t groups =
          details.shape_at >= 0 ? integer_at(call, static_cast<std::size_t>(details.shape_at), 0) : 0;
      if (groups < 1) return missing(call, "the number of groups is not recorded");
      shape.rows = TensorArgument{{x->shape[0], groups}, x->dtype, true}.elements();
      shape.cols = elements / std::max<std::int64_t>(shape.rows, 1);
      break;
    }
  }
  out.push_back(norm(shape, x->dtype, rule.direction));
  return Ok{};
}

// Softmax over one dimension; all other dimensions are rows.
Status softmax_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  STEPCAST_ASSIGN(const TensorArgument* x, need_tensor(call, 0, 1));
  const auto rank = static_cast<std::int64_t>(x->shape.size());
  const SoftmaxRule& details = rule.as<SoftmaxRule>();
  std::int64_t dim =
      details.dim_at >= 0 ? integer_at(call, static_cast<std::size_t>(details.dim_at), -1) : -1;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank)
    return missing(call, "dimension " + std::to_string(dim) + " of " + std::to_string(rank));
  SoftmaxShape shape{.kind = details.kind, .cols = x->shape[static_cast<std::size_t>(dim)]};
  shape.rows = x->elements() / std::max<std::int64_t>(shape.cols, 1);
  out.push_back({shape, x->dtype, rule.direction});
  return Ok{};
}

// The largest tensor has the logits.
Status cross_entropy_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const TensorArgument* logits = largest(call);
  if (logits == nullptr || logits->shape.empty()) return missing(call, "no logits");
  CrossEntropyShape shape{.classes = logits->shape.back(), .fused = rule.as<CrossEntropyRule>().fused};
  shape.rows = logits->elements() / std::max<std::int64_t>(shape.classes, 1);
  out.push_back({shape, logits->dtype, rule.direction});
  return Ok{};
}

// Sums the log-probabilities of the targets. The backward sets one element per target in a gradient that was
// filled with zeros.
Status nll_loss_rule(const FrameworkCall& call, const Rule& rule, OperationList& out) {
  const bool forward = rule.direction == Direction::forward;
  STEPCAST_ASSIGN(const TensorArgument* probabilities, need_tensor(call, forward ? 0 : 1, 1));
  const std::int64_t elements = probabilities->elements();
  if (forward) {
    const std::int64_t rows = elements / std::max<std::int64_t>(probabilities->shape.back(), 1);
    out.push_back({ReductionShape{1, rows}, probabilities->dtype});
  } else {
    out.push_back({MovementShape{.kind = MovementKind::fill, .elements = elements}, probabilities->dtype});
  }
  return Ok{};
}

}  // namespace stepcast::detail
