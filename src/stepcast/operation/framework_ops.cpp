#include "stepcast/operation/framework_ops.h"

#include <algorithm>

#include "stepcast/base/names.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/operation/detail/op_rules.h"

// Lookup of operators in the table, and the common checks of their calls.

namespace stepcast {
namespace detail {
namespace {

// The table, read once.
const std::vector<OpRow>& op_table() {
  static const std::vector<OpRow> table = as_shipped(read_op_table());
  return table;
}

// Backward nodes that autograd generates; they always work through other operators.
constexpr OpRow kGeneratedBackward = {"*Backward<number>", OpRole::forwarding, calls_others()};

// A row under one of its names.
struct NamedRow {
  std::string_view name;
  const OpRow* row;
};

// One entry per name of every row.
std::vector<NamedRow> named_rows() {
  std::vector<NamedRow> all;
  for (const OpRow& row : op_table()) {
    for (std::string_view names = row.names; !names.empty();) {
      const std::size_t end = std::min(names.find(", "), names.size());
      all.push_back({names.substr(0, end), &row});
      names.remove_prefix(std::min(end + 2, names.size()));
    }
  }
  return all;
}

// Rows for lookup.
struct Index {
  std::vector<NamedRow> exact;     // sorted by name
  std::vector<NamedRow> prefixes;  // longest first
};

const Index& index() {
  static const Index built = [] {
    Index i;
    for (const NamedRow& row : named_rows()) (row.name.ends_with('*') ? i.prefixes : i.exact).push_back(row);
    std::ranges::sort(i.exact, {}, &NamedRow::name);
    std::ranges::sort(i.prefixes, [](const NamedRow& a, const NamedRow& b) {
      return a.name.size() != b.name.size() ? a.name.size() > b.name.size() : a.name < b.name;
    });
    return i;
  }();
  return built;
}

const OpRow* find_exact(std::string_view name) {
  const std::vector<NamedRow>& rows = index().exact;
  const auto at = std::ranges::lower_bound(rows, name, {}, &NamedRow::name);
  return at != rows.end() && at->name == name ? at->row : nullptr;
}

}  // namespace

std::string_view without_engine_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "autograd::engine::evaluate_function: ";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return name;
}

const OpRow* find_row(std::string_view name) {
  name = without_engine_prefix(name);
  if (const OpRow* row = find_exact(name); row != nullptr) return row;
  // "AddmmBackward0"
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const bool generated = digits < name.size() && name.substr(0, digits).ends_with("Backward");
  if (generated) {
    if (const OpRow* row = find_exact(name.substr(0, digits)); row != nullptr) return row;
  }
  // "aten::add_"
  if (name.ends_with('_')) {
    if (const OpRow* row = find_exact(name.substr(0, name.size() - 1)); row != nullptr) return row;
  }
  for (const auto& [prefix, row] : index().prefixes)
    if (name.starts_with(prefix.substr(0, prefix.size() - 1))) return row;
  return generated ? &kGeneratedBackward : nullptr;
}

}  // namespace detail

namespace {

constexpr std::int64_t kLargestExtent = std::int64_t{1} << 48;  // above the number of elements in any memory

// A name in quotes for messages: printable and at most 120 characters.
std::string quoted(std::string_view name) {
  constexpr std::size_t kMost = 120;
  std::string out = "\"";
  for (const char c : name.substr(0, kMost)) out += c >= ' ' && c != 127 ? c : '?';
  return out + (name.size() > kMost ? "...\"" : "\"");
}

constexpr auto kOpRoleNames = names<OpRole::kernel>(
    {"unknown", "annotation", "view", "communication", "forwarding", "composite", "kernel"});

}  // namespace

std::string_view to_string(OpRole role) { return kOpRoleNames[role]; }

OpRole role_of(std::string_view name) {
  const detail::OpRow* row = detail::find_row(name);
  return row == nullptr ? OpRole::unknown : row->role;
}

Result<OperationList> operations_of(const FrameworkCall& call) {
  const detail::OpRow* row = detail::find_row(call.name);
  if (row == nullptr) return Error("operator " + quoted(call.name) + " is not known");
  OperationList operations;
  FrameworkCall plain = call;
  plain.name = detail::without_engine_prefix(call.name);
  bool any_on_gpu = false, any_tensor = false, all_empty = true;
  for (const auto tensors : {call.inputs, call.outputs}) {
    for (const TensorArgument& tensor : tensors) {
      for (const std::int64_t extent : tensor.shape)
        if (extent < 0 || extent > kLargestExtent)
          return detail::missing(plain, "a tensor has the extent " + std::to_string(extent));
      any_tensor = true;
      any_on_gpu = any_on_gpu || tensor.on_gpu;
      all_empty = all_empty && tensor.elements() == 0;
    }
  }
  if (any_tensor && (!any_on_gpu || all_empty)) return operations;
  if (row->rule.run == nullptr) {
    if (std::holds_alternative<detail::WorksThroughOthers>(row->rule.details))
      return detail::missing(plain, "it works through the operators it calls");
    return operations;
  }
  if (const Status status = row->rule.run(plain, row->rule, operations); !status.ok()) return status.error();
  for (const Operation& operation : operations) {
    if (operation.dtype == DType::unknown)
      return detail::missing(plain, "the element type of its tensors is not known");
    if (const std::string problem = shape_problem(operation); !problem.empty())
      return detail::missing(plain, problem);
  }
  // No kernel is launched for tensors without elements.
  std::erase_if(operations, [](const Operation& operation) {
    const Work work = work_of(operation);
    return work.flops.value() <= 0 && work.bytes().value() <= 0;
  });
  return operations;
}

const std::vector<FrameworkOp>& framework_ops() {
  static const std::vector<FrameworkOp> rows = [] {
    std::vector<FrameworkOp> out;
    for (const auto& [name, row] : detail::named_rows())
      out.push_back({name, row->role, row->rule.family, row->rule.direction});
    std::ranges::sort(out, {}, &FrameworkOp::name);
    return out;
  }();
  return rows;
}

}  // namespace stepcast
