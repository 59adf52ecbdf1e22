// Writes an operation graph as a Chakra execution trace. The protobuf encoding is written directly, without a
// library. Field numbers and attribute names are those that chakra_reader.cpp reads.
#include "stepcast/trace/chakra_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace stepcast {
namespace {

constexpr std::int64_t kLongestNanos = std::int64_t{1} << 62;

// Protobuf primitives: a varint, a field with a number, and a field with bytes.
void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}
void put_number(std::string& out, std::uint64_t field, std::uint64_t value) {
  put_varint(out, field << 3);
  put_varint(out, value);
}
void put_text(std::string& out, std::uint64_t field, std::string_view text) {
  put_varint(out, field << 3 | 2);
  put_varint(out, text.size());
  out += text;
}

// Field numbers of AttributeProto by type of the value.
constexpr std::uint64_t kInt64 = 9, kInt64List = 10, kBool = 27, kString = 29;

// An attribute with an integer or boolean value.
void put_attribute(std::string& out, std::uint64_t message_field, std::string_view name, std::int64_t value,
                   std::uint64_t type = kInt64) {
  std::string attribute;
  put_text(attribute, 1, name);
  put_number(attribute, type, static_cast<std::uint64_t>(value));
  put_text(out, message_field, attribute);
}
// An attribute with a text.
void put_attribute(std::string& out, std::uint64_t message_field, std::string_view name,
                   std::string_view value) {
  std::string attribute;
  put_text(attribute, 1, name);
  put_text(attribute, kString, value);
  put_text(out, message_field, attribute);
}

// The nearest whole number, within the range of the format.
std::int64_t whole(double value) {
  constexpr auto kLargest = static_cast<double>(kLongestNanos);
  return std::llround(std::clamp(value, -kLargest, kLargest));
}
std::int64_t nanos(double us) { return whole(us * 1e3); }

// The value of the field `type`.
std::uint64_t node_type(const GraphNode& node) {
  switch (node.kind) {
    case GraphNode::Kind::memory_load: return 2;
    case GraphNode::Kind::memory_store: return 3;
    case GraphNode::Kind::computation: return 4;
    case GraphNode::Kind::send: return 5;
    case GraphNode::Kind::receive: return 6;
    case GraphNode::Kind::collective: return 7;
  }
  return 4;
}

// The value of `comm_type`. Chakra has no value for grouped sends and receives; they are written as an
// all-to-all, which moves the same data.
std::int64_t collective_type(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce: return 0;
    case CollectiveOp::reduce: return 1;
    case CollectiveOp::all_gather: return 2;
    case CollectiveOp::gather: return 3;
    case CollectiveOp::scatter: return 4;
    case CollectiveOp::broadcast: return 5;
    case CollectiveOp::reduce_scatter: return 7;
    case CollectiveOp::barrier: return 9;
    case CollectiveOp::unknown:
    case CollectiveOp::all_to_all:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::send_receive: break;
  }
  return 6;
}

}  // namespace

// Nodes are written in their order in the graph. Field numbers of a node are those of chakra_reader.cpp: id,
// name, type, data dependencies, start, duration, attributes.
std::string chakra_text(const OperationGraph& graph) {
  std::string out, message;
  const auto finish = [&] {
    put_varint(out, message.size());
    out += message;
    message.clear();
  };
  put_text(message, 1, "0.0.4");
  if (graph.rank) put_attribute(message, 2, "rank", *graph.rank);
  if (graph.step) {
    put_attribute(message, 2, "step_number", graph.step->number);
    put_attribute(message, 2, "step_start_nanos", nanos(graph.step->start_us));
    put_attribute(message, 2, "rank_begin_node",
                  static_cast<std::int64_t>(graph.nodes[graph.step->begin_node].id));
    put_attribute(message, 2, "step_end_node",
                  static_cast<std::int64_t>(graph.nodes[graph.step->end_node].id));
    put_attribute(message, 2, "step_ends_at_start", graph.step->ends_at_start ? 1 : 0, kBool);
  }
  finish();
  // Per lane: exact time so far, and time written in whole microseconds. The difference is carried over, so
  // that rounding errors do not accumulate.
  std::map<std::pair<bool, std::int64_t>, std::pair<double, std::int64_t>> of_lane;
  constexpr std::uint64_t kAttribute = 10;
  for (const GraphNode& node : graph.nodes) {
    if (node.id > 0) put_number(message, 1, node.id);
    put_text(message, 2, graph.names.text(node.name));
    put_number(message, 3, node_type(node));
    std::string ids, delays;
    bool delayed = false;
    for (std::size_t d = node.first_dependency; d < node.end_dependency; ++d) {
      put_varint(ids, graph.nodes[graph.dependencies[d]].id);
      const std::int64_t delay = graph.delays_us.empty() ? 0 : nanos(graph.delays_us[d]);
      put_varint(delays, static_cast<std::uint64_t>(delay));
      delayed |= delay != 0;
    }
    if (!ids.empty()) put_text(message, 5, ids);
    if (node.start_us > 0) put_number(message, 6, static_cast<std::uint64_t>(whole(node.start_us)));
    if (node.duration_us >= 0) {
      auto& [exact, written] = of_lane[{node.on_cpu, node.lane}];
      exact += node.duration_us;
      const std::int64_t us = std::max<std::int64_t>(0, whole(exact) - written);
      written += us;
      if (us > 0) put_number(message, 7, static_cast<std::uint64_t>(us));
      put_attribute(message, kAttribute, "duration_nanos", nanos(node.duration_us));
    }
    put_attribute(message, kAttribute, "is_cpu_op", node.on_cpu ? 1 : 0, kBool);
    if (node.lane >= 0) put_attribute(message, kAttribute, node.on_cpu ? "tid" : "stream", node.lane);
    const bool transfers = node.kind == GraphNode::Kind::collective || node.kind == GraphNode::Kind::send ||
                           node.kind == GraphNode::Kind::receive;
    if (node.kind == GraphNode::Kind::collective)
      put_attribute(message, kAttribute, "comm_type", collective_type(node.op));
    if (node.bytes >= 0)
      put_attribute(message, kAttribute, transfers ? "comm_size" : "tensor_size", whole(node.bytes));
    if (node.flops >= 0) put_attribute(message, kAttribute, "num_ops", whole(node.flops));
    if (node.group.valid()) put_attribute(message, kAttribute, "pg_name", graph.names.text(node.group));
    if (node.peer >= 0)
      put_attribute(message, kAttribute, node.kind == GraphNode::Kind::send ? "comm_dst" : "comm_src",
                    node.peer);
    if (transfers && node.tag != 0) put_attribute(message, kAttribute, "comm_tag", node.tag);
    if (delayed) {
      std::string list, attribute;
      put_text(list, 1, delays);
      put_text(attribute, 1, "delay_nanos");
      put_text(attribute, kInt64List, list);
      put_text(message, kAttribute, attribute);
    }
    finish();
  }
  return out;
}

}  // namespace stepcast
