// Converts the operators of a profiler trace into the form of an execution trace, so that the same code reads
// their operations. Types and values are translated from Python spelling; missing shapes of outputs are
// recovered from other operators where possible.
#include "stepcast/rebuild/profiled_operators.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/scan.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/rebuild/detail/call_parser.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast {
namespace {

std::string_view inside_quotes(std::string_view json) {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

// A value in the spelling of execution traces, and its type.
struct Typed {
  std::string type, value;
};
// Translates a Python scalar: bool, int, float; other texts become None.
Typed scalar(std::string_view text) {
  if (text == "True" || text == "False") return {"Bool", text == "True" ? "true" : "false"};
  if (text.empty() || text == "None") return {"None", "null"};
  const bool number = text.find_first_not_of("-0123456789") == std::string_view::npos;
  if (number) return {"Int", std::string(text)};
  if (text.find_first_not_of("-+.0123456789eE") == std::string_view::npos)
    return {"Double", std::string(text)};
  return {"None", "null"};
}
// Translates a Python list of numbers or bools.
Typed list(std::string_view text) {
  Typed out{"GenericList[Int]", {}};
  for (const char c : text)
    if (c != ' ') out.value += c;
  for (const auto& [python, json] : {std::pair{"True", "true"}, std::pair{"False", "false"}})
    for (std::size_t at = out.value.find(python); at != std::string::npos; at = out.value.find(python))
      out.value.replace(at, std::string_view(python).size(), json);
  return out;
}

// "Input type" and "Concrete Inputs" in the spelling of execution traces, and the number of tensors.
struct Texts {
  std::string types = "[", values = "[";
  int tensors = 0;
};
// Argument by argument. Unknown types become arguments without a value.
Texts translate(std::string_view types, std::string_view values, std::string_view shapes) {
  Texts out;
  const std::vector<std::string_view> value = detail::list_elements(values);
  const std::vector<std::string_view> shape = detail::list_elements(shapes);
  std::size_t i = 0;
  for (const std::string_view quoted : detail::list_elements(types)) {
    const std::string_view type = inside_quotes(quoted);
    const std::string_view text = i < value.size() ? inside_quotes(value[i]) : std::string_view{};
    Typed typed{"None", "null"};
    // Lists of tensors have one type and often no shapes, so they stay without a value.
    if (type == "Scalar") {
      typed = scalar(text);
    } else if (type == "ScalarList") {
      typed = list(text);
    } else if (parse_dtype(type) != DType::unknown) {
      typed = {"Tensor(" + std::string(type) + ")", "null"};
      ++out.tensors;
    }
    out.types += (i > 0 ? ",\"" : "\"") + typed.type + '"';
    out.values += (i > 0 ? "," : "") + typed.value;
    ++i;
  }
  out.types += ']';
  out.values += ']';
  return out;
}

// The extents of tensor i in "[[32, 3, 224, 224], [64, 3, 7, 7], []]"; empty if it is not a tensor.
std::vector<std::int64_t> extents(std::string_view shapes, std::size_t i) {
  std::vector<std::int64_t> out;
  const std::vector<std::string_view> tensors = detail::list_elements(shapes);
  if (i >= tensors.size()) return out;
  for (std::string_view text : detail::list_elements(tensors[i])) {
    const auto extent = scan_front<std::int64_t>(text);
    if (!extent) return {};
    out.push_back(*extent);
  }
  return out;
}

// Number of operators after a convolution that are examined for its output.
constexpr std::size_t kOperatorsBehind = 64;

// The shape of the output of forward convolution `i`, taken from an operator that uses it; empty if none is
// found. If the trace has no values of arguments, nothing else shows the stride.
std::vector<std::int64_t> output_of_convolution(const RecordedRank& recorded, std::size_t i) {
  const CpuOp& op = recorded.cpu_ops[i];
  const std::string_view name = recorded.names.text(op.name);
  if (!name.starts_with("aten::") || name.find("conv") == std::string_view::npos ||
      name.find("backward") != std::string_view::npos || op.input_values.valid() || !op.input_shapes.valid())
    return {};
  const std::string_view shapes = recorded.names.text(op.input_shapes);
  const std::vector<std::int64_t> x = extents(shapes, 0), w = extents(shapes, 1);
  if (x.size() != 4 || w.size() != 4) return {};
  std::size_t seen = 0;
  for (std::size_t next = i + 1; next < recorded.cpu_ops.size() && seen < kOperatorsBehind; ++next) {
    const CpuOp& behind = recorded.cpu_ops[next];
    if (behind.thread != op.thread || behind.start < op.end()) continue;
    ++seen;
    if (!behind.input_shapes.valid()) continue;
    std::vector<std::int64_t> y = extents(recorded.names.text(behind.input_shapes), 0);
    if (y.size() == 4 && y[0] == x[0] && y[1] == w[0]) return y;
  }
  return {};
}

// The shape of the result of `aten::index` number `i`. The operator views its source with this shape through
// an inner `aten::as_strided`. Its index tensors are a list, which has no shapes in the trace.
std::vector<std::int64_t> output_of_indexing(const RecordedRank& recorded, std::size_t i) {
  const CpuOp& op = recorded.cpu_ops[i];
  if (recorded.names.text(op.name) != "aten::index") return {};
  for (std::size_t next = i + 1; next < recorded.cpu_ops.size(); ++next) {
    const CpuOp& inside = recorded.cpu_ops[next];
    if (inside.thread != op.thread) continue;
    if (inside.start >= op.end()) break;
    if (recorded.names.text(inside.name) != "aten::as_strided" || !inside.input_values.valid()) continue;
    const std::vector<std::string_view> values =
        detail::list_elements(recorded.names.text(inside.input_values));
    if (values.size() < 2) return {};
    return extents(fmt::format("[{}]", list(inside_quotes(values[1])).value), 0);
  }
  return {};
}

}  // namespace

Result<ProfiledOperators> profiled_operators(const RecordedRank& recorded) {
  const bool has_shapes = std::ranges::any_of(
      recorded.cpu_ops, [](const CpuOp& op) { return op.input_types.valid() && op.input_shapes.valid(); });
  if (!has_shapes) {
    return Error::at(recorded.file, "the operators")
        .found("no shapes and types of their inputs")
        .expected("\"Input Dims\" and \"Input type\"")
        .advice("record with record_shapes=True, or give an execution trace of the same run");
  }
  const detail::RecordedStep whole = detail::whole_file(recorded);
  return profiled_operators(detail::link_rank(recorded, whole, whole.start));
}

// Nodes are numbered by the position of their operator. Parents outside of the launched operators do not
// occur, since all ancestors of a launching operator are included.
ProfiledOperators profiled_operators(const detail::RankGraph& graph) {
  const RecordedRank& recorded = *graph.recorded;
  const std::size_t n = recorded.cpu_ops.size();
  std::set<std::int32_t> launched;
  std::unordered_map<std::int32_t, MemcpyKind> copied;  // by the launching operator
  for (const detail::GpuWork& work : graph.gpu) {
    std::int32_t op = work.op;
    if (op != detail::kNone) copied[op] = work.copy;
    while (op != detail::kNone && launched.insert(op).second)
      op = graph.parent_of_op[static_cast<std::size_t>(op)];
  }

  ProfiledOperators out;
  out.trace.file = recorded.file;
  out.trace.schema = recorded.schema;
  StringTable& names = out.trace.names;
  const auto intern = [&](NameId name) {
    return name.valid() ? names.intern(recorded.names.text(name)) : name;
  };
  out.node_of_op.assign(n, -1);
  constexpr std::int64_t kRoot = 1;
  for (const std::int32_t number : launched) {
    const auto i = static_cast<std::size_t>(number);
    const CpuOp& op = recorded.cpu_ops[i];
    const std::int32_t parent = graph.parent_of_op[i];
    EtNode node{.id = static_cast<std::int64_t>(i) + kRoot + 1,
                .parent = parent == detail::kNone ? kRoot : parent + kRoot + 1};
    node.order = node.id;
    node.sequence_number = op.sequence_number;
    node.name = intern(op.name);
    node.input_shapes = intern(op.input_shapes);
    node.first_input = static_cast<std::uint32_t>(out.trace.tensors.size());
    if (op.input_types.valid()) {
      const Texts texts = translate(recorded.names.text(op.input_types), recorded.names.text(op.input_values),
                                    recorded.names.text(op.input_shapes));
      node.input_types = names.intern(texts.types);
      node.values = names.intern(texts.values);
      // copy_(to, from): the direction of the copy shows which tensor is on the host.
      const auto copy = copied.find(number);
      const MemcpyKind kind = copy == copied.end() ? MemcpyKind::none : copy->second;
      for (int tensor = 0; tensor < texts.tensors; ++tensor) {
        const bool from_host = kind == MemcpyKind::host_to_device && tensor == 1;
        const bool to_host = kind == MemcpyKind::device_to_host && tensor == 0 && texts.tensors > 1;
        out.trace.tensors.push_back({.on_gpu = !from_host && !to_host});
      }
    }
    node.first_output = static_cast<std::uint32_t>(out.trace.tensors.size());
    std::vector<std::int64_t> y = output_of_convolution(recorded, i);
    if (y.empty()) y = output_of_indexing(recorded, i);
    if (!y.empty()) {
      const Texts texts = translate(recorded.names.text(op.input_types), {}, {});
      const std::vector<std::string_view> types = detail::list_elements(texts.types);
      node.output_shapes = out.trace.names.intern(fmt::format("[[{}]]", fmt::join(y, ",")));
      node.output_types = out.trace.names.intern(fmt::format("[{}]", types.empty() ? "" : types.front()));
      out.trace.tensors.push_back({.on_gpu = true});
    }
    node.end_output = static_cast<std::uint32_t>(out.trace.tensors.size());
    out.node_of_op[i] = static_cast<std::int32_t>(out.trace.nodes.size());
    out.trace.nodes.push_back(node);
  }
  return out;
}

}  // namespace stepcast
