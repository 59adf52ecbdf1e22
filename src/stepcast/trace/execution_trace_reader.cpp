// Reads PyTorch execution traces: an object with a list of nodes, schemas 1.0.1 to 1.1.1. The file is read as
// a stream (json_splitter.h); nodes keep texts of shapes, types and values, which are interpreted later.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/byte_source.h"
#include "stepcast/trace/detail/dry_run_fields.h"
#include "stepcast/trace/detail/et_node.h"
#include "stepcast/trace/detail/interner.h"
#include "stepcast/trace/detail/json_splitter.h"
#include "stepcast/trace/detail/quote.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

using detail::EtNodeText;
using detail::JsonCursor;
using detail::JsonSplitter;
using detail::JsonText;

using namespace std::string_view_literals;

// Limits for untrusted files: number of skip reasons, and depth of nested tensor lists.
constexpr std::size_t kMostSkipReasons = 100;
constexpr int kDeepestTensorList = 16;

std::int32_t narrow(std::int64_t value, std::int32_t otherwise) {
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    return otherwise;
  return static_cast<std::int32_t>(value);
}

// Reads [tensor, storage, offset, numel, itemsize, "device"]. False if the value is not a tensor.
bool read_tensor(JsonCursor c, TensorUse& tensor) {
  std::int64_t numbers[5] = {};
  std::string_view text;
  c.enter('[');
  for (std::int64_t& number : numbers) {
    if (!c.next_element()) return false;
    const char first = c.peek();
    if (first == '"' || first == '[' || first == '{') return false;
    if (!c.raw_value(text) || !detail::parse_integer(text, number)) return false;
  }
  JsonText device;
  if (!c.next_element() || c.peek() != '"' || !c.string(device)) return false;
  if (c.next_element() || c.failed()) return false;
  tensor = {
      .tensor = numbers[0],
      .storage = numbers[1],
      .offset = numbers[2],
      .elements = numbers[3],
      .element_bytes = narrow(numbers[4], 0),
      .on_gpu = !device.raw.empty() && !device.raw.starts_with("cpu"sv) && !device.raw.starts_with("meta"sv)};
  return true;
}

// Appends the tensors of a list of values, including those in nested lists.
void read_tensors(JsonCursor& c, std::vector<TensorUse>& out, int depth) {
  for (c.enter('['); c.next_element();) {
    TensorUse tensor;
    const bool list = c.peek() == '[';
    const bool is_tensor = list && read_tensor(c, tensor);
    if (is_tensor) out.push_back(tensor);
    if (list && !is_tensor && depth < kDeepestTensorList)
      read_tensors(c, out, depth + 1);
    else
      c.skip_value();
  }
}

// The raw texts of the elements of a JSON list.
std::vector<std::string_view> elements_of(std::string_view list) {
  std::vector<std::string_view> items;
  if (list.empty()) return items;
  JsonCursor c(list);
  std::string_view item;
  for (c.enter('['); c.next_element();)
    if (c.raw_value(item)) items.push_back(item);
  return items;
}

bool is_text(std::string_view json) { return json.size() >= 2 && json.front() == '"'; }
std::string_view inside(std::string_view text) { return text.substr(1, text.size() - 2); }

// An integer, or the first element of a tuple: "[5, false]" is the sequence number of a point-to-point
// operation.
std::int64_t number_or_first(std::string_view json, std::int64_t otherwise) {
  if (!json.empty() && json.front() == '[') {
    const auto items = elements_of(json);
    if (items.empty()) return otherwise;
    json = items.front();
  }
  std::int64_t value = 0;
  return detail::parse_integer(json, value) ? value : otherwise;
}

// The first element type: "GenericList[Tensor(float)]" -> "float"; empty if there is none.
std::string_view element_type(std::string_view types) {
  constexpr std::string_view kTensor = "Tensor(";
  const std::size_t at = types.find(kTensor);
  if (at == std::string_view::npos) return {};
  types.remove_prefix(at + kTensor.size());
  return types.substr(0, types.find(')'));
}

// Builds an ExecutionTrace from nodes in the order of the file.
class EtBuilder {
 public:
  explicit EtBuilder(std::string file) : interner_(trace_.names) { trace_.file = std::move(file); }
  EtBuilder(const EtBuilder&) = delete;
  EtBuilder& operator=(const EtBuilder&) = delete;

  // Takes a member of the top-level object: the schema, or the facts of a dry run.
  Status read_header(std::string_view key, std::string_view value) {
    if (key == "stepcast"sv) return detail::read_dry_run(value, trace_.file, trace_);
    if (key != "schema"sv) return Ok{};
    JsonCursor c(value);
    JsonText text;
    if (c.peek() == '"' && c.string(text)) trace_.schema = text.raw.substr(0, 64);
    return Ok{};
  }

  // Adds a node. False if there are more tensors than 32-bit indices.
  bool add(const EtNodeText& text) {
    if (text.is_merged_event) {
      std::string reason(text.category.raw.empty() ? "no category"sv : text.category.raw.substr(0, 64));
      if (trace_.skipped.size() >= kMostSkipReasons && !trace_.skipped.contains(reason))
        reason = "other categories";
      ++trace_.skipped[reason];
      return true;
    }
    EtNode node{.id = text.id,
                .parent = text.parent,
                .order = text.rf_id != -1 ? text.rf_id : text.id,
                .sequence_number = text.sequence_number,
                .forward_parent = text.forward_parent,
                .thread = narrow(text.thread, 0),
                .forward_thread = narrow(text.forward_thread, 0),
                .name = interner_.text(text.name)};
    if (!text.input_shapes.empty()) node.input_shapes = interner_.compact_json(text.input_shapes);
    if (!text.input_types.empty()) node.input_types = interner_.compact_json(text.input_types);
    if (!text.output_shapes.empty()) node.output_shapes = interner_.compact_json(text.output_shapes);
    if (!text.output_types.empty()) node.output_types = interner_.compact_json(text.output_types);
    node.values = scalars(text.inputs, text.input_types);
    node.first_input = static_cast<std::uint32_t>(trace_.tensors.size());
    add_tensors(text.inputs);
    node.first_output = static_cast<std::uint32_t>(trace_.tensors.size());
    add_tensors(text.outputs);
    node.end_output = static_cast<std::uint32_t>(trace_.tensors.size());
    if (trace_.tensors.size() > std::numeric_limits<std::uint32_t>::max()) return false;
    if (text.name.raw == "record_param_comms"sv) {
      add_collective(text, node);
      node.collective = static_cast<std::int32_t>(trace_.collectives.size()) - 1;
    } else if (text.name.raw.starts_with("## process_group:init ##"sv)) {
      add_groups(text.inputs);
    }
    add_dry_run(text, node);
    trace_.nodes.push_back(node);
    return true;
  }

  // Completes the trace. The rank is set if all collectives agree on it.
  ExecutionTrace finish() {
    if (!trace_.dry_run && !ranks_differ_) trace_.rank = rank_;
    const auto n = static_cast<std::uint32_t>(trace_.nodes.size());
    for (EtRuntimeCall& call : trace_.runtime_calls) call.before = std::min(call.before, n);
    std::ranges::stable_sort(trace_.runtime_calls, {}, &EtRuntimeCall::before);
    return std::move(trace_);
  }

 private:
  // The values without tensors, as JSON. There are few different ones, so interning them is cheap.
  NameId scalars(std::string_view values, std::string_view types) {
    if (values.empty()) return {};
    constexpr std::size_t kLongest = 512;
    const std::vector<std::string_view> type_of = elements_of(types);
    std::string& out = scratch_;
    out = "[";
    std::size_t i = 0;
    for (const std::string_view value : elements_of(values)) {
      const bool tensor = i < type_of.size() && type_of[i].find("Tensor") != std::string_view::npos;
      if (i > 0) out += ',';
      out += tensor || value.size() > kLongest ? "null"sv : value;
      ++i;
    }
    out += ']';
    return interner_.compact_json(out);
  }

  // Reads process groups from the only value of the node, a text with a JSON list.
  void add_groups(std::string_view values) {
    JsonCursor c(values);
    c.enter('[');
    JsonText list;
    if (!c.next_element() || c.peek() != '"' || !c.string(list)) return;
    if (!list.escaped) scratch_ = list.raw;
    if (list.escaped && !detail::unescape(list.raw, scratch_)) return;
    for (EtGroup& group : detail::read_groups(scratch_, trace_.names)) {
      const auto known = std::ranges::find(trace_.groups, group.name, &EtGroup::name);
      if (known == trace_.groups.end()) trace_.groups.push_back(std::move(group));
    }
  }

  // Takes the fields that only dry runs write. Other files with fields of these names are not affected.
  void add_dry_run(const EtNodeText& text, EtNode& node) {
    if (!trace_.dry_run) return;  // the header precedes the nodes
    node.stream = narrow(text.stream, -1);
    node.host_waits = text.sync.raw == "stream"sv;
    node.copy = text.copy.raw == "HtoD"sv   ? EtCopy::to_device
                : text.copy.raw == "DtoH"sv ? EtCopy::to_host
                                            : EtCopy::none;
    if (!text.runtime_before.raw.empty()) {
      detail::read_runtime_calls(text.runtime_before.raw, static_cast<std::uint32_t>(trace_.nodes.size()),
                                 trace_.runtime_calls);
    }
  }

  void add_tensors(std::string_view values) {
    if (values.empty()) return;
    JsonCursor c(values);
    read_tensors(c, trace_.tensors, 0);
  }

  // Reads a collective from its inputs: [tensors,] sequence, process group, rank, name, in-split, out-split[,
  // size | , start, stride, size]. The name is the only text among them and therefore the anchor. The process
  // group is a pointer as a number, or ["name", "description"].
  void add_collective(const EtNodeText& text, const EtNode& node) {
    EtCollective info;
    const std::vector<std::string_view> items = elements_of(text.inputs);
    std::size_t name = 0;
    while (name < items.size() && !is_text(items[name])) ++name;
    std::int64_t rank_in_group = -1;
    std::int64_t start = 0;
    std::int64_t stride = 1;
    if (name < items.size()) {
      info.op = parse_collective_op(inside(items[name]));
      info.is_wait = inside(items[name]) == "wait"sv;
      if (name >= 1) rank_in_group = number_or_first(items[name - 1], -1);
      if (name >= 2) info.process_group = process_group(items[name - 2]);
      if (name >= 3) info.sequence = number_or_first(items[name - 3], -1);
      if (name + 1 < items.size()) read_split({items[name + 1], false}, info.in_split);
      if (name + 2 < items.size()) read_split({items[name + 2], false}, info.out_split);
      if (name + 3 < items.size()) info.group_size = narrow(number_or_first(items.back(), -1), -1);
      if (name + 5 < items.size()) {
        start = number_or_first(items[name + 3], 0);
        stride = number_or_first(items[name + 4], 1);
      }
    }
    info.elements_in = elements_in(trace_.inputs(node));
    info.elements_out = elements_in(trace_.outputs(node));
    info.dtype = parse_dtype(element_type(text.input_types.empty() ? text.output_types : text.input_types));
    take_attributes(text, info);
    if (info.op == CollectiveOp::send || info.op == CollectiveOp::receive) info.peer = rank_in_group;
    if (names_own_rank(info) && rank_in_group >= 0) note_rank(rank_in_group, start, stride);
    trace_.collectives.push_back(std::move(info));
  }

  // Attributes of newer schemas override the inputs.
  void take_attributes(const EtNodeText& text, EtCollective& info) {
    if (!text.collective_name.raw.empty()) {
      info.op = parse_collective_op(text.collective_name.raw);
      info.is_wait = text.collective_name.raw == "wait"sv;
    }
    if (!text.dtype.raw.empty()) info.dtype = parse_dtype(text.dtype.raw);
    if (text.elements_in != -1) info.elements_in = text.elements_in;
    if (text.elements_out != -1) info.elements_out = text.elements_out;
    if (text.group_size != -1) info.group_size = narrow(text.group_size, -1);
    if (!text.group_name.raw.empty()) info.process_group = interner_.text(text.group_name);
    info.has_stream = text.waits_later;
    if (!text.in_split.raw.empty()) read_split(text.in_split, info.in_split);
    if (!text.out_split.raw.empty()) read_split(text.out_split, info.out_split);
  }

  // Reads the elements per peer; empty if the text is not a list.
  static void read_split(const JsonText& text, std::vector<std::int64_t>& out) {
    if (!detail::parse_integer_list<std::int64_t>(text.raw, out)) out.clear();
  }

  // The name of a process group; invalid for the default group.
  NameId process_group(std::string_view json) {
    if (!json.empty() && json.front() == '[') {
      const auto items = elements_of(json);
      if (items.empty() || !is_text(items.front()) || items.front().size() == 2) return {};
      return interner_.text({inside(items.front()), true});
    }
    if (is_text(json) || json == "0"sv) return {};
    return interner_.text({json, false});
  }

  // The total number of elements; -1 without tensors.
  static std::int64_t elements_in(std::span<const TensorUse> tensors) {
    if (tensors.empty()) return -1;
    std::uint64_t sum = 0;  // unsigned, since damaged files can contain any number
    for (const TensorUse& tensor : tensors) sum += static_cast<std::uint64_t>(tensor.elements);
    return static_cast<std::int64_t>(sum);
  }

  // True if the recorded rank is this rank. For collectives with a root or a peer it is that of the root or
  // peer.
  static bool names_own_rank(const EtCollective& info) {
    switch (info.op) {
      case CollectiveOp::all_reduce:
      case CollectiveOp::all_gather:
      case CollectiveOp::reduce_scatter:
      case CollectiveOp::all_to_all: return !info.is_wait;
      default: return false;
    }
  }

  // Notes the world rank that follows from a rank in a group. Collectives that disagree make the rank
  // unknown.
  void note_rank(std::int64_t rank_in_group, std::int64_t start, std::int64_t stride) {
    constexpr std::int64_t kMost = 1 << 24;  // more ranks than any job has
    if (rank_in_group > kMost || start < 0 || start > kMost || stride < 1 || stride > kMost) return;
    const std::int64_t rank = start + rank_in_group * stride;
    if (rank > std::numeric_limits<std::int32_t>::max()) return;
    if (rank_ && *rank_ != rank) ranks_differ_ = true;
    rank_ = static_cast<std::int32_t>(rank);
  }

  ExecutionTrace trace_;
  detail::Interner interner_;
  std::string scratch_;
  std::optional<std::int32_t> rank_;
  bool ranks_differ_ = false;
};

// Reads a whole file. Errors name the node and the byte.
Result<ExecutionTrace> read_nodes(ByteSource& source) {
  JsonSplitter splitter(source, {"nodes", "traceEvents"});
  EtBuilder builder(source.name());
  EtNodeText node;
  detail::EtProblem problem;
  bool has_list = false;
  const auto place = [&splitter](std::size_t position) {
    return "nodes[" + std::to_string(splitter.index()) + "] at byte " +
           std::to_string(splitter.offset() + position);
  };
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
        STEPCAST_TRY(builder.read_header(splitter.key(), splitter.text()));
        break;
      case JsonSplitter::Step::list:
        if (splitter.key() != "nodes") {
          return Error::at(source.name(), "")
              .found(splitter.key().empty() ? "a JSON list" : "a profiler trace (a list of \"traceEvents\")")
              .expected("a PyTorch execution trace (an object with a list of \"nodes\")");
        }
        has_list = true;
        break;
      case JsonSplitter::Step::element:
        if (splitter.text().front() != '{') {
          return Error::at(source.name(), place(0))
              .found(detail::quote_for_message(splitter.text()))
              .expected("a node (a JSON object)");
        }
        if (!detail::read_et_node(splitter.text(), node, problem)) {
          return Error::at(source.name(), place(problem.position))
              .found(std::move(problem.found))
              .expected(std::move(problem.expected))
              .advice("the node is damaged");
        }
        if (!builder.add(node)) {
          return Error::at(source.name(), place(0))
              .found("more than 4294967295 tensors")
              .expected("at most that many");
        }
        break;
      case JsonSplitter::Step::end:
        if (!has_list) {
          return Error::at(source.name(), "")
              .found("a JSON object without \"nodes\"")
              .expected("a PyTorch execution trace");
        }
        return builder.finish();
      case JsonSplitter::Step::error: return splitter.take_error();
    }
  }
}

}  // namespace

Result<ExecutionTrace> read_execution_trace(const std::filesystem::path& file, const ReadOptions& options) {
  ByteSource::Options source_options;
  source_options.progress = options.progress;
  source_options.max_bytes = options.max_inflated_bytes;
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, std::move(source_options)));
  return read_nodes(source);
}

Result<ExecutionTrace> parse_execution_trace(std::string_view content, std::string name) {
  ByteSource source = ByteSource::from_memory(content, std::move(name));
  return read_nodes(source);
}

}  // namespace stepcast
