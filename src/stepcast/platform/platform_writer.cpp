// Platforms as JSON text: platform_json, platform_extension_json, platform_figures.

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/platform/changed_figures.h"
#include "stepcast/platform/detail/figures.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast {
namespace {

JsonValue whole(std::uint64_t n) { return JsonValue{static_cast<double>(n)}; }

JsonValue texts(const std::vector<std::string>& list) {
  JsonValue out = JsonValue::array();
  for (const std::string& text : list) out.add(JsonValue{text});
  return out;
}

JsonValue numbers(const NamedNumbers& list) {
  JsonValue out = JsonValue::object();
  for (const auto& [name, value] : list) out.add(name, JsonValue{value});
  return out;
}

// A provenance as an object; row hashes as hexadecimal differences.
JsonValue provenance_json(const Provenance& p) {
  JsonValue out = JsonValue::object();
  out.add("source", JsonValue{to_string(p.source)});
  if (!p.document.empty()) out.add("document", JsonValue{p.document});
  if (!p.date.empty()) out.add("date", JsonValue{p.date});
  if (!p.software.empty()) out.add("software", JsonValue{p.software});
  if (p.n_rows > 0) out.add("n_rows", whole(p.n_rows));
  if (!p.error.empty()) out.add("error", numbers(p.error));
  if (!p.range.empty()) out.add("range", numbers(p.range));
  if (!p.row_hashes.empty()) {
    // Differences of sorted hashes: a third smaller after compression than the hashes.
    std::string digits;
    std::uint32_t last = 0;
    for (const std::uint32_t hash : p.row_hashes.all()) {
      digits += fmt::format("{}{:x}", digits.empty() ? "" : " ", hash - last);
      last = hash;
    }
    out.add("row_hashes", JsonValue{std::move(digits)});
  }
  return out;
}

// Gives each source a short name, so that the file contains it only once.
class Documents {
 public:
  // The short name of a source; the source itself if it has row hashes.
  JsonValue refer(const Provenance& p) {
    if (!p.row_hashes.empty()) return provenance_json(p);  // belongs to one record
    for (const auto& [name, known] : entries_)
      if (known == p) return JsonValue{name};
    const std::string_view source = to_string(p.source);
    entries_.emplace_back(fmt::format("{}_{}", source, ++count_[p.source]), p);
    return JsonValue{entries_.back().first};
  }
  [[nodiscard]] JsonValue json() const {
    JsonValue out = JsonValue::object();
    for (const auto& [name, p] : entries_) out.add(name, provenance_json(p));
    return out;
  }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  std::vector<std::pair<std::string, Provenance>> entries_;
  std::map<FigureSource, int> count_;
};

// Builds the object of a group: all members, or only those that differ from `base`.
template <class Group>
class GroupWriter {
 public:
  GroupWriter(const Group& group, const Group* base, JsonValue& out)
      : group_(group), base_(base), out_(out) {}

  // Whether a member differs from the base; true without a base.
  template <class Value>
  [[nodiscard]] bool differs(Value Group::*member) const {
    return base_ == nullptr || group_.*member != base_->*member;
  }

  // Whether to write an optional member.
  template <class Value>
  [[nodiscard]] bool is_news(Value Group::*member) const {
    return base_ != nullptr ? differs(member) : group_.*member != Value{};
  }
  // An optional member that `null` removes, written as json(value).
  template <class Value, class Json>
  void nullable(std::string_view key, Value Group::*member, const Json& json) {
    if (group_.*member != Value{}) {
      if (says(key, differs(member))) out_.add(key, json(group_.*member));
    } else if (base_ != nullptr && base_->*member != Value{}) {
      out_.add(key, JsonValue{});
    }
  }

  // All figures of a table; a figure that only the base has becomes null.
  void figures(std::span<const detail::Figure<Group>> figures) {
    for (const auto& figure : figures) {
      const auto value = figure.get(group_);
      const auto before = base_ != nullptr ? figure.get(*base_) : std::nullopt;
      if (!value) {
        if (before) out_.add(figure.key, JsonValue{});
        continue;
      }
      if (!says(figure.key, value != before)) continue;
      out_.add(figure.key, JsonValue{figure.without_unit(*value)});
    }
  }
  // Whether the figure has to be written; if so, notes it for sources().
  bool says(std::string_view key, bool value_differs) {
    const Provenance* now = group_.sources.find(key);
    const Provenance* before = base_ != nullptr ? base_->sources.find(key) : nullptr;
    const bool source_differs =
        (now == nullptr) != (before == nullptr) || (now != nullptr && *now != *before);
    if (base_ != nullptr && !value_differs && !source_differs) return false;
    said_.emplace_back(key);
    return true;
  }
  // Writes the sources of the figures written so far; call it last.
  void sources(Documents& documents) {
    // The most frequent source becomes the default, if every written figure has one.
    std::vector<std::pair<const Provenance*, int>> counts;
    bool all_have_one = true;
    for (const std::string& key : said_) {
      const Provenance* p = group_.sources.find(key);
      if (p == nullptr) {
        all_have_one = false;
        continue;
      }
      const auto found = std::ranges::find_if(counts, [&](const auto& c) { return *c.first == *p; });
      if (found == counts.end())
        counts.emplace_back(p, 1);
      else
        ++found->second;
    }
    if (counts.empty()) return;
    const Provenance* fallback = nullptr;
    JsonValue sources = JsonValue::object();
    if (all_have_one) {
      fallback = std::ranges::max_element(counts, [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
      sources.add("default", documents.refer(*fallback));
    }
    for (const std::string& key : said_) {
      const Provenance* p = group_.sources.find(key);
      if (p != nullptr && (fallback == nullptr || *p != *fallback)) sources.add(key, documents.refer(*p));
    }
    out_.add("sources", std::move(sources));
  }

 private:
  const Group& group_;
  const Group* base_;
  JsonValue& out_;
  std::vector<std::string> said_;
};

// The object of a device; empty if an extension changes nothing in it.
JsonValue device_json(const Device& device, const Device* base, Documents& documents) {
  JsonValue out = JsonValue::object();
  GroupWriter<Device> group{device, base, out};
  if (group.differs(&Device::name)) out.add("name", JsonValue{device.name});
  if (group.is_news(&Device::aliases)) out.add("aliases", texts(device.aliases));
  if (group.is_news(&Device::vendor)) out.add("vendor", JsonValue{device.vendor});
  if (group.is_news(&Device::architecture)) out.add("architecture", JsonValue{device.architecture});
  group.figures(detail::device_figures());
  group.sources(documents);
  return out;
}

// [{"gpus": [0, 3], "bandwidth_GBps": 25}, ...], as read_links() reads it.
JsonValue links_json(const std::vector<Link>& links) {
  JsonValue out = JsonValue::array();
  for (const Link& link : links) {
    JsonValue entry = JsonValue::object();
    entry.add("gpus", JsonValue::array().add(whole(link.gpu_a)).add(whole(link.gpu_b)));
    entry.add("bandwidth_GBps", JsonValue{detail::shortest_quotient(link.bandwidth.value(), 1e9)});
    out.add(std::move(entry));
  }
  return out;
}

// The object node.intra. An extension writes links and axes whole, or null to remove those of the base.
JsonValue intra_json(const IntraNode& intra, const IntraNode* base, Documents& documents) {
  JsonValue out = JsonValue::object();
  GroupWriter<IntraNode> group{intra, base, out};
  if (group.says("kind", group.differs(&IntraNode::kind))) out.add("kind", JsonValue{to_string(intra.kind)});
  group.figures(detail::intra_figures());
  group.nullable("links", &IntraNode::links, links_json);
  group.nullable("axes", &IntraNode::axes, [](const std::vector<std::uint32_t>& sides) {
    JsonValue axes = JsonValue::array();
    for (const std::uint32_t side : sides) axes.add(whole(side));
    return axes;
  });
  group.sources(documents);
  return out;
}

// [{"nodes": 32, "oversubscription": 2}, ...], as read_tiers() reads it.
JsonValue tiers_json(const std::vector<NetworkTier>& tiers) {
  JsonValue out = JsonValue::array();
  for (const NetworkTier& tier : tiers) {
    JsonValue entry = JsonValue::object();
    entry.add("nodes", whole(tier.nodes));
    entry.add("oversubscription", JsonValue{tier.oversubscription});
    out.add(std::move(entry));
  }
  return out;
}

// The object node.network.
JsonValue network_json(const Network& network, const Network* base, Documents& documents) {
  JsonValue out = JsonValue::object();
  GroupWriter<Network> group{network, base, out};
  // A complete file leaves out an empty kind, unless a source is stated for it.
  const bool has_kind = !network.kind.empty() || network.sources.find("kind") != nullptr || base != nullptr;
  if (has_kind && group.says("kind", group.differs(&Network::kind))) out.add("kind", JsonValue{network.kind});
  group.figures(detail::network_figures());
  group.nullable("rail_optimized", &Network::rail_optimized,
                 [](const std::optional<bool>& rail) { return JsonValue{*rail}; });
  group.nullable("tiers", &Network::tiers, tiers_json);
  group.sources(documents);
  return out;
}

// No members.
bool is_empty(const JsonValue& object) { return object.members().empty(); }

// The object of a node with its links and network. A network that only the base has becomes null.
JsonValue node_json(const Node& node, const Node* base, Documents& documents) {
  JsonValue out = JsonValue::object();
  GroupWriter<Node> group{node, base, out};
  group.figures(detail::node_figures());
  group.sources(documents);
  if (JsonValue intra = intra_json(node.intra, base != nullptr ? &base->intra : nullptr, documents);
      !is_empty(intra)) {
    out.add("intra", std::move(intra));
  }
  if (node.network) {
    const Network* before = base != nullptr && base->network ? &*base->network : nullptr;
    JsonValue network = network_json(*node.network, before, documents);
    if (!is_empty(network) || before == nullptr) out.add("network", std::move(network));
  } else if (base != nullptr && base->network) {
    out.add("network", JsonValue{});
  }
  return out;
}

// A provenance, unless it is empty.
void add_provenance(JsonValue& record, const Provenance& p, Documents& documents) {
  if (p != Provenance{}) record.add("provenance", documents.refer(p));
}

// A curve form, unless it is empty.
void add_form(JsonValue& record, std::string_view key, const CurveForm& form) {
  if (form.empty()) return;
  JsonValue out = JsonValue::object();
  out.add("form", JsonValue{form.form}).add("parameters", numbers(form.parameters));
  record.add(key, std::move(out));
}

// The three overloads write an entry of collective_curves, models and overheads. Members that are empty or 0
// are left out; so the reader leaves them at their defaults.
JsonValue record_json(const CollectiveCurve& curve, Documents& documents) {
  JsonValue out = JsonValue::object();
  out.add("collective", JsonValue{to_string(curve.collective)});
  out.add("dtype", JsonValue{curve.dtype == DType::unknown ? "any" : to_string(curve.dtype)});
  if (!curve.variant.empty()) out.add("variant", JsonValue{curve.variant});
  out.add("n_nodes", whole(curve.n_nodes)).add("gpus_per_node", whole(curve.gpus_per_node));
  out.add("n_ranks", whole(curve.n_ranks));
  const CurveFit& fit = *curve.fit;
  add_form(out, "published", fit.published);
  add_form(out, "improved", fit.improved);
  if (!fit.knots.empty()) {
    JsonValue sizes = JsonValue::array();
    JsonValue times = JsonValue::array();
    for (const CurveKnot& knot : fit.knots) {
      sizes.add(JsonValue{knot.message_bytes});
      times.add(JsonValue{knot.time_us});
    }
    JsonValue knots = JsonValue::object();
    knots.add("message_bytes", std::move(sizes)).add("time_us", std::move(times));
    out.add("knots", std::move(knots));
  }
  if (!fit.residuals.empty()) {
    JsonValue list = JsonValue::array();
    for (const ResidualQuantiles& r : fit.residuals) {
      JsonValue entry = JsonValue::object();
      entry.add("region", JsonValue{r.region});
      entry.add("message_bytes_min", JsonValue{r.message_bytes_min});
      entry.add("message_bytes_max", JsonValue{r.message_bytes_max});
      entry.add("log_p10", JsonValue{r.log_p10}).add("log_p50", JsonValue{r.log_p50});
      entry.add("log_p90", JsonValue{r.log_p90}).add("n", whole(r.n));
      list.add(std::move(entry));
    }
    out.add("residuals", std::move(list));
  }
  if (!curve.measured_with.empty()) out.add("measured_with", numbers(curve.measured_with));
  add_provenance(out, fit.provenance, documents);
  return out;
}

JsonValue record_json(const ModelRecord& model, Documents& documents) {
  JsonValue out = JsonValue::object();
  out.add("name", JsonValue{model.name}).add("kind", JsonValue{model.kind});
  if (!model.device.empty()) out.add("device", JsonValue{model.device});
  out.add("parameters", model.parameters);
  if (!model.measured_with.empty()) out.add("measured_with", numbers(model.measured_with));
  add_provenance(out, model.provenance, documents);
  return out;
}

JsonValue record_json(const OverheadRecord& overhead, Documents& documents) {
  JsonValue out = JsonValue::object();
  out.add("type", JsonValue{to_string(overhead.type)});
  if (!overhead.op.empty()) out.add("op", JsonValue{overhead.op});
  out.add("mean_us", JsonValue{overhead.mean_us});
  const auto add = [&out](std::string_view key, const std::optional<double>& x) {
    if (x) out.add(key, JsonValue{*x});
  };
  add("std_us", overhead.std_us);
  add("p10_us", overhead.p10_us);
  add("p50_us", overhead.p50_us);
  add("p90_us", overhead.p90_us);
  add("outlier_us", overhead.outlier_us);
  add("profiler_events", overhead.profiler_events);
  if (overhead.n > 0) out.add("n", whole(overhead.n));
  add_provenance(out, overhead.provenance, documents);
  return out;
}

// Records by key: the order in the file does not depend on the order in memory.
template <class Record>
std::map<std::string, const Record*> by_key(const std::vector<Record>& records) {
  std::map<std::string, const Record*> sorted;
  for (const Record& record : records) sorted.emplace(record.key(), &record);
  return sorted;
}

// Writes the records that differ from the base. If the base has a record that the platform lacks, nothing is
// inherited and all records are written.
template <class Record>
void add_records(JsonValue& root, std::string_view list, std::string_view inherit,
                 const std::vector<Record>& records, const std::vector<Record>* base, Documents& documents) {
  const auto now = by_key(records);
  auto before = base != nullptr ? by_key(*base) : std::map<std::string, const Record*>{};
  const bool lost = std::ranges::any_of(before, [&](const auto& b) { return !now.contains(b.first); });
  if (lost) {
    root.add(inherit, JsonValue{false});
    before.clear();
  }
  JsonValue out = JsonValue::array();
  for (const auto& [k, record] : now) {
    const auto same = before.find(k);
    if (same == before.end() || !(*same->second == *record)) out.add(record_json(*record, documents));
  }
  if (!out.items().empty()) root.add(list, std::move(out));
}

// The text of a platform, complete or as an extension of `base`.
std::string document(const Platform& platform, const Platform* base, std::string_view base_reference) {
  Documents documents;
  JsonValue body = JsonValue::object();
  if (JsonValue device = device_json(platform.device, base != nullptr ? &base->device : nullptr, documents);
      !is_empty(device)) {
    body.add("device", std::move(device));
  }
  if (JsonValue node = node_json(platform.node, base != nullptr ? &base->node : nullptr, documents);
      !is_empty(node)) {
    body.add("node", std::move(node));
  }
  // The records of `base` as the reader sees them after a change of figures.
  Platform inherited;
  if (base != nullptr) {
    inherited.curves = base->curves;
    inherited.models = base->models;
    inherited.device = platform.device;
    inherited.node = platform.node;
    note_changed_figures(base->device, base->node, inherited);
  }
  add_records(body, "collective_curves", "inherit_curves", platform.curves,
              base != nullptr ? &inherited.curves : nullptr, documents);
  add_records(body, "models", "inherit_models", platform.models,
              base != nullptr ? &inherited.models : nullptr, documents);
  add_records(body, "overheads", "inherit_overheads", *platform.overheads,
              base != nullptr ? &*base->overheads : nullptr, documents);

  JsonValue root = JsonValue::object();
  root.add("stepcast_platform", whole(kPlatformFileVersion)).add("name", JsonValue{platform.name});
  if (!platform.description.empty()) root.add("description", JsonValue{platform.description});
  if (!platform.aliases.empty()) root.add("aliases", texts(platform.aliases));
  if (base != nullptr && !base_reference.empty()) root.add("extends", JsonValue{base_reference});
  if (!documents.empty()) root.add("documents", documents.json());
  for (const JsonValue::Member& member : body.members()) root.add(member.key, member.value);
  return pretty_json(root);
}

// Appends the stated figures of a group, by their path in the file and in the units of the file.
template <class Group>
void list_figures(std::vector<PlatformFigure>& out, const std::string& path, const Group& group,
                  std::span<const detail::Figure<Group>> figures) {
  for (const auto& figure : figures)
    if (const auto x = figure.in_file(group))
      out.push_back({path + "." + figure.key, detail::json_number(*x), group.sources.of(figure.key)});
}

}  // namespace

std::string platform_json(const Platform& platform) { return document(platform, nullptr, {}); }

std::string platform_extension_json(const Platform& platform, const Platform& base,
                                    std::string_view base_reference) {
  return document(platform, &base, base_reference);
}

std::vector<PlatformFigure> platform_figures(const Platform& platform) {
  std::vector<PlatformFigure> out;
  list_figures(out, "device", platform.device, detail::device_figures());
  list_figures(out, "node", platform.node, detail::node_figures());
  const IntraNode& intra = platform.node.intra;
  if (intra.kind != LinkKind::none) {
    out.push_back({"node.intra.kind", std::string{to_string(intra.kind)}, intra.sources.of("kind")});
    list_figures(out, "node.intra", intra, detail::intra_figures());
    if (!intra.links.empty()) {
      out.push_back(
          {"node.intra.links", fmt::format("{} pairs", intra.links.size()), intra.sources.of("links")});
    }
    if (!intra.axes.empty()) {
      out.push_back(
          {"node.intra.axes", fmt::format("{}", fmt::join(intra.axes, " x ")), intra.sources.of("axes")});
    }
  }
  if (const auto& network = platform.node.network) {
    if (!network->kind.empty())
      out.push_back({"node.network.kind", network->kind, network->sources.of("kind")});
    list_figures(out, "node.network", *network, detail::network_figures());
    if (network->rail_optimized) {
      out.push_back({"node.network.rail_optimized", *network->rail_optimized ? "true" : "false",
                     network->sources.of("rail_optimized")});
    }
    if (!network->tiers.empty()) {
      std::vector<std::string> words;
      for (const NetworkTier& tier : network->tiers)
        words.push_back(fmt::format("{} nodes {:g}:1", tier.nodes, tier.oversubscription));
      out.push_back(
          {"node.network.tiers", fmt::format("{}", fmt::join(words, ", ")), network->sources.of("tiers")});
    }
  }
  return out;
}

}  // namespace stepcast
