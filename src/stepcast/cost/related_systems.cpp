#include "stepcast/cost/related_systems.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"
#include "stepcast/cost/nccl_choice.h"

namespace stepcast {
namespace {

// Weights of the mean. Chosen for the lowest mean error over all machines and generations left out in turn
// (docs/collectives.md).
constexpr double kOwnFamily = 16;
constexpr double kSameLinks = 1;
constexpr double kOtherLinks = 0.25;
constexpr double kBareEstimate = 0.5;
// Factor on the weight of a family that uses another algorithm than the node and has no ring measurements.
constexpr double kOtherAlgorithm = 0.1;
// Start-up of a message between two GPUs: time of 2^8 bytes.
constexpr double kLog2StartupBytes = 8;
constexpr int kDigits = 4;
constexpr double kMostLn = 20;  // a larger ratio is an error of the file
constexpr double kNever = 1e300;

bool same_family(const RelatedShape& shape, const Device& device, const Node& node) {
  return shape.architecture == device.architecture && shape.links == node.intra.kind;
}

using Family = std::vector<const RelatedShape*>;  // one collective on several rank counts

// Ratios of one family for a rank count, linear in log2 of the ranks between measured counts, constant
// beyond.
RelatedShape::Table of_ranks(const Family& family, std::uint32_t n_ranks) {
  const RelatedShape *below = nullptr, *above = nullptr;
  for (const RelatedShape* s : family) {
    if (s->n_ranks <= n_ranks && (below == nullptr || s->n_ranks > below->n_ranks)) below = s;
    if (s->n_ranks >= n_ranks && (above == nullptr || s->n_ranks < above->n_ranks)) above = s;
  }
  if (below == nullptr) return above->ln_ratio;
  if (above == nullptr || above == below) return below->ln_ratio;
  const double from = std::log2(below->n_ranks), to = std::log2(above->n_ranks);
  const double share = (std::log2(n_ranks) - from) / (to - from);
  RelatedShape::Table ratio{};
  for (std::size_t i = 0; i < ratio.size(); ++i)
    ratio[i] = (1 - share) * below->ln_ratio[i] + share * above->ln_ratio[i];
  return ratio;
}

// Shapes of a collective grouped by family, in the order of their first shape.
std::vector<Family> families_of(const std::vector<RelatedShape>& shapes, CollectiveOp op) {
  std::vector<Family> families;
  for (const RelatedShape& shape : shapes) {
    if (shape.op != op) continue;
    auto family = std::ranges::find_if(families, [&](const Family& f) {
      return f.front()->architecture == shape.architecture && f.front()->links == shape.links;
    });
    if (family == families.end()) family = families.emplace(families.end());
    family->push_back(&shape);
  }
  return families;
}

// Mean ratio of the rings (all_gather and reduce_scatter) of the same family; none if neither was measured.
std::optional<RelatedShape::Table> of_rings(const std::vector<RelatedShape>& shapes, const RelatedShape& like,
                                            std::uint32_t n_ranks) {
  RelatedShape::Table sum{};
  double n = 0;
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    for (const Family& family : families_of(shapes, op)) {
      if (family.front()->architecture != like.architecture || family.front()->links != like.links) continue;
      const RelatedShape::Table own = of_ranks(family, n_ranks);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
      n += 1;
    }
  }
  if (n == 0) return std::nullopt;
  for (double& r : sum) r /= n;
  return sum;
}

// Value of a table at a time on the links, linear between points, constant beyond.
double at(const RelatedShape::Table& ratio, double log2_ns) {
  const double position = std::clamp((log2_ns - RelatedShape::kFirst) / RelatedShape::kStep, 0.0,
                                     static_cast<double>(RelatedShape::kPoints - 1));
  const auto i = std::min(static_cast<std::size_t>(position), RelatedShape::kPoints - 2);
  const double share = position - static_cast<double>(i);
  return (1 - share) * ratio[i] + share * ratio[i + 1];
}

// Reads an array of fixed length. Errors: another length, or values beyond kMostLn.
template <class Table>
Status read_numbers(const JsonValue& object, std::string_view key, Table& table) {
  STEPCAST_ASSIGN(const std::vector<double> numbers, finite_numbers(object, key, table.size()));
  for (const double v : numbers) {
    if (std::abs(v) > kMostLn) {
      return Error{fmt::format("`{}`", key)}
          .found(fmt::format("{}", v))
          .expected(fmt::format("logarithms of ratios, from {} to {}", -kMostLn, kMostLn));
    }
  }
  std::copy(numbers.begin(), numbers.end(), table.begin());
  return Ok{};
}

// Numbers as one text, separated by spaces.
template <class Table>
JsonValue numbers_json(const Table& table) {
  std::string text;
  for (const double v : table) text += fmt::format("{}{}", text.empty() ? "" : " ", rounded(v, kDigits));
  return JsonValue{std::move(text)};
}

// A text under `key`. Error: missing or not a text.
Result<std::string> text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || !value->is_text()) return Error{fmt::format("`{}` is not a string", key)};
  return value->text();
}

Result<RelatedShape> read_shape(const JsonValue& value) {
  RelatedShape shape;
  STEPCAST_ASSIGN(shape.architecture, text_of(value, "architecture"));
  STEPCAST_ASSIGN(const std::string links, text_of(value, "links"));
  STEPCAST_ASSIGN(const std::string op, text_of(value, "collective"));
  const auto kind = parse_link_kind(links);
  if (!kind) return Error{"`links`"}.found(links).expected("nvswitch, nvlink_mesh, xgmi_mesh, pcie or mixed");
  shape.links = *kind;
  shape.op = parse_collective_op(op);
  if (shape.op == CollectiveOp::unknown) return Error{"`collective`"}.found(op).expected("all_reduce, ...");
  STEPCAST_ASSIGN(const double ranks, positive_number(value, "n_ranks"));
  STEPCAST_ASSIGN(const double machines, positive_number(value, "n_machines"));
  if (!(ranks >= 2 && ranks <= 65536 && machines <= 65536)) {
    return Error{"`n_ranks` and `n_machines`"}
        .found(fmt::format("{} and {}", ranks, machines))
        .expected("2 to 65536 ranks, up to 65536 machines");
  }
  shape.n_ranks = static_cast<std::uint32_t>(ranks);
  shape.n_machines = static_cast<std::uint32_t>(machines);
  if (const JsonValue* from = value.find("nvls_from"); from != nullptr) {
    STEPCAST_ASSIGN(const std::vector<double> number, finite_numbers(value, "nvls_from", 1));
    shape.nvls_from = number.front();
  }
  STEPCAST_TRY(read_numbers(value, "ln_ratio", shape.ln_ratio));
  return shape;
}

// Names of the bands in the record.
struct NamedBand {
  std::string_view key;
  RelatedBand RelatedSystems::*band;
};
constexpr std::array<NamedBand, 3> kBands = {{{"with_family", &RelatedSystems::with_family},
                                              {"without_family", &RelatedSystems::without_family},
                                              {"moved", &RelatedSystems::moved}}};

}  // namespace

std::array<double, 2> RelatedBand::at(double log2_ns) const {
  const auto after = std::upper_bound(kMiddles.begin(), kMiddles.end(), log2_ns);
  const auto hi = std::min(static_cast<std::size_t>(after - kMiddles.begin()), kMiddles.size() - 1);
  const std::size_t lo =
      after == kMiddles.begin() ? 0 : static_cast<std::size_t>(after - kMiddles.begin()) - 1;
  const double share = hi == lo ? 0 : (log2_ns - kMiddles[lo]) / (kMiddles[hi] - kMiddles[lo]);
  return {p10[lo] + share * (p10[hi] - p10[lo]), p90[lo] + share * (p90[hi] - p90[lo])};
}

Result<RelatedSystems> RelatedSystems::read(const JsonValue& parameters) {
  const JsonValue* list = parameters.find("shapes");
  if (list == nullptr || !list->is_array()) return Error{"`shapes` is not a list"};
  RelatedSystems result;
  for (const JsonValue& item : list->items()) {
    STEPCAST_ASSIGN(RelatedShape shape, read_shape(item));
    result.shapes.push_back(std::move(shape));
  }
  for (const NamedBand& named : kBands) {
    const JsonValue* band = parameters.find(named.key);
    if (band == nullptr) return Error{fmt::format("`{}` is missing", named.key)};
    STEPCAST_TRY(read_numbers(*band, "p10", (result.*named.band).p10));
    STEPCAST_TRY(read_numbers(*band, "p90", (result.*named.band).p90));
  }
  return result;
}

JsonValue RelatedSystems::write() const {
  JsonValue list = JsonValue::array();
  for (const RelatedShape& shape : shapes) {
    JsonValue item = JsonValue::object();
    item.add("architecture", JsonValue{shape.architecture})
        .add("links", JsonValue{to_string(shape.links)})
        .add("collective", JsonValue{to_string(shape.op)})
        .add("n_ranks", JsonValue{static_cast<double>(shape.n_ranks)})
        .add("n_machines", JsonValue{static_cast<double>(shape.n_machines)});
    if (shape.nvls_from) item.add("nvls_from", numbers_json(std::array<double, 1>{*shape.nvls_from}));
    item.add("ln_ratio", numbers_json(shape.ln_ratio));
    list.add(std::move(item));
  }
  JsonValue parameters = JsonValue::object();
  for (const NamedBand& named : kBands) {
    JsonValue band = JsonValue::object();
    band.add("p10", numbers_json((this->*named.band).p10)).add("p90", numbers_json((this->*named.band).p90));
    parameters.add(named.key, std::move(band));
  }
  parameters.add("shapes", std::move(list));
  return parameters;
}

std::optional<RelatedSystems> RelatedSystems::of(const Platform& platform) {
  const ModelRecord* record = platform.find_model(kRecordName);
  if (record == nullptr || record->kind != kRecordKind) return std::nullopt;
  auto related = read(record->parameters);
  if (!related) return std::nullopt;
  return std::move(related).value();
}

bool RelatedSystems::has_family(const Device& device, const Node& node) const {
  return std::ranges::any_of(shapes, [&](const RelatedShape& s) { return same_family(s, device, node); });
}

double log2_link_ns(const Device& device, const Node& node, std::uint32_t n_ranks, double log2_bytes) {
  return log2_bytes - std::log2(nccl_fabric(device, node, n_ranks).link_GBps);
}

std::optional<RelatedShape::Table> RelatedSystems::ratio(const Device& device, const Node& node,
                                                         CollectiveOp op, std::uint32_t n_ranks) const {
  const std::vector<Family> families = families_of(shapes, op);
  if (families.empty()) return std::nullopt;
  const NcclFabric fabric = nccl_fabric(device, node, n_ranks);
  // [point] whether NCCL would choose NVLS on this node.
  std::array<bool, RelatedShape::kPoints> is_nvls{};
  for (std::size_t i = 0; i < is_nvls.size(); ++i) {
    const double bytes = std::exp2(RelatedShape::at(i)) * fabric.link_GBps;
    is_nvls[i] = nccl_estimate(fabric, op, n_ranks, 1, bytes).algorithm == NcclAlgorithm::nvls;
  }
  RelatedShape::Table sum{}, weights{};
  weights.fill(kBareEstimate);
  for (const Family& family : families) {
    const RelatedShape& first = *family.front();
    const bool is_own = same_family(first, device, node);
    const double share = is_own ? kOwnFamily : first.links == node.intra.kind ? kSameLinks : kOtherLinks;
    const RelatedShape::Table own = of_ranks(family, n_ranks);
    const auto rings = is_own ? std::nullopt : of_rings(shapes, first, n_ranks);
    double nvls_from = kNever;
    for (const RelatedShape* s : family)
      if (n_ranks > 2 && s->n_ranks > 2 && s->nvls_from) nvls_from = std::min(nvls_from, *s->nvls_from);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      // A family counts fully where it uses the algorithm of the node, or where its rings can replace it.
      const bool theirs_is_nvls = RelatedShape::at(i) >= nvls_from;
      const bool is_like = is_own || theirs_is_nvls == is_nvls[i];
      const bool rings_speak = !is_like && theirs_is_nvls && rings;
      const double weight = is_like || rings_speak ? share : kOtherAlgorithm * share;
      sum[i] += weight * (rings_speak ? (*rings)[i] : own[i]);
      weights[i] += weight;
    }
  }
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] /= weights[i];
  return sum;
}

TimeCurve RelatedSystems::with_band(TimeCurve::Table time, const Device& device, const Node& node,
                                    double log2_GBps) const {
  make_non_decreasing(time);
  const RelatedBand& band = has_family(device, node) ? with_family : without_family;
  TimeCurve::Table low{}, high{};
  for (std::size_t i = 0; i < time.size(); ++i) {
    const auto [p10, p90] = band.at(TimeCurve::log2_bytes(i) - log2_GBps);
    low[i] = time[i] + p10;
    high[i] = time[i] + p90;
  }
  TimeCurve curve{time, low, high};
  curve.source = curve.outside_source = EstimateSource::analytic;
  return curve;
}

std::optional<TimeCurve> RelatedSystems::curve(const Device& device, const Node& node, CollectiveOp op,
                                               std::uint32_t n_ranks) const {
  const bool is_pair =
      op == CollectiveOp::send || op == CollectiveOp::receive || op == CollectiveOp::send_receive;
  if (is_pair) n_ranks = 2;
  const NcclFabric fabric = nccl_fabric(device, node, n_ranks);
  const double log2_GBps = std::log2(fabric.link_GBps);
  TimeCurve::Table time{};
  if (is_pair) {
    const auto start_up = curve(device, node, CollectiveOp::all_to_all, n_ranks);
    const auto transfer = ratio(device, node, CollectiveOp::all_gather, n_ranks);
    if (!start_up || !transfer) return std::nullopt;
    const double start_us = std::exp(start_up->ln_time_us(kLog2StartupBytes));
    const double us_per_byte = std::exp(transfer->back()) / (1000 * fabric.link_GBps);
    for (std::size_t i = 0; i < time.size(); ++i)
      time[i] = std::log(start_us + us_per_byte * std::exp2(TimeCurve::log2_bytes(i)));
    return with_band(time, device, node, log2_GBps);
  }
  const auto ratios = ratio(device, node, op, n_ranks);
  if (!ratios) return std::nullopt;
  for (std::size_t i = 0; i < time.size(); ++i) {
    const double x = TimeCurve::log2_bytes(i);
    time[i] =
        std::log(nccl_estimate(fabric, op, n_ranks, 1, std::exp2(x)).time_us) + at(*ratios, x - log2_GBps);
  }
  return with_band(time, device, node, log2_GBps);
}

}  // namespace stepcast
