#include "stepcast/platform/detail/figures.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stepcast/base/units.h"

// Tables of the numeric figures of platform files.

namespace stepcast::detail {
namespace {

// Units in the keys of figures (_GBps, _TFLOPs, _Gbps), in bytes or FLOP per second.
constexpr double kGB = 1e9;
constexpr double kTera = 1e12;
constexpr double kGbit = 1e9 / 8;

// Characters of the shortest text of a number.
std::size_t text_length(double x) {
  std::array<char, 32> buffer{};
  return static_cast<std::size_t>(std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr -
                                  buffer.data());
}

// Builds the rows of a table from pointers to members: quantities or counts, optional or required.
template <class Group>
class Table {
 public:
  // A required quantity; 0 counts as not stated.
  template <class Quantity>
  Table& required(std::string key, double unit, double largest, Quantity Group::*member) {
    rows.push_back({std::move(key), unit, largest, false, true,
                    [member](const Group& g) -> std::optional<double> {
                      const double value = (g.*member).value();
                      return value != 0 ? std::optional<double>{value} : std::nullopt;
                    },
                    [member](Group& g, std::optional<double> x) { g.*member = Quantity{x.value_or(0)}; }});
    return *this;
  }
  // An optional quantity or plain number; setting std::nullopt removes it.
  template <class Quantity>
  Table& optional(std::string key, double unit, double largest, std::optional<Quantity> Group::*member) {
    rows.push_back({std::move(key), unit, largest, false, false,
                    [member](const Group& g) -> std::optional<double> {
                      if (!(g.*member)) return std::nullopt;
                      if constexpr (std::is_same_v<Quantity, double>)
                        return *(g.*member);
                      else
                        return (g.*member)->value();
                    },
                    [member](Group& g, std::optional<double> x) {
                      g.*member = x ? std::optional<Quantity>{Quantity{*x}} : std::nullopt;
                    }});
    return *this;
  }
  // A required whole number; removing it sets it to 1.
  Table& count(std::string key, double largest, std::uint32_t Group::*member) {
    rows.push_back({std::move(key), 1, largest, true, true,
                    [member](const Group& g) -> std::optional<double> { return g.*member; },
                    [member](Group& g, std::optional<double> x) {
                      g.*member = static_cast<std::uint32_t>(x.value_or(1));
                    }});
    return *this;
  }
  // An optional whole number; setting std::nullopt removes it.
  Table& optional_count(std::string key, double largest, std::optional<std::uint32_t> Group::*member) {
    rows.push_back({std::move(key), 1, largest, true, false,
                    [member](const Group& g) -> std::optional<double> {
                      if (!(g.*member)) return std::nullopt;
                      return static_cast<double>(*(g.*member));
                    },
                    [member](Group& g, std::optional<double> x) {
                      g.*member =
                          x ? std::optional<std::uint32_t>{static_cast<std::uint32_t>(*x)} : std::nullopt;
                    }});
    return *this;
  }
  // A rate per dtype, optional: "peak_bf16_TFLOPs".
  Table& peak(std::string_view prefix, DType dtype,
              std::array<std::optional<FlopsPerSecond>, kDTypeCount> Group::*member) {
    const auto index = static_cast<std::size_t>(dtype);
    rows.push_back({fmt::format("{}_{}_TFLOPs", prefix, to_string(dtype)), kTera, 1e6, false, false,
                    [member, index](const Group& g) -> std::optional<double> {
                      const auto& rate = (g.*member)[index];
                      return rate ? std::optional<double>{rate->value()} : std::nullopt;
                    },
                    [member, index](Group& g, std::optional<double> x) {
                      (g.*member)[index] =
                          x ? std::optional<FlopsPerSecond>{FlopsPerSecond{*x}} : std::nullopt;
                    }});
    return *this;
  }
  std::vector<Figure<Group>> rows;
};

// In the order of the files: peaks by dtype, then memory, SMs and times. The limits only catch wrong units:
// they are far above any device.
std::vector<Figure<Device>> make_device_figures() {
  Table<Device> table;
  for (const DType dtype : {DType::fp64, DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8,
                            DType::fp4, DType::int8}) {
    table.peak("peak", dtype, &Device::matrix_peak);
  }
  for (const DType dtype : {DType::fp64, DType::fp32, DType::fp16, DType::bf16})
    table.peak("vector", dtype, &Device::vector_peak);
  table.required("memory_bandwidth_GBps", kGB, 1e6, &Device::memory_bandwidth)
      .required("memory_GiB", kGiB, 1e6, &Device::memory_size)
      .optional_count("sm_count", 1e5, &Device::sm_count)
      .optional("clock_MHz", 1, 1e5, &Device::clock_MHz)
      .optional("l2_MiB", kMiB, 1e6, &Device::l2_size)
      .optional("l2_bandwidth_GBps", kGB, 1e6, &Device::l2_bandwidth)
      .optional("host_link_bandwidth_GBps", kGB, 1e5, &Device::host_link_bandwidth)
      .optional("launch_overhead_us", 1, 1e5, &Device::launch_overhead)
      .optional("kernel_floor_us", 1, 1e5, &Device::kernel_floor)
      .optional("power_limit_W", 1, 1e5, &Device::power_limit_W);
  return std::move(table.rows);
}

}  // namespace

// Tries the five doubles around value / unit.
double shortest_quotient(double value, double unit) {
  const double near = value / unit;
  double best = near;
  bool exact = false;
  double candidate = near;
  for (int i = 0; i < 2; ++i) candidate = std::nextafter(candidate, -std::numeric_limits<double>::infinity());
  for (int i = 0; i < 5; ++i) {
    if (candidate * unit == value && (!exact || text_length(candidate) < text_length(best))) {
      best = candidate;
      exact = true;
    }
    candidate = std::nextafter(candidate, std::numeric_limits<double>::infinity());
  }
  return best;
}

std::string broken_expectation(double x, bool is_count, double largest) {
  if (is_count) {
    if (x >= 1 && x <= largest && x == std::floor(x)) return {};
    return fmt::format("a whole number from 1 to {}", json_number(largest));
  }
  if (!(x > 0)) return "a number above 0";
  if (!(x <= largest)) return fmt::format("at most {}", json_number(largest));
  return {};
}

std::string json_number(double x) { return compact_json(JsonValue{x}); }

std::span<const Figure<Device>> device_figures() {
  static const std::vector<Figure<Device>> kFigures = make_device_figures();
  return kFigures;
}

std::span<const Figure<Node>> node_figures() {
  static const std::vector<Figure<Node>> kFigures =
      Table<Node>{}
          .count("gpus_per_node", kMostGpusPerNode, &Node::gpus_per_node)
          .optional_count("segment", kMostGpusPerNode, &Node::segment)
          .rows;
  return kFigures;
}

std::span<const Figure<IntraNode>> intra_figures() {
  static const std::vector<Figure<IntraNode>> kFigures =
      Table<IntraNode>{}
          .required("bandwidth_per_gpu_GBps", kGB, 1e5, &IntraNode::bandwidth_per_gpu)
          .optional("latency_us", 1, 1e5, &IntraNode::latency)
          .optional("pcie_bandwidth_per_gpu_GBps", kGB, 1e5, &IntraNode::pcie_bandwidth_per_gpu)
          .optional_count("gpus_per_pcie_domain", 1024, &IntraNode::gpus_per_pcie_domain)
          .optional_count("devices_per_chip", 64, &IntraNode::devices_per_chip)
          .optional_count("ring_chips", kMostGpusPerNode, &IntraNode::ring_chips)
          .rows;
  return kFigures;
}

std::span<const Figure<Network>> network_figures() {
  static const std::vector<Figure<Network>> kFigures =
      Table<Network>{}
          .count("nics_per_node", kMostGpusPerNode, &Network::nics_per_node)
          .required("nic_bandwidth_Gbps", kGbit, 1e5, &Network::bandwidth_per_nic)
          .optional("latency_us", 1, 1e6, &Network::latency)
          .rows;
  return kFigures;
}

}  // namespace stepcast::detail
