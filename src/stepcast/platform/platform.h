// A Platform: the machine of a job with everything that was calibrated for it. It is stored as a file
// (docs/platform-file.md); platform_file.h reads and writes it.
//
//   STEPCAST_ASSIGN(const Platform dgx, load_platform("dgx-a100"));
//   dgx.device.memory_bandwidth          BytesPerSecond{2.039e12}
//   dgx.device.peak(DType::bf16)         FlopsPerSecond{3.12e14}, dense; nothing if there is no such unit
//   dgx.node.intra.bandwidth_per_gpu     one direction
//   dgx.node.network->bandwidth_per_nic  one direction
//
// Bandwidths are nominal and for one direction. The rates that collectives and kernels reach are in the
// records.
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

// Limit of GPUs per node: slices of a torus are the largest nodes (TPU7x: 9,216 chips of two devices).
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
  // Rates of ordinary arithmetic, for work other than GEMM.
  std::array<std::optional<FlopsPerSecond>, kDTypeCount> vector_peak;

  BytesPerSecond memory_bandwidth;
  Bytes memory_size;
  std::optional<std::uint32_t> sm_count;  // compute units on AMD devices
  std::optional<double> clock_MHz;        // boost
  std::optional<Bytes> l2_size;           // last-level cache in front of the memory
  std::optional<BytesPerSecond> l2_bandwidth;
  // PCIe or C2C between the device and its host, one direction.
  std::optional<BytesPerSecond> host_link_bandwidth;
  // From the start of the launching call to the start of the kernel, on an idle stream.
  std::optional<Microseconds> launch_overhead;
  // Duration of the shortest kernel on the device.
  std::optional<Microseconds> kernel_floor;
  std::optional<double> power_limit_W;

  Sources sources;  // keys: "peak_fp16_TFLOPs", "memory_bandwidth_GBps", ...

  // Dense matrix rate of a type; none: no such unit. fp8 with a scale per block runs on the fp8 units.
  [[nodiscard]] std::optional<FlopsPerSecond> peak(DType dtype) const {
    return matrix_peak[static_cast<std::size_t>(dtype == DType::fp8_block ? DType::fp8 : dtype)];
  }
  // Rate of ordinary arithmetic in a type; none: not stated.
  [[nodiscard]] std::optional<FlopsPerSecond> vector(DType dtype) const {
    return vector_peak[static_cast<std::size_t>(dtype)];
  }
  // Whether `text` is the name or an alias; case, blanks, '-' and '_' are ignored.
  [[nodiscard]] bool matches_name(std::string_view text) const;
  friend bool operator==(const Device&, const Device&) = default;
};

// Kind of the links between the GPUs of one node.
enum class LinkKind : std::uint8_t {
  none,         // one GPU
  nvswitch,     // every GPU has its full bandwidth to every other GPU
  nvlink_mesh,  // direct links between pairs; `links` lists them where pairs differ
  xgmi_mesh,    // direct links of AMD GPUs
  pcie,         // through PCIe switches and the host
  mixed,        // direct links for some pairs, PCIe for the others; `links` lists the direct ones
  torus,        // chips in a grid with links to their neighbours along each axis (TPU slices); see `axes`
};
// Names in platform files, "nvswitch" and so on.
[[nodiscard]] std::string_view to_string(LinkKind kind);
[[nodiscard]] std::optional<LinkKind> parse_link_kind(std::string_view text);

inline constexpr std::size_t kMostTorusAxes = 4;

// A direct connection of two GPUs of a node.
struct Link {
  std::uint32_t gpu_a = 0, gpu_b = 0;
  BytesPerSecond bandwidth;  // one direction, all lanes of the pair together
  friend bool operator==(const Link&, const Link&) = default;
};

// The links inside a node.
struct IntraNode {
  LinkKind kind = LinkKind::none;
  // Bandwidth of one GPU to all others together, one direction. With `mixed`: of the direct links.
  BytesPerSecond bandwidth_per_gpu;
  std::optional<Microseconds> latency;  // one hop
  // Bandwidth of one GPU through PCIe, where some pairs use it (kinds mixed and pcie).
  std::optional<BytesPerSecond> pcie_bandwidth_per_gpu;
  // PCIe only: GPUs that share a switch or a socket; traffic between such groups goes through the host.
  std::optional<std::uint32_t> gpus_per_pcie_domain;
  std::vector<Link> links;  // explicit topology; empty: all pairs are equal
  // Torus only: chips along each axis. Multiplied with devices_per_chip, they give the GPUs of the node, a
  // slice.
  std::vector<std::uint32_t> axes;
  std::optional<std::uint32_t> devices_per_chip;  // devices that share the links of a chip; none: 1
  // An axis closes to a ring if its length is a multiple of this number of chips, in the whole torus and in
  // parts; none: no axis closes.
  std::optional<std::uint32_t> ring_chips;

  Sources sources;
  friend bool operator==(const IntraNode&, const IntraNode&) = default;
};

// One tier of switches of the fabric: a leaf with its nodes, a pod with its leaves.
struct NetworkTier {
  std::uint32_t nodes = 1;  // nodes below one switch of the tier
  // Bandwidth of these nodes together, over the bandwidth from them to the tier above.
  double oversubscription = 1;
  friend bool operator==(const NetworkTier&, const NetworkTier&) = default;
};
inline constexpr std::size_t kMostNetworkTiers = 4;

// The network between nodes.
struct Network {
  std::string kind;  // for reports: "InfiniBand HDR", "RoCE", "EFA"
  std::uint32_t nics_per_node = 1;
  BytesPerSecond bandwidth_per_nic;     // one direction
  std::optional<Microseconds> latency;  // one message between two nodes, GPU to GPU
  // True: NIC k of all nodes connects to the same switch, and GPU k uses it.
  std::optional<bool> rail_optimized;
  // From the nodes upwards. Empty: only the NICs limit transfers.
  std::vector<NetworkTier> tiers;

  Sources sources;
  [[nodiscard]] BytesPerSecond bandwidth_per_node() const { return bandwidth_per_nic * nics_per_node; }
  friend bool operator==(const Network&, const Network&) = default;
};

// One node and the network between such nodes.
struct Node {
  std::uint32_t gpus_per_node = 1;
  // GPUs that a job uses per node where its groups do not fit all of them: 64 of a rack of 72, so that groups
  // with powers of two stay inside. None: all.
  std::optional<std::uint32_t> segment;
  IntraNode intra;
  std::optional<Network> network;  // none: no network, or an unknown one
  Sources sources;
  friend bool operator==(const Node&, const Node&) = default;
};

// --------------------------------------------------------------------------------------- fitted records

// A point of a collective curve.
struct CurveKnot {
  double message_bytes = 0;
  double time_us = 0;
  friend bool operator==(const CurveKnot&, const CurveKnot&) = default;
};

// A closed form of the time of a message; its name selects the formula for the parameters.
struct CurveForm {
  std::string form;  // "three_region_sigmoid": log2_m1, log2_m2, BWmax_GBps, t_s_us, A, x0, k, b
  NamedNumbers parameters;
  [[nodiscard]] bool empty() const { return form.empty(); }
  friend bool operator==(const CurveForm&, const CurveForm&) = default;
};

// Quantiles of ln(measured / curve) over a range of message sizes.
struct ResidualQuantiles {
  std::string region;  // "latency", "knee", "bandwidth", "all"
  double message_bytes_min = 0, message_bytes_max = 0;
  double log_p10 = 0, log_p50 = 0, log_p90 = 0;
  std::uint64_t n = 0;  // measurements in the range
  friend bool operator==(const ResidualQuantiles&, const ResidualQuantiles&) = default;
};

// The fit of a collective on a group of ranks.
struct CurveFit {
  CurveForm published;  // the published three-region sigmoid; may be empty
  CurveForm improved;   // the form for sizes outside of the knots; may be empty
  // Smoothed measurements (unsmoothed in a file that a user calibrates); sizes strictly increasing.
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
  std::string variant;  // distinguishes curves with otherwise equal fields: "ring", "in_place"; usually empty
  std::uint32_t n_nodes = 1;
  std::uint32_t gpus_per_node = 1;  // ranks per node, as used by this group
  std::uint32_t n_ranks = 1;
  detail::Later<CurveFit> fit;
  // Figures of the node that a later file changed, with their values when the curve was measured
  // (changed_figures.h).
  NamedNumbers measured_with{};

  // Identity of the curve: "all_reduce/any/8x2/16". A later file replaces the curve of the same key.
  [[nodiscard]] std::string key() const;
  friend bool operator==(const CollectiveCurve&, const CollectiveCurve&) = default;
};

// Limit of knots per curve in shipped files.
inline constexpr std::size_t kMaxShippedKnots = 48;

// Parameters of a fitted model that cost/ evaluates: kernel models, slow-down factors, composition
// efficiencies.
struct ModelRecord {
  std::string name;    // unique in the platform: "gemm/bf16/forward"; a later file replaces it
  std::string kind;    // selects the evaluator of the parameters
  std::string device;  // the device it was fitted on; empty: any
  JsonValue parameters = JsonValue::object();
  Provenance provenance;
  bool is_shipped = false;  // from a shipped file, hence known to be readable; not part of the content
  // Figures of the device that a later file changed, with their values when the record was measured
  // (changed_figures.h).
  NamedNumbers measured_with{};
  [[nodiscard]] const std::string& key() const { return name; }
  friend bool operator==(const ModelRecord& a, const ModelRecord& b) {
    return a.name == b.name && a.kind == b.kind && a.device == b.device && a.parameters == b.parameters &&
           a.provenance == b.provenance && a.measured_with == b.measured_with;
  }
};

// Host time of one kind, averaged over many occurrences.
struct OverheadRecord {
  OverheadType type = OverheadType::t1;
  // T1: the framework operator after the gap; T2, T3, T5: the operator; T4: the runtime call. Names in
  // brackets are families (`overhead_family` in cost/host_overheads.h); empty: all others.
  std::string op;
  double mean_us = 0;
  std::optional<double> std_us, p10_us, p50_us, p90_us;  // of single occurrences
  // Reduction of the mean if occurrences more than 1.5 interquartile ranges beyond a quartile were removed.
  std::optional<double> outlier_us;
  std::optional<double> profiler_events;  // mean number of events that the profiler wrote per occurrence
  std::uint64_t n = 0;                    // occurrences
  Provenance provenance;
  // Identity of the record: "T1/aten::addmm".
  [[nodiscard]] std::string key() const;
  friend bool operator==(const OverheadRecord&, const OverheadRecord&) = default;
};

// Name and `kind` of the model with the runtime calls that operators make (LaunchTable in
// cost/host_overheads.h). It is inherited and dropped together with the overheads.
inline constexpr std::string_view kHostLaunchesKind = "host_launches";

// A figure that a user's file changed in the platform that it extends; values in the unit of the key.
struct ChangedFigure {
  std::string path;  // "device.memory_bandwidth_GBps"
  double before = 0, now = 0;
};

// A machine: device, node, and records. Plain data; check() validates it.
struct Platform {
  std::string name;
  std::string description;
  std::vector<std::string> aliases;  // other names in measurements: "perlmutter"
  Device device;
  Node node;
  std::vector<CollectiveCurve> curves;                   // ordered by key
  std::vector<ModelRecord> models;                       // ordered by name
  detail::Later<std::vector<OverheadRecord>> overheads;  // ordered by key

  // The files that it was read from: the file itself, then the files that it extends. Not part of the
  // content.
  std::vector<std::filesystem::path> files;
  // Changes by user files to the platforms that they extend, for reports. Not part of the content.
  std::vector<ChangedFigure> changed;

  [[nodiscard]] bool matches_name(std::string_view text) const;
  // The model record of this name, or null. The pointer is valid until the next set().
  [[nodiscard]] const ModelRecord* find_model(std::string_view model_name) const;
  // Replaces the record with the same key, or inserts it in order.
  void set(CollectiveCurve curve);
  void set(ModelRecord model);
  void set(OverheadRecord overhead);

  // Error for the first invalid figure: no device name, a bandwidth that is not positive, knots out of order,
  // ... The place in the Error is the path in the file: "device.memory_bandwidth_GBps".
  [[nodiscard]] Status check() const;
};
// Equal content; ignores `files` and `changed`.
[[nodiscard]] bool operator==(const Platform& a, const Platform& b);

// Whether two spellings are of one name: case, blanks, '-' and '_' are ignored.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b);

}  // namespace stepcast
