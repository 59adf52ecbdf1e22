#include "stepcast/platform/detail/hardware_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/platform/detail/figures.h"

namespace stepcast::detail {
namespace {

// Reads the figures that the object of a group states, with their sources. Other figures stay unchanged.
template <class Group>
class GroupReader {
 public:
  GroupReader(ObjectReader& object, Group& group, std::span<const Figure<Group>> figures,
              std::span<const std::string_view> others)
      : o_(object), group_(group), figures_(figures), others_(others) {}

  // Reads all figures; null removes an optional one. Errors: another kind of value, or a value outside of the
  // limits.
  Status figures() {
    for (const Figure<Group>& figure : figures_) {
      const JsonValue* member = o_.take(figure.key);
      if (member == nullptr) continue;
      if (member->is_null()) {
        if (figure.required) return o_.wrong_kind(figure.key, *member, "a number");
        figure.set(group_, std::nullopt);
        removed_.insert(figure.key);
        continue;
      }
      if (!member->is_number()) return o_.wrong_kind(figure.key, *member, "a number");
      const double x = member->number();
      if (std::string expectation = figure.expectation_broken_by(x); !expectation.empty()) {
        const bool too_large = !figure.is_count && x > figure.largest;
        Error error = o_.error(figure.key).found(json_number(x)).expected(std::move(expectation));
        return too_large ? std::move(error).advice("check the unit that the key names") : std::move(error);
      }
      figure.set(group_, x * figure.unit);
      stated_.insert(figure.key);
    }
    return Ok{};
  }
  // Notes a stated member that is not a plain number, for sources().
  void state(std::string_view key) { stated_.emplace(key); }
  // A list or choice that null removes. Otherwise read(member) parses it into `value`.
  template <class Value, class Read>
  Status nullable(std::string_view key, Value& value, const Read& read) {
    const JsonValue* member = o_.take(key);
    if (member != nullptr && member->is_null()) {
      value = {};
      removed_.emplace(key);
    } else if (member != nullptr) {
      STEPCAST_TRY(read(*member));
      state(key);
    }
    if (value == Value{}) without_value_.emplace_back(key);
    return Ok{};
  }

  // Reads `sources`. Call it last: it assigns sources to the stated figures and removes those of removed
  // figures.
  Status sources(const Documents& documents) {
    std::optional<Provenance> fallback;
    std::map<std::string, Provenance, std::less<>> by_key;
    if (const JsonValue* member = o_.take("sources")) {
      if (!member->is_object()) return o_.wrong_kind("sources", *member, "an object");
      for (const JsonValue::Member& entry : member->members()) {
        const std::string path = o_.path_of("sources." + entry.key);
        STEPCAST_ASSIGN(Provenance p, read_provenance(entry.value, path, o_.file(), documents));
        if (entry.key == "default") {
          fallback = std::move(p);
        } else if (!knows(entry.key)) {
          const auto meant = nearest_word(entry.key, known());
          return error_at(o_.file(), entry.value, path, "no such figure")
              .advice(meant ? fmt::format("did you mean `{}`?", *meant) : "remove it");
        } else {
          by_key.emplace(entry.key, std::move(p));
        }
      }
    }
    // A figure that this file states must not keep the source of an inherited value.
    for (const std::string& key : removed_) group_.sources.erase(key);
    for (const std::string& key : stated_) {
      if (by_key.contains(key)) continue;
      if (fallback)
        group_.sources.set(key, *fallback);
      else
        group_.sources.erase(key);
    }
    for (auto& [key, p] : by_key)
      if (is_given(key)) group_.sources.set(key, std::move(p));
    for (const std::string& key : without_value_) group_.sources.erase(key);
    return Ok{};
  }

 private:
  // Sources of figures without a value are dropped, since they could not be written again.
  [[nodiscard]] bool is_given(std::string_view key) const {
    for (const Figure<Group>& figure : figures_)
      if (figure.key == key) return figure.get(group_).has_value();
    return true;
  }
  // All keys that may have a source.
  [[nodiscard]] std::vector<std::string> known() const {
    std::vector<std::string> keys;
    for (const Figure<Group>& figure : figures_) keys.push_back(figure.key);
    for (const std::string_view other : others_) keys.emplace_back(other);
    return keys;
  }
  [[nodiscard]] bool knows(std::string_view key) const {
    const auto keys = known();
    return std::ranges::find(keys, key) != keys.end();
  }

  ObjectReader& o_;
  Group& group_;
  std::span<const Figure<Group>> figures_;
  std::span<const std::string_view> others_;
  std::set<std::string> stated_, removed_;
  std::vector<std::string> without_value_;
};

// [{"gpus": [0, 3], "bandwidth_GBps": 25}, ...].
Status read_links(ObjectReader& o, const JsonValue& list, std::vector<Link>& links) {
  if (!list.is_array()) return o.wrong_kind("links", list, "a list of links");
  links.clear();
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const JsonValue& item = list.items()[i];
    STEPCAST_ASSIGN(ObjectReader entry,
                    ObjectReader::of(item, o.path_of(fmt::format("links[{}]", i)), o.file()));
    Link link;
    const JsonValue* gpus = entry.take("gpus");
    const auto numbers = gpus != nullptr ? gpus->numbers() : std::nullopt;
    const auto good = [](double x) {
      return x >= 0 && x <= 1023 && x == static_cast<double>(static_cast<int>(x));
    };
    if (!numbers || numbers->size() != 2 || !good((*numbers)[0]) || !good((*numbers)[1])) {
      return entry.error("gpus", gpus == nullptr ? "missing" : "")
          .expected("two GPU numbers, such as [0, 3]");
    }
    link.gpu_a = static_cast<std::uint32_t>((*numbers)[0]);
    link.gpu_b = static_cast<std::uint32_t>((*numbers)[1]);
    double bandwidth = 0;
    STEPCAST_TRY(entry.optional("bandwidth_GBps", bandwidth));
    if (std::string expectation = broken_expectation(bandwidth, false, 1e5); !expectation.empty())
      return entry.error("bandwidth_GBps").found(json_number(bandwidth)).expected(std::move(expectation));
    link.bandwidth = BytesPerSecond{bandwidth * 1e9};
    STEPCAST_TRY(entry.finish());
    links.push_back(link);
  }
  return Ok{};
}

// Chips along each axis: [4, 4, 8].
Status read_axes(ObjectReader& o, const JsonValue& list, std::vector<std::uint32_t>& axes) {
  const auto numbers = list.numbers();
  if (!numbers || numbers->empty() || numbers->size() > kMostTorusAxes ||
      std::ranges::any_of(*numbers,
                          [](double x) { return !broken_expectation(x, true, kMostGpusPerNode).empty(); })) {
    return o.error("axes")
        .found(compact_json(list).substr(0, 80))
        .expected(fmt::format("the chips along 1 to {} axes, such as [4, 4, 8]", kMostTorusAxes));
  }
  axes.clear();
  for (const double x : *numbers) axes.push_back(static_cast<std::uint32_t>(x));
  return Ok{};
}

// The object node.intra.
Status read_intra(ObjectReader& o, IntraNode& intra, const Documents& documents) {
  GroupReader<IntraNode> group{o, intra, intra_figures(), kIntraOthers};
  std::string kind;
  STEPCAST_TRY(o.optional("kind", kind));
  if (!kind.empty()) {
    const auto parsed = parse_link_kind(kind);
    if (!parsed) {
      return o.error("kind")
          .found(fmt::format("`{}`", kind))
          .expected("nvswitch, nvlink_mesh, xgmi_mesh, pcie, mixed, torus or none");
    }
    intra.kind = *parsed;
    group.state("kind");
  }
  STEPCAST_TRY(group.figures());
  STEPCAST_TRY(group.nullable("links", intra.links,
                              [&](const JsonValue& list) { return read_links(o, list, intra.links); }));
  STEPCAST_TRY(group.nullable("axes", intra.axes,
                              [&](const JsonValue& list) { return read_axes(o, list, intra.axes); }));
  STEPCAST_TRY(group.sources(documents));
  return o.finish();
}

// The list node.network.tiers: [{"nodes": 32, "oversubscription": 2}].
Status read_tiers(ObjectReader& o, const JsonValue& list, std::vector<NetworkTier>& tiers) {
  if (!list.is_array() || list.items().size() > kMostNetworkTiers)
    return o.wrong_kind("tiers", list, fmt::format("a list of at most {} tiers", kMostNetworkTiers));
  tiers.clear();
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    STEPCAST_ASSIGN(ObjectReader entry,
                    ObjectReader::of(list.items()[i], o.path_of(fmt::format("tiers[{}]", i)), o.file()));
    double nodes = 0, oversubscription = 1;
    STEPCAST_TRY(entry.optional("nodes", nodes));
    STEPCAST_TRY(entry.optional("oversubscription", oversubscription));
    if (std::string expectation = broken_expectation(nodes, true, 1e6); !expectation.empty())
      return entry.error("nodes").found(json_number(nodes)).expected(std::move(expectation));
    STEPCAST_TRY(entry.finish());
    tiers.push_back({static_cast<std::uint32_t>(nodes), oversubscription});
  }
  return Ok{};
}

// The object node.network.
Status read_network(ObjectReader& o, Network& network, const Documents& documents) {
  GroupReader<Network> group{o, network, network_figures(), kNetworkOthers};
  if (const JsonValue* kind = o.take("kind")) {
    if (!kind->is_text()) return o.wrong_kind("kind", *kind, "a text");
    network.kind = kind->text();
    group.state("kind");
  }
  STEPCAST_TRY(group.figures());
  STEPCAST_TRY(group.nullable("rail_optimized", network.rail_optimized, [&](const JsonValue& rail) -> Status {
    if (!rail.is_bool()) return o.wrong_kind("rail_optimized", rail, "true, false or null");
    network.rail_optimized = rail.truth();
    return Ok{};
  }));
  STEPCAST_TRY(group.nullable("tiers", network.tiers,
                              [&](const JsonValue& list) { return read_tiers(o, list, network.tiers); }));
  STEPCAST_TRY(group.sources(documents));
  return o.finish();
}

}  // namespace

Status read_device(ObjectReader& o, Device& device, const Documents& documents) {
  STEPCAST_TRY(o.optional("name", device.name));
  STEPCAST_TRY(o.optional("aliases", device.aliases));
  STEPCAST_TRY(o.optional("vendor", device.vendor));
  STEPCAST_TRY(o.optional("architecture", device.architecture));
  GroupReader<Device> group{o, device, device_figures(), {}};
  STEPCAST_TRY(group.figures());
  STEPCAST_TRY(group.sources(documents));
  return o.finish();
}

Status read_node(ObjectReader& o, Node& node, const Documents& documents) {
  GroupReader<Node> group{o, node, node_figures(), {}};
  STEPCAST_TRY(group.figures());
  STEPCAST_TRY(group.sources(documents));
  if (const JsonValue* member = o.take("intra")) {
    STEPCAST_ASSIGN(ObjectReader intra, ObjectReader::of(*member, o.path_of("intra"), o.file()));
    STEPCAST_TRY(read_intra(intra, node.intra, documents));
  }
  if (const JsonValue* member = o.take("network")) {
    if (member->is_null()) {
      // null removes an inherited network.
      node.network.reset();
    } else {
      STEPCAST_ASSIGN(ObjectReader network, ObjectReader::of(*member, o.path_of("network"), o.file()));
      if (!node.network) node.network.emplace();
      STEPCAST_TRY(read_network(network, *node.network, documents));
    }
  }
  return o.finish();
}

}  // namespace stepcast::detail
