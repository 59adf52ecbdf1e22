// Reads Chakra execution traces: protobuf messages, each preceded by its length. The first message is the
// global metadata; in old files it is already a node. Fields and numbers are those of mlcommons/chakra,
// schema/protobuf/et_def.proto. The file is read as a stream; dependencies are resolved after all nodes are
// known.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/trace/detail/leading_bytes.h"
#include "stepcast/trace/detail/protobuf.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

using detail::ProtobufFields;
using detail::take_varint;

// Largest message in bytes. A node names at most a few thousand other nodes, and metadata contain at most a
// few configuration files.
constexpr std::uint64_t kLongestMessage = std::uint64_t{1} << 28;
constexpr std::size_t kLongestVarint = 10;
constexpr std::size_t kBlock = std::size_t{1} << 16;
// Largest time in microseconds, about thirty years.
constexpr std::int64_t kLongestTimeUs = 1'000'000'000'000'000;
constexpr std::size_t kLongestSchema = 64;

// Field numbers of a node in the .proto file.
enum NodeField : std::uint8_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kControlDependencies = 4,
  kDataDependencies = 5,
  kStartTime = 6,
  kDuration = 7,
  kNodeAttributes = 10,
};
// Values of the field `type`.
enum NodeType : std::uint8_t {
  kInvalid = 0,
  kMetadata = 1,
  kMemoryLoad = 2,
  kMemoryStore = 3,
  kComputation = 4,
  kSend = 5,
  kReceive = 6,
  kCollective = 7,
};

// The collective for a value of the attribute `comm_type`; unknown for other values.
CollectiveOp collective_op(std::int64_t comm_type) {
  switch (comm_type) {
    case 0: return CollectiveOp::all_reduce;
    case 1: return CollectiveOp::reduce;
    case 2: return CollectiveOp::all_gather;
    case 3: return CollectiveOp::gather;
    case 4: return CollectiveOp::scatter;
    case 5: return CollectiveOp::broadcast;
    case 6: return CollectiveOp::all_to_all;
    case 7:
    case 8: return CollectiveOp::reduce_scatter;
    case 9: return CollectiveOp::barrier;
    default: return CollectiveOp::unknown;
  }
}

// An attribute of a node or of the metadata.
struct Attribute {
  std::string_view name;
  std::string_view text;  // of strings and bytes
  std::string_view list;  // a list of int64, as a message
  double number = 0;
  std::int64_t integer = 0;  // 0 if it is not a whole number
  bool has_number = false;
};

// Decodes the zigzag encoding of sint32 and sint64.
std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Reads an attribute. The field number depends on the type of the value. Lists other than of int64 are not
// needed and skipped. False if the message is damaged.
bool read_attribute(std::string_view message, Attribute& attribute) {
  ProtobufFields f{message};
  const auto whole = [&](std::int64_t value) {
    attribute.has_number = true;
    attribute.integer = value;
    attribute.number = static_cast<double>(value);
  };
  while (f.next()) {
    if (f.is_bytes()) {
      if (f.number() == 1) attribute.name = f.bytes();
      if (f.number() == 29 || f.number() == 31) attribute.text = f.bytes();
      if (f.number() == 10) attribute.list = f.bytes();
      continue;
    }
    switch (f.number()) {
      case 3:
        attribute.has_number = true;
        attribute.number = std::bit_cast<double>(f.value());
        break;
      case 5:
        attribute.has_number = true;
        attribute.number = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(f.value())));
        break;
      case 7:
      case 9:
      case 11:
      case 19:
      case 25:
      case 27: whole(static_cast<std::int64_t>(f.value())); break;
      case 13:
      case 21:
        whole(static_cast<std::int64_t>(f.value()));
        attribute.number = static_cast<double>(f.value());
        break;
      case 15:
      case 17: whole(zigzag(f.value())); break;
      case 23: whole(static_cast<std::int32_t>(static_cast<std::uint32_t>(f.value()))); break;
      default: break;
    }
  }
  return !f.damaged();
}

// Reads a repeated integer field, packed or not, and appends its values. False if it is damaged.
bool read_ids(const ProtobufFields& f, std::vector<std::uint64_t>& ids) {
  if (!f.is_bytes()) {
    ids.push_back(f.value());
    return true;
  }
  for (std::string_view rest = f.bytes(); !rest.empty();) {
    const auto id = take_varint(rest);
    if (!id) return false;
    ids.push_back(*id);
  }
  return true;
}

// Reads a list of integers from its message (field 1). False if it is damaged.
bool read_list(std::string_view message, std::vector<std::uint64_t>& values) {
  ProtobufFields f{message};
  while (f.next())
    if (f.number() == 1 && !read_ids(f, values)) return false;
  return !f.damaged();
}

// True for global metadata: only fields 1 and 2, and both are texts. A node has a number in field 1, or
// fields from 3 on.
bool is_metadata(std::string_view message) {
  ProtobufFields f{message};
  while (f.next())
    if (!f.is_bytes() || f.number() > 2) return false;
  return !f.damaged();
}

// Builds the graph from messages in the order of the file.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string file) { graph_.file = std::move(file); }

  Status add(std::string_view message) {
    ++messages_;
    if (messages_ == 1 && is_metadata(message)) return add_metadata(message);
    return add_node(message);
  }

  // Resolves all references. Errors: no nodes, an invalid mark of the step, a list of delays with the wrong
  // length.
  Result<OperationGraph> finish() {
    if (graph_.nodes.empty())
      return Error::at(graph_.file, "the nodes").found("none").expected("operations of a rank");
    STEPCAST_TRY(resolve_mark());
    std::vector<std::pair<std::uint32_t, double>> found;  // with their delays
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) STEPCAST_TRY(link(n, found));
    return std::move(graph_);
  }

 private:
  // Ranges of one node in ids_ and delays_.
  struct Links {
    std::size_t first = 0, first_control = 0, end = 0;  // in ids_
    std::size_t first_delay = 0, end_delay = 0;         // in delays_
  };

  // Resolves the dependencies of a node. Requires that all nodes are known.
  Status link(std::size_t n, std::vector<std::pair<std::uint32_t, double>>& found) {
    found.clear();
    const Links& links = links_[n];
    const bool delayed = links.end_delay > links.first_delay;
    const std::size_t n_data = links.first_control - links.first;
    if (delayed && links.end_delay - links.first_delay != n_data) {
      return Error::at(graph_.file, fmt::format("node {}, delay_nanos", graph_.nodes[n].id))
          .found(fmt::format("{} numbers", links.end_delay - links.first_delay))
          .expected(fmt::format("one for each of {} data dependencies", n_data));
    }
    const auto resolve = [&](std::uint64_t id, double delay_us) {
      const auto node = position_.find(id);
      if (node == position_.end())
        ++graph_.dangling;
      else
        found.emplace_back(node->second, delay_us);
    };
    for (std::size_t i = links.first; i < links.first_control; ++i) {
      const std::size_t delay = links.first_delay + (i - links.first);
      resolve(ids_[i], delayed ? static_cast<double>(static_cast<std::int64_t>(delays_[delay])) * 1e-3 : 0);
    }
    for (std::size_t i = links.first_control; i < links.end; ++i)
      if (from_pytorch_)
        ++graph_.callers;
      else
        resolve(ids_[i], 0);
    // If there are several dependencies on one node, the one with the longest delay counts.
    std::ranges::sort(found, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    // Converters omit durations that round to zero.
    if (from_pytorch_ && graph_.nodes[n].duration_us < 0) graph_.nodes[n].duration_us = 0;
    graph_.nodes[n].first_dependency = graph_.dependencies.size();
    for (const auto& [dependency, delay_us] : found) {
      graph_.dependencies.push_back(dependency);
      if (!delays_.empty()) graph_.delays_us.push_back(delay_us);
    }
    graph_.nodes[n].end_dependency = graph_.dependencies.size();
    return Ok{};
  }

  // The error for a message that is not valid protobuf.
  [[nodiscard]] Error damaged(std::string_view what) const {
    return Error::at(graph_.file, fmt::format("message {}", messages_))
        .found(fmt::format("{} that does not follow the protobuf format", what))
        .expected("a node of a Chakra execution trace")
        .advice("copy or write the file again");
  }
  // The error for a field of a node with a value out of range.
  [[nodiscard]] Error wrong(const GraphNode& node, std::string_view field, double value,
                            std::string_view expected) const {
    return Error::at(graph_.file, fmt::format("node {}, {}", node.id, field))
        .found(fmt::format("{:g}", value))
        .expected(std::string{expected});
  }

  // Reads the global metadata: schema, rank, and the mark of the step.
  Status add_metadata(std::string_view message) {
    for (ProtobufFields f{message}; f.next();) {
      if (f.number() == 1) {
        graph_.schema = f.bytes().substr(0, kLongestSchema);
        continue;
      }
      Attribute attribute;
      if (!read_attribute(f.bytes(), attribute)) return damaged("metadata");
      if (attribute.name == "schema") graph_.schema = attribute.text.substr(0, kLongestSchema);
      if (attribute.name == "rank" && attribute.has_number && attribute.integer >= 0 &&
          attribute.integer <= kHighestRank) {
        graph_.rank = static_cast<std::int32_t>(attribute.integer);
      }
      take_mark(attribute);
    }
    return Ok{};
  }

  // Takes an attribute with which `stepcast` marks the step (chakra_writer.h).
  void take_mark(const Attribute& attribute) {
    if (!attribute.has_number) return;
    if (attribute.name == "step_number") mark_.number = attribute.integer;
    if (attribute.name == "step_start_nanos") mark_.start_us = static_cast<double>(attribute.integer) * 1e-3;
    if (attribute.name == "step_ends_at_start") mark_.ends_at_start = attribute.integer != 0;
    if (attribute.name == "rank_begin_node") begin_id_ = static_cast<std::uint64_t>(attribute.integer);
    if (attribute.name == "step_end_node") end_id_ = static_cast<std::uint64_t>(attribute.integer);
  }

  // Checks the mark of the step and sets it in the graph. The begin node must be on the CPU and wait for
  // nothing.
  Status resolve_mark() {
    if (!begin_id_ && !end_id_) return Ok{};
    const auto begin = position_.find(begin_id_.value_or(0)), end = position_.find(end_id_.value_or(0));
    const bool in_time =
        mark_.number >= -1 && std::abs(mark_.start_us) <= static_cast<double>(kLongestTimeUs);
    const bool found = begin != position_.end() && end != position_.end() && begin != end;
    const bool begins = found && graph_.nodes[begin->second].on_cpu &&
                        links_[begin->second].first == links_[begin->second].end;
    if (!begins || !in_time) {
      return Error::at(graph_.file, "metadata with the start and end of the step")
          .found("a node that is missing or waits for others, or a time above thirty years")
          .expected(
              "rank_begin_node, step_end_node and step_start_nanos as `stepcast predict --chakra` writes "
              "them");
    }
    graph_.step = mark_;
    graph_.step->begin_node = begin->second;
    graph_.step->end_node = end->second;
    return Ok{};
  }

  // Reads a node. Metadata nodes are counted and dropped. Errors: damaged fields, an id that occurs twice.
  Status add_node(std::string_view message) {
    GraphNode node;
    Links links{.first = ids_.size(), .first_delay = delays_.size()};
    std::string_view name;
    std::uint64_t type = kInvalid;
    bool has_collective_type = false;
    std::optional<double> exact_us;
    control_.clear();
    ProtobufFields f{message};
    while (f.next()) {
      const bool text = f.is_bytes();
      switch (f.number()) {
        case kId:
          if (text) return damaged("an id");
          node.id = f.value();
          break;
        case kName:
          if (!text) return damaged("a name");
          name = f.bytes();
          break;
        case kType:
          if (text) return damaged("a type");
          type = f.value();
          break;
        case kControlDependencies:
          if (!read_ids(f, control_)) return damaged("a list of dependencies");
          break;
        case kDataDependencies:
          if (!read_ids(f, ids_)) return damaged("a list of dependencies");
          break;
        case kStartTime:
          if (text) return damaged("a start time");
          if (f.value() > 0) node.start_us = static_cast<double>(f.value());
          break;
        case kDuration:
          if (text) return damaged("a duration");
          node.duration_us = static_cast<double>(f.value());
          break;
        case kNodeAttributes: {
          Attribute attribute;
          if (!text || !read_attribute(f.bytes(), attribute)) return damaged("an attribute");
          has_collective_type |= attribute.name == "comm_type";
          if (attribute.name == "delay_nanos" && !read_list(attribute.list, delays_))
            return damaged("a list of delays");
          if (attribute.name == "duration_nanos") exact_us = static_cast<double>(attribute.integer) * 1e-3;
          STEPCAST_TRY(take(attribute, node));
          break;
        }
        default: break;  // inputs, outputs and fields of later schemas
      }
    }
    if (f.damaged()) return damaged("a field");
    if (type == kMetadata) {
      ++graph_.metadata_nodes;
      ids_.resize(links.first);
      delays_.resize(links.first_delay);
      return Ok{};
    }
    STEPCAST_TRY(set_kind(type, has_collective_type, node));
    if (exact_us) node.duration_us = *exact_us;
    // An invalid time makes the time of this node unknown, but the file is still read.
    const bool bad_duration =
        (exact_us && *exact_us < 0) || node.duration_us > static_cast<double>(kLongestTimeUs);
    const bool bad_start = node.start_us > 10 * static_cast<double>(kLongestTimeUs);
    if (bad_duration) node.duration_us = -1;
    if (bad_start) node.start_us = -1;
    if (bad_duration || bad_start) ++graph_.bad_times;
    node.name = graph_.names.intern(name.empty() ? to_string(node.kind) : name);
    if (!position_.emplace(node.id, static_cast<std::uint32_t>(graph_.nodes.size())).second) {
      return Error::at(graph_.file, fmt::format("message {}", messages_))
          .found(fmt::format("a second node with id {}", node.id))
          .expected("ids that differ");
    }
    links.first_control = ids_.size();
    ids_.insert(ids_.end(), control_.begin(), control_.end());
    links.end = ids_.size();
    links.end_delay = delays_.size();
    links_.push_back(links);
    graph_.nodes.push_back(node);
    return Ok{};
  }

  // Sets the kind of a node from its type and attributes.
  Status set_kind(std::uint64_t type, bool has_collective_type, GraphNode& node) const {
    using Kind = GraphNode::Kind;
    switch (type) {
      // Protobuf omits a field with the first value of an enumeration.
      case kInvalid: node.kind = has_collective_type ? Kind::collective : Kind::computation; break;
      case kMemoryLoad: node.kind = Kind::memory_load; break;
      case kMemoryStore: node.kind = Kind::memory_store; break;
      case kComputation: node.kind = Kind::computation; break;
      case kSend: node.kind = Kind::send; break;
      case kReceive: node.kind = Kind::receive; break;
      case kCollective: node.kind = Kind::collective; break;
      default: return wrong(node, "type", static_cast<double>(type), "a node type from 0 to 7");
    }
    const bool transfer =
        node.kind == Kind::collective || node.kind == Kind::send || node.kind == Kind::receive;
    // An operator on the CPU that starts a transfer; the transfer itself is a separate node.
    if (transfer && node.on_cpu && !has_collective_type) node.kind = Kind::computation;
    if (node.kind != Kind::collective) node.op = CollectiveOp::unknown;
    if (node.kind == Kind::collective && !has_collective_type) node.op = CollectiveOp::all_reduce;
    if (node.kind != Kind::computation) node.on_cpu = false;
    return Ok{};
  }

  // Takes an attribute of a node, by the names that converters and generators use.
  Status take(const Attribute& attribute, GraphNode& node) {
    const auto amount = [&](double& to) -> Status {
      if (!attribute.has_number || !(attribute.number >= 0) || std::isinf(attribute.number))
        return wrong(node, attribute.name, attribute.number, "a number from 0 on");
      to = attribute.number;
      return Ok{};
    };
    const std::string_view name = attribute.name;
    if (name == "is_cpu_op") node.on_cpu = attribute.integer != 0;
    if (name == "rf_id" || name == "op_schema") from_pytorch_ = true;
    if (name == "stream" || (name == "tid" && node.lane < 0))
      node.lane = std::max<std::int64_t>(attribute.integer, -1);
    if (name == "num_ops") return amount(node.flops);
    if (name == "tensor_size" || name == "comm_size") return amount(node.bytes);
    if (name == "comm_type") node.op = collective_op(attribute.integer);
    if (name == "comm_tag") node.tag = attribute.integer;
    if ((name == "comm_src" && peer_is_source(node)) || name == "comm_dst") {
      if (attribute.integer < 0 || attribute.integer > kHighestRank)
        return wrong(node, name, attribute.number, "a rank");
      node.peer = static_cast<std::int32_t>(attribute.integer);
    }
    if (name == "pg_name") {
      node.group = graph_.names.intern(attribute.text.empty() && attribute.has_number
                                           ? std::string_view{scratch_ = std::to_string(attribute.integer)}
                                           : attribute.text);
    }
    return Ok{};
  }

  // Some writers name both ends. The source is the peer if no destination was named before.
  static bool peer_is_source(const GraphNode& node) { return node.peer < 0; }

  static constexpr std::int64_t kHighestRank = std::int64_t{1} << 20;

  OperationGraph graph_;
  StepMark mark_;
  std::optional<std::uint64_t> begin_id_, end_id_;
  std::uint64_t messages_ = 0;
  bool from_pytorch_ = false;
  std::unordered_map<std::uint64_t, std::uint32_t> position_;  // [id] position in nodes
  std::vector<Links> links_;                                   // [node]
  // References of all nodes, and control dependencies of the current one.
  std::vector<std::uint64_t> ids_, control_;
  std::vector<std::uint64_t> delays_;  // nanoseconds in two's complement
  std::string scratch_;
};

// Reads messages through a buffer that grows to the largest message.
Result<OperationGraph> read(ByteSource source) {
  const std::string file = source.name();
  GraphBuilder builder{file};
  std::string buffer;
  std::size_t at = 0;          // position of the next byte in `buffer`
  std::uint64_t consumed = 0;  // bytes of the file before `buffer`
  bool ended = false;
  // True if `n` bytes are available in the buffer; false if the file ends before.
  const auto ensure = [&](std::size_t n) -> Result<bool> {
    while (buffer.size() - at < n && !ended) {
      if (at > 0) {
        consumed += at;
        buffer.erase(0, at);
        at = 0;
      }
      const std::size_t old = buffer.size();
      buffer.resize(old + kBlock);
      STEPCAST_ASSIGN(const std::size_t got, source.read(buffer.data() + old, kBlock));
      buffer.resize(old + got);
      ended = got == 0;
    }
    return buffer.size() - at >= n;
  };
  STEPCAST_TRY(ensure(512));
  const std::string_view start = std::string_view{buffer}.substr(0, 512);
  if (const detail::LeadingBytes what = detail::recognise_leading_bytes(start);
      what != detail::LeadingBytes::chakra_protobuf) {
    return detail::not_json_error(what, start, file).expected("a Chakra execution trace");
  }
  for (;;) {
    STEPCAST_TRY(ensure(kLongestVarint));
    std::string_view rest = std::string_view{buffer}.substr(at);
    if (rest.empty()) break;
    const std::size_t before = rest.size();
    const auto length = take_varint(rest);
    const std::uint64_t place = consumed + at;
    if (!length || *length > kLongestMessage) {
      return Error::at(file, fmt::format("byte {}", place))
          .found(length ? fmt::format("a message of {} bytes", *length) : "no message length")
          .expected("a Chakra execution trace (messages with their lengths)");
    }
    at += before - rest.size();
    STEPCAST_ASSIGN(const bool whole, ensure(static_cast<std::size_t>(*length)));
    if (!whole) {
      return Error::at(file, fmt::format("byte {}", place))
          .found(fmt::format("{} of {} bytes of a message", buffer.size() - at, *length))
          .expected("the whole message")
          .advice("the file is incomplete: copy it again");
    }
    STEPCAST_TRY(builder.add(std::string_view{buffer}.substr(at, static_cast<std::size_t>(*length))));
    at += static_cast<std::size_t>(*length);
  }
  return builder.finish();
}

}  // namespace

Result<OperationGraph> read_chakra(const std::filesystem::path& file, const ReadOptions& options) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file, {.progress = options.progress,
                                                             .max_bytes = options.max_inflated_bytes}));
  return read(std::move(source));
}

Result<OperationGraph> parse_chakra(std::string_view content, std::string name) {
  return read(ByteSource::from_memory(content, std::move(name)));
}

}  // namespace stepcast
