// Reads tables/framework_ops.csv: each row has operators of one role and rule, separated by ", ". A rule is a
// function of op_rules.h with its arguments: "softmax(log_softmax, backward, 2)".
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/names.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/operation/detail/op_rules.h"
#include "stepcast/operation/optimizer_rule.h"

namespace stepcast::detail {
namespace {

std::string_view to_string(GemmForm form) {
  return name_of<GemmForm::backward>(
      form, {"mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mv", "grouped", "scaled", "backward"});
}
std::string_view to_string(ConvolutionForm form) {
  return name_of<ConvolutionForm::cudnn_backward>(
      form, {"framework", "cudnn", "miopen", "depthwise", "backward", "cudnn_backward"});
}
std::string_view to_string(HeadLayout layout) {
  return name_of<HeadLayout::packed>(layout, {"heads_first", "tokens_first", "packed"});
}
std::string_view to_string(SparseForm form) {
  return name_of<SparseForm::compressed>(form, {"matrix", "sampled", "compressed"});
}
std::string_view to_string(MemcpyKind kind) { return kTransferNames[kind]; }
std::string_view to_string(bool truth) { return truth ? "true" : "false"; }

// The arguments in the brackets of a rule.
class Arguments {
 public:
  explicit Arguments(std::string_view text) {
    for (; !text.empty() && size_ < words_.size(); ++size_) {
      const std::size_t end = std::min(text.find(", "), text.size());
      words_[size_] = text.substr(0, end);
      text.remove_prefix(std::min(end + 2, text.size()));
    }
    wrong_ = !text.empty();
  }
  // The enumerator, up to `Last`, with the name of argument `i`; `otherwise` if it is missing.
  template <auto Last>
  decltype(Last) word(std::size_t i, decltype(Last) otherwise) {
    if (!take(i)) return otherwise;
    for (int value = 0; value <= static_cast<int>(Last); ++value)
      if (to_string(static_cast<decltype(Last)>(value)) == words_[i])
        return static_cast<decltype(Last)>(value);
    wrong_ = true;
    return otherwise;
  }
  // The same for a required argument.
  template <auto Last>
  decltype(Last) word(std::size_t i) {
    wrong_ = wrong_ || i >= size_;
    return word<Last>(i, Last);
  }
  // A number, or `otherwise` if it is missing.
  template <class Number>
  Number number(std::size_t i, Number otherwise) {
    if (!take(i)) return otherwise;
    const std::optional<Number> said = scan<Number>(words_[i]);
    wrong_ = wrong_ || !said;
    return said.value_or(otherwise);
  }
  // Whether all arguments were used, and all required ones exist.
  [[nodiscard]] bool fit() const { return !wrong_ && taken_ >= size_; }

 private:
  // Notes the use of argument `i`; returns whether it exists.
  bool take(std::size_t i) {
    taken_ = std::max(taken_, i + 1);
    return i < size_;
  }

  std::array<std::string_view, 4> words_;
  std::size_t size_ = 0, taken_ = 0;
  bool wrong_ = false;
};

using A = Arguments;
using Make = Rule (*)(A& a);
Direction direction_of(A& a, std::size_t i) { return a.word<Direction::weight_gradient>(i); }
HeadLayout layout_of(A& a) { return a.word<HeadLayout::packed>(0); }
NormKind norm_of(A& a) { return a.word<NormKind::group_norm>(0); }
ElementwiseFunction function_of(A& a) {
  return a.word<ElementwiseFunction::rotary_unfused>(0, ElementwiseFunction::other);
}

// Rules by name.
constexpr std::pair<std::string_view, Make> kRules[] = {
    {"nothing", [](A&) { return nothing(); }},
    {"calls_others", [](A&) { return calls_others(); }},
    {"product", [](A& a) { return product(a.word<GemmForm::backward>(0)); }},
    {"product_backward", [](A& a) { return product_backward(a.word<true>(0)); }},
    {"einsum", [](A&) { return einsum(); }},
    {"convolution", [](A& a) { return convolution(a.word<ConvolutionForm::cudnn_backward>(0)); }},
    {"attends", [](A& a) { return attends(layout_of(a), a.number(1, -1)); }},
    {"attends_backward", [](A& a) { return attends_backward(layout_of(a), a.number(1, -1)); }},
    {"pointwise", [](A& a) { return pointwise(function_of(a), a.number(1, 1.0F)); }},
    {"pointwise_backward",
     [](A& a) { return pointwise_backward(function_of(a), a.number(1, 1.0F), a.number(2, 1)); }},
    {"foreach_list", [](A&) { return foreach_list(); }},
    {"traffic", [](A& a) { return traffic(a.word<KernelClass::other>(0), a.number(1, 0.0F)); }},
    {"reduces", [](A& a) { return reduces(a.number(0, 1.0F)); }},
    {"fused_name", [](A&) { return fused_name(); }},
    {"normalizes", [](A& a) { return normalizes(norm_of(a), a.number(1, -1)); }},
    {"normalizes_backward",
     [](A& a) { return normalizes_backward(norm_of(a), a.number(1, 0), a.number(2, -1)); }},
    {"softmax",
     [](A& a) {
       return softmax(a.word<SoftmaxKind::causal_masked>(0), direction_of(a, 1), a.number(2, -1));
     }},
    {"cross_entropy",
     [](A& a) {
       return cross_entropy(a.word<true>(0), a.word<Direction::weight_gradient>(1, Direction::forward));
     }},
    {"nll_loss", [](A& a) { return nll_loss(direction_of(a, 0)); }},
    {"copies", [](A&) { return copies(); }},
    {"clones", [](A&) { return clones(); }},
    {"moves", [](A& a) { return moves(a.word<MovementKind::fill>(0), a.number(1, -1), a.number(2, -1)); }},
    {"to_host", [](A&) { return to_host(); }},
    {"transfer", [](A& a) { return transfer(a.word<MemcpyKind::peer>(0)); }},
    {"embedding", [](A& a) { return embedding(direction_of(a, 0)); }},
    {"embedding_bag", [](A& a) { return embedding_bag(direction_of(a, 0)); }},
    {"table_batched", [](A& a) { return table_batched(direction_of(a, 0), a.word<true>(1)); }},
    {"optimizer", [](A& a) { return optimizer(a.word<OptimizerKind::adagrad>(0)); }},
    {"sparse", [](A& a) { return sparse(a.word<SparseForm::compressed>(0)); }},
};

}  // namespace

Result<std::vector<OpRow>> read_op_table() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("framework_ops.csv"), "framework_ops.csv"));
  std::vector<OpRow> table;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return table;
    OpRow row{rows.cell("names"), OpRole::unknown, {}};
    for (int role = 0; role <= static_cast<int>(OpRole::kernel); ++role)
      if (stepcast::to_string(static_cast<OpRole>(role)) == rows.cell("role"))
        row.role = static_cast<OpRole>(role);
    if (row.role == OpRole::unknown) return rows.error("role").expected("a role of framework_ops.h");
    const std::string_view text = rows.cell("rule");
    const std::size_t open = std::min(text.find('('), text.size());
    const auto* const rule =
        std::ranges::find(kRules, text.substr(0, open), &std::pair<std::string_view, Make>::first);
    if (rule == std::end(kRules) || !text.ends_with(')'))
      return rows.error("rule").expected("a function of op_rules.h and its arguments");
    Arguments arguments{text.substr(open + 1, text.size() - open - 2)};
    row.rule = rule->second(arguments);
    if (!arguments.fit()) return rows.error("rule", "its arguments do not fit");
    table.push_back(row);
  }
}

}  // namespace stepcast::detail
