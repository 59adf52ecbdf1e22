// A Platform: what a job runs on, and everything that was calibrated for it. A file says it
// (docs/platform-file.md); platform_file.h reads and writes it.
//
//   STEPCAST_ASSIGN(const Platform dgx, load_platform("dgx-a100"));
//   dgx.device.memory_bandwidth          BytesPerSecond{2.039e12}
//   dgx.device.peak(DType::bf16)         FlopsPerSecond{3.12e14}, dense; nothing if there is no such unit
//   dgx.node.intra.bandwidth_per_gpu     one direction
//   dgx.node.network->bandwidth_per_nic  one direction
//
// Bandwidths are nominal and count one direction. What collectives and kernels reach is in the records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/platform/provenance.h"

namespace stepcast {

// Of one node: slices of a torus are the largest (TPU7x: 9,216 chips of two devices).
inline constexpr std::uint32_t kMostGpusPerNode = 32768;

inline constexpr std::size_t kDTypeCount = static_cast<std::size_t>(DType::boolean) + 1;

// One GPU as a framework sees it.
struct Device {
  std::string name;                  // "A100-SXM4-80GB"
  std::vector<std::string> aliases;  // other spellings in measurements: "NVIDIA A100-SXM4-80GB (400W)"
  std::string vendor;                // "NVIDIA", "AMD"
  std::string architecture;          // "ampere"

  // Dense matrix rates (tensor cores where the device has them). fp32 is without TF32.
  std::array<std::optional<FlopsPerSecond>, kDTypeCount> matrix_peak;
  // Rates of ordinary arithmetic, for work that is no matrix product.
  std::array<std::optional<FlopsPerSecond>, kDTypeCount> vector_peak;

  BytesPerSecond memory_bandwidth;
  Bytes memory_size;
  std::optional<std::uint32_t> sm_count;  // compute units on AMD devices
  std::optional<double> clock_MHz;        // boost
  std::optional<Bytes> l2_size;           // the last-level cache in front of the memory
  std::optional<BytesPerSecond> l2_bandwidth;
  // PCIe or C2C between the device and its host, one direction.
  std::optional<BytesPerSecond> host_link_bandwidth;
  // From the start of the launching call to the start of the kernel on an idle stream.
  std::optional<Microseconds> launch_overhead;
  // What the shortest kernel takes on the device.
  std::optional<Microseconds> kernel_floor;
  std::optional<double> power_limit_W;

  Sources sources;  // keys: "peak_fp16_TFLOPs", "memory_bandwidth_GBps", ...

  // fp8 with a scale per block runs on the units of fp8.
  [[nodiscard]] std::optional<FlopsPerSecond> peak(DType dtype) const {
    return matrix_peak[static_cast<std::size_t>(dtype == DType::fp8_block ? DType::fp8 : dtype)];
  }
  [[nodiscard]] std::optional<FlopsPerSecond> vector(DType dtype) const {
    return vector_peak[static_cast<std::size_t>(dtype)];
  }
  // The name or one of the aliases; case, blanks, '-' and '_' do not count.
  [[nodiscard]] bool matches_name(std::string_view text) const;
  friend bool operator==(const Device&, const Device&) = default;
};

// How the GPUs of one node reach each other.
enum class LinkKind : std::uint8_t {
  none,         // one GPU
  nvswitch,     // every GPU has its full bandwidth to every other one
  nvlink_mesh,  // direct links between pairs; `links` lists them where pairs differ
  xgmi_mesh,    // the same with AMD's links
  pcie,         // through PCIe switches and the host
  mixed,        // some pairs have a direct link, others go through PCIe: `links` lists all that are not PCIe
  torus,        // chips in a grid, each with links to its neighbours along every axis (TPU slices): `axes`
};
[[nodiscard]] std::string_view to_string(LinkKind kind);
[[nodiscard]] std::optional<LinkKind> parse_link_kind(std::string_view text);

inline constexpr std::size_t kMostTorusAxes = 4;

// A direct connection of two GPUs of a node.
struct Link {
  std::uint32_t gpu_a = 0, gpu_b = 0;
  BytesPerSecond bandwidth;  // one direction, all lanes of the pair together
  friend bool operator==(const Link&, const Link&) = default;
};

struct IntraNode {
  LinkKind kind = LinkKind::none;
  // What one GPU can send to all others together, one direction. With `mixed`: of the direct links.
  BytesPerSecond bandwidth_per_gpu;
  std::optional<Microseconds> latency;  // one hop
  // What one GPU can send through PCIe, where some pairs have to (kinds mixed and pcie).
  std::optional<BytesPerSecond> pcie_bandwidth_per_gpu;
  // PCIe only: GPUs that share a switch or a socket; traffic between such groups goes through the host.
  std::optional<std::uint32_t> gpus_per_pcie_domain;
  std::vector<Link> links;  // explicit topology; empty: all pairs are equal
  // Torus only: chips along each axis; together with devices_per_chip they are the GPUs of the node, a slice.
  std::vector<std::uint32_t> axes;
  std::optional<std::uint32_t> devices_per_chip;  // that share the links of a chip; nothing: 1
  // Axes of a multiple of so many chips close to rings, of the whole and of a part; nothing: none does.
  std::optional<std::uint32_t> ring_chips;

  Sources sources;
  friend bool operator==(const IntraNode&, const IntraNode&) = default;
};

// Switches of one tier of the fabric: a leaf with its nodes, a pod with its leaves.
struct NetworkTier {
  std::uint32_t nodes = 1;      // below one
  double oversubscription = 1;  // of what these can send together, over what can leave them to the tier above
  friend bool operator==(const NetworkTier&, const NetworkTier&) = default;
};
inline constexpr std::size_t kMostNetworkTiers = 4;

struct Network {
  std::string kind;  // "InfiniBand HDR", "RoCE", "EFA": for people
  std::uint32_t nics_per_node = 1;
  BytesPerSecond bandwidth_per_nic;     // one direction
  std::optional<Microseconds> latency;  // one message between two nodes, GPU to GPU
  // True: NIC k of all nodes hangs on one switch, and GPU k uses it.
  std::optional<bool> rail_optimized;
  // From the nodes upwards. Empty: nothing but the adapters holds transfers up.
  std::vector<NetworkTier> tiers;

  Sources sources;
  [[nodiscard]] BytesPerSecond bandwidth_per_node() const { return bandwidth_per_nic * nics_per_node; }
  friend bool operator==(const Network&, const Network&) = default;
};

struct Node {
  std::uint32_t gpus_per_node = 1;
  // GPUs that a job uses of each node where its groups do not fit all of them: 64 of a rack of 72, whose groups of
  // powers of two then stay inside. Nothing: all.
  std::optional<std::uint32_t> segment;
  IntraNode intra;
  std::optional<Network> network;  // nothing: nodes cannot talk, or nobody said how
  Sources sources;
  friend bool operator==(const Node&, const Node&) = default;
};

// --------------------------------------------------------------------------------------- fitted records

struct CurveKnot {
  double message_bytes = 0;
  double time_us = 0;
  friend bool operator==(const CurveKnot&, const CurveKnot&) = default;
};

// A closed form of the time of a message: its name says which formula reads the parameters.
struct CurveForm {
  std::string form;  // "three_region_sigmoid": log2_m1, log2_m2, BWmax_GBps, t_s_us, A, x0, k, b
  NamedNumbers parameters;
  [[nodiscard]] bool empty() const { return form.empty(); }
  friend bool operator==(const CurveForm&, const CurveForm&) = default;
};

// How far the measurements lie from the curve: quantiles of ln(measured / curve) over a stretch of message
// sizes.
struct ResidualQuantiles {
  std::string region;  // "latency", "knee", "bandwidth", "all"
  double message_bytes_min = 0, message_bytes_max = 0;
  double log_p10 = 0, log_p50 = 0, log_p90 = 0;
  std::uint64_t n = 0;
  friend bool operator==(const ResidualQuantiles&, const ResidualQuantiles&) = default;
};

// What was found of a collective on a group of ranks.
struct CurveFit {
  CurveForm published;  // the published three-region sigmoid; may be empty
  CurveForm improved;   // the form that predictions use outside of the knots; may be empty
  // Smoothed, or measured in a file that a user calibrates; sizes strictly increasing.
  std::vector<CurveKnot> knots;
  std::vector<ResidualQuantiles> residuals;
  Provenance provenance;
  friend bool operator==(const CurveFit&, const CurveFit&) = default;
};

// The time of one collective on one group of ranks as a function of the message size. `message_bytes` is the
// `size` of nccl-tests: all_reduce = buffer of one rank; all_gather = receive buffer; reduce_scatter,
// all_to_all = send buffer.
struct CollectiveCurve {
  CollectiveOp collective = CollectiveOp::unknown;
  DType dtype = DType::unknown;  // unknown: any
  std::string variant;  // tells apart what the fields above do not: "ring", "in_place"; usually empty
  std::uint32_t n_nodes = 1;
  std::uint32_t gpus_per_node = 1;  // ranks per node, as used by this group
  std::uint32_t n_ranks = 1;
  detail::Later<CurveFit> fit;
  // Figures of the node that a later file changed, as they were when this was measured (changed_figures.h).
  NamedNumbers measured_with{};

  // A later file replaces the curve of the same key: "all_reduce/any/8x2/16" and so on.
  [[nodiscard]] std::string key() const;
  friend bool operator==(const CollectiveCurve&, const CollectiveCurve&) = default;
};

inline constexpr std::size_t kMaxShippedKnots = 48;

// Parameters of a fitted model that cost/ evaluates: kernel models, slow-down factors, composition
// efficiencies.
struct ModelRecord {
  std::string name;    // unique in the platform: "gemm/bf16/forward"; a later file replaces it
  std::string kind;    // which evaluator reads the parameters
  std::string device;  // the device it was fitted on; empty: any
  JsonValue parameters = JsonValue::object();
  Provenance provenance;
  bool is_shipped = false;  // of a file that ships: known to be readable; says nothing of the model
  // Figures of the device that a later file changed, as they were when this was measured (changed_figures.h).
  NamedNumbers measured_with{};
  [[nodiscard]] const std::string& key() const { return name; }
  friend bool operator==(const ModelRecord& a, const ModelRecord& b) {
    return a.name == b.name && a.kind == b.kind && a.device == b.device && a.parameters == b.parameters &&
           a.provenance == b.provenance && a.measured_with == b.measured_with;
  }
};

// Host time of one kind, fitted to many occurrences.
struct OverheadRecord {
  OverheadType type = OverheadType::t1;
  // T1: the framework op behind the gap; T2, T3, T5: the op; T4: the runtime call. Names in brackets stand for
  // a family (`overhead_family` in cost/host_overheads.h); empty: every other one.
  std::string op;
  double mean_us = 0;
  std::optional<double> std_us, p10_us, p50_us, p90_us;  // of single occurrences
  // Of the mean: what it would be less without the occurrences more than 1.5 interquartile ranges beyond a
  // quartile.
  std::optional<double> outlier_us;
  std::optional<double> profiler_events;  // events that the profiler wrote in one occurrence, mean
  std::uint64_t n = 0;
  Provenance provenance;
  [[nodiscard]] std::string key() const;
  friend bool operator==(const OverheadRecord&, const OverheadRecord&) = default;
};

// Name and `kind` of the model that says which runtime calls operators make (LaunchTable in
// cost/host_overheads.h). It goes with the overheads.
inline constexpr std::string_view kHostLaunchesKind = "host_launches";

// A figure that a file of a user changed in what it extends; values in the unit of its key.
struct ChangedFigure {
  std::string path;  // "device.memory_bandwidth_GBps"
  double before = 0, now = 0;
};

struct Platform {
  std::string name;
  std::string description;
  std::vector<std::string> aliases;  // other names in measurements: "perlmutter"
  Device device;
  Node node;
  std::vector<CollectiveCurve> curves;                   // ordered by key
  std::vector<ModelRecord> models;                       // ordered by name
  detail::Later<std::vector<OverheadRecord>> overheads;  // ordered by key

  // Where it was read: the file itself and then what it extends. Not part of the content.
  std::vector<std::filesystem::path> files;
  // What files that do not ship changed in what they extend, for people. Not part of the content either.
  std::vector<ChangedFigure> changed;

  [[nodiscard]] bool matches_name(std::string_view text) const;
  [[nodiscard]] const ModelRecord* find_model(std::string_view model_name) const;
  // Replaces the record of the same key or adds it.
  void set(CollectiveCurve curve);
  void set(ModelRecord model);
  void set(OverheadRecord overhead);

  // Names the first figure that cannot be: no device name, a bandwidth that is not positive, knots out of
  // order, ... The place in the Error is the path in the file: "device.memory_bandwidth_GBps".
  [[nodiscard]] Status check() const;
};
// Equal content; `files` and `changed` do not count.
[[nodiscard]] bool operator==(const Platform& a, const Platform& b);

// Two spellings of one name: case, blanks, '-' and '_' do not count.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b);

}  // namespace stepcast
