#include "stepcast/platform/detail/platform_reader.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/platform/detail/figures.h"
#include "stepcast/platform/detail/object_view.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestChain = 16;   // of files that extend each other
constexpr std::size_t kMostFilesRead = 64;  // for one platform
constexpr std::uint32_t kMostNodes = 1U << 24U;
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 52U;

Status read_numbers_by_name(ObjectView& o, std::string_view key, NamedNumbers& out) {
  const JsonValue* member = o.take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_object()) return o.wrong_kind(key, *member, "an object of numbers");
  out.clear();
  for (const JsonValue::Member& entry : member->members()) {
    if (!entry.value.is_number()) {
      return o.wrong_kind(fmt::format("{}.{}", key, entry.key), entry.value, "a number");
    }
    out.emplace(entry.key, entry.value.number());
  }
  return Ok{};
}

Status read_row_hashes(ObjectView& o, std::vector<std::uint32_t>& out) {
  constexpr std::string_view kKey = "row_hashes";
  constexpr std::size_t kDigits = 8;
  std::string digits;
  STEPCAST_TRY(o.text(kKey, digits));
  if (digits.size() % kDigits != 0) {
    return o.error(kKey)
        .found(fmt::format("{} digits", digits.size()))
        .expected("8 hexadecimal digits per row");
  }
  for (std::size_t i = 0; i < digits.size(); i += kDigits) {
    std::uint32_t hash = 0;
    const char* const first = digits.data() + i;
    const auto [end, code] = std::from_chars(first, first + kDigits, hash, 16);
    if (code != std::errc{} || end != first + kDigits) {
      return o.error(kKey)
          .found(fmt::format("`{}`", digits.substr(i, kDigits)))
          .expected("8 hexadecimal digits per row");
    }
    out.push_back(hash);
  }
  normalize_row_hashes(out);
  return Ok{};
}

Result<Provenance> read_provenance_object(const JsonValue& value, const std::string& path,
                                          const std::string& file) {
  STEPCAST_ASSIGN(ObjectView o, ObjectView::of(value, path, file));
  Provenance p;
  std::string source;
  STEPCAST_TRY(o.text("source", source));
  const auto parsed = parse_figure_source(source);
  if (!parsed) {
    return o.error("source", source.empty() ? "missing" : "")
        .found(source.empty() ? "" : fmt::format("`{}`", source))
        .expected("data_sheet, measured, fitted or assumed");
  }
  p.source = *parsed;
  STEPCAST_TRY(o.text("document", p.document));
  STEPCAST_TRY(o.text("date", p.date));
  STEPCAST_TRY(o.text("software", p.software));
  STEPCAST_TRY(o.count("n_rows", 0, kMostRows, p.n_rows));
  STEPCAST_TRY(read_row_hashes(o, p.row_hashes));
  STEPCAST_TRY(read_numbers_by_name(o, "error", p.error));
  STEPCAST_TRY(read_numbers_by_name(o, "range", p.range));
  STEPCAST_TRY(o.finish());
  return p;
}

// What a file says about its sources, by the short name that its figures use.
using Documents = std::map<std::string, Provenance, std::less<>>;

Result<Provenance> read_provenance(const JsonValue& value, const std::string& path, const std::string& file,
                                   const Documents& documents) {
  if (!value.is_text()) return read_provenance_object(value, path, file);
  const auto found = documents.find(value.text());
  if (found != documents.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, unused] : documents) known.push_back(name);
  const auto meant = nearest_word(value.text(), known);
  return error_at(file, value, path)
      .found(describe_value(value))
      .expected("an entry of `documents`")
      .advice(meant ? fmt::format("did you mean `{}`?", *meant) : "add it there");
}

Result<Documents> read_documents(const JsonValue* value, const std::string& file) {
  Documents documents;
  if (value == nullptr) return documents;
  if (!value->is_object()) {
    return error_at(file, *value, "documents").found(describe_value(*value)).expected("an object");
  }
  for (const JsonValue::Member& entry : value->members()) {
    STEPCAST_ASSIGN(Provenance p,
                    read_provenance_object(entry.value, fmt::format("documents.{}", entry.key), file));
    documents.emplace(entry.key, std::move(p));
  }
  return documents;
}

// Reads the figures of a group that the object states, and where each is from. What it does not state stays.
template <class Group>
class GroupReader {
 public:
  GroupReader(ObjectView& object, Group& group, std::span<const Figure<Group>> figures,
              std::span<const std::string_view> others)
      : o_(object), group_(group), figures_(figures), others_(others) {}

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
  // For what is no plain number.
  void state(std::string_view key) { stated_.emplace(key); }
  void remove(std::string_view key) { removed_.emplace(key); }

  // Last: it looks at what was stated.
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
    for (const std::string& key : removed_) group_.sources.erase(key);
    for (const std::string& key : stated_) {
      if (by_key.contains(key)) continue;
      if (fallback) {
        group_.sources.set(key, *fallback);
      } else {
        group_.sources.erase(key);
      }
    }
    for (auto& [key, p] : by_key) group_.sources.set(key, std::move(p));
    return Ok{};
  }

 private:
  [[nodiscard]] std::vector<std::string> known() const {
    std::vector<std::string> keys;
    for (const Figure<Group>& figure : figures_) keys.push_back(figure.key);
    for (const std::string_view other : others_) keys.emplace_back(other);
    return keys;
  }
  [[nodiscard]] bool knows(std::string_view key) const {
    const auto keys = known();
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }

  ObjectView& o_;
  Group& group_;
  std::span<const Figure<Group>> figures_;
  std::span<const std::string_view> others_;
  std::set<std::string> stated_, removed_;
};

Status read_device(ObjectView& o, Device& device, const Documents& documents) {
  STEPCAST_TRY(o.text("name", device.name));
  STEPCAST_TRY(o.texts("aliases", device.aliases));
  STEPCAST_TRY(o.text("vendor", device.vendor));
  STEPCAST_TRY(o.text("architecture", device.architecture));
  GroupReader<Device> group{o, device, device_figures(), {}};
  STEPCAST_TRY(group.figures());
  STEPCAST_TRY(group.sources(documents));
  return o.finish();
}

Status read_links(ObjectView& o, const JsonValue& list, std::vector<Link>& links) {
  if (!list.is_array()) return o.wrong_kind("links", list, "a list of links");
  links.clear();
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const JsonValue& item = list.items()[i];
    STEPCAST_ASSIGN(ObjectView entry, ObjectView::of(item, o.path_of(fmt::format("links[{}]", i)), o.file()));
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
    STEPCAST_TRY(entry.number("bandwidth_GBps", bandwidth));
    if (std::string expectation = broken_expectation(bandwidth, false, 1e5); !expectation.empty()) {
      return entry.error("bandwidth_GBps").found(json_number(bandwidth)).expected(std::move(expectation));
    }
    link.bandwidth = BytesPerSecond{bandwidth * 1e9};
    STEPCAST_TRY(entry.finish());
    links.push_back(link);
  }
  return Ok{};
}

Status read_intra(ObjectView& o, IntraNode& intra, const Documents& documents) {
  GroupReader<IntraNode> group{o, intra, intra_figures(), kIntraOthers};
  std::string kind;
  STEPCAST_TRY(o.text("kind", kind));
  if (!kind.empty()) {
    const auto parsed = parse_link_kind(kind);
    if (!parsed) {
      return o.error("kind")
          .found(fmt::format("`{}`", kind))
          .expected("nvswitch, nvlink_mesh, xgmi_mesh, pcie, mixed or none");
    }
    intra.kind = *parsed;
    group.state("kind");
  }
  STEPCAST_TRY(group.figures());
  if (const JsonValue* links = o.take("links")) {
    if (links->is_null()) {
      intra.links.clear();
      group.remove("links");
    } else {
      STEPCAST_TRY(read_links(o, *links, intra.links));
      group.state("links");
    }
  }
  STEPCAST_TRY(group.sources(documents));
  return o.finish();
}

Status read_network(ObjectView& o, Network& network, const Documents& documents) {
  GroupReader<Network> group{o, network, network_figures(), kNetworkOthers};
  if (const JsonValue* kind = o.take("kind")) {
    if (!kind->is_text()) return o.wrong_kind("kind", *kind, "a text");
    network.kind = kind->text();
    group.state("kind");
  }
  STEPCAST_TRY(group.figures());
  if (const JsonValue* rail = o.take("rail_optimized")) {
    if (rail->is_null()) {
      network.rail_optimized.reset();
      group.remove("rail_optimized");
    } else {
      if (!rail->is_bool()) return o.wrong_kind("rail_optimized", *rail, "true, false or null");
      network.rail_optimized = rail->truth();
      group.state("rail_optimized");
    }
  }
  STEPCAST_TRY(group.sources(documents));
  return o.finish();
}

Status read_node(ObjectView& o, Node& node, const Documents& documents) {
  GroupReader<Node> group{o, node, node_figures(), {}};
  STEPCAST_TRY(group.figures());
  STEPCAST_TRY(group.sources(documents));
  if (const JsonValue* member = o.take("intra")) {
    STEPCAST_ASSIGN(ObjectView intra, ObjectView::of(*member, o.path_of("intra"), o.file()));
    STEPCAST_TRY(read_intra(intra, node.intra, documents));
  }
  if (const JsonValue* member = o.take("network")) {
    if (member->is_null()) {
      node.network.reset();
    } else {
      STEPCAST_ASSIGN(ObjectView network, ObjectView::of(*member, o.path_of("network"), o.file()));
      if (!node.network) node.network.emplace();
      STEPCAST_TRY(read_network(network, *node.network, documents));
    }
  }
  return o.finish();
}

Status read_form(ObjectView& o, std::string_view key, CurveForm& form) {
  const JsonValue* member = o.take(key);
  if (member == nullptr) return Ok{};
  STEPCAST_ASSIGN(ObjectView entry, ObjectView::of(*member, o.path_of(key), o.file()));
  STEPCAST_TRY(entry.text("form", form.form));
  if (form.form.empty()) return entry.error("form", "missing").expected("the name of the formula");
  STEPCAST_TRY(read_numbers_by_name(entry, "parameters", form.parameters));
  return entry.finish();
}

Status read_knots(ObjectView& o, std::vector<CurveKnot>& knots) {
  const JsonValue* member = o.take("knots");
  if (member == nullptr) return Ok{};
  STEPCAST_ASSIGN(ObjectView entry, ObjectView::of(*member, o.path_of("knots"), o.file()));
  const auto column = [&entry](std::string_view key) -> Result<std::vector<double>> {
    const JsonValue* values = entry.take(key);
    if (values == nullptr) return entry.error(key, "missing");
    auto numbers = values->numbers();
    if (!numbers) return entry.wrong_kind(key, *values, "a list of numbers");
    return *std::move(numbers);
  };
  STEPCAST_ASSIGN(const std::vector<double> sizes, column("message_bytes"));
  STEPCAST_ASSIGN(const std::vector<double> times, column("time_us"));
  if (sizes.size() != times.size()) {
    return entry.error("time_us")
        .found(fmt::format("{} times", times.size()))
        .expected(fmt::format("one for each of the {} sizes", sizes.size()));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0 && !(sizes[i] > sizes[i - 1])) {
      return entry.error("message_bytes")
          .found(fmt::format("{} behind {}", json_number(sizes[i]), json_number(sizes[i - 1])))
          .expected("sizes that increase");
    }
    if (!(times[i] > 0)) {
      return entry.error("time_us").found(json_number(times[i])).expected("numbers above 0");
    }
    knots.push_back({sizes[i], times[i]});
  }
  return entry.finish();
}

Status read_residuals(ObjectView& o, std::vector<ResidualQuantiles>& residuals) {
  const JsonValue* member = o.take("residuals");
  if (member == nullptr) return Ok{};
  if (!member->is_array()) return o.wrong_kind("residuals", *member, "a list");
  for (std::size_t i = 0; i < member->items().size(); ++i) {
    STEPCAST_ASSIGN(ObjectView entry,
                    ObjectView::of(member->items()[i], o.path_of(fmt::format("residuals[{}]", i)), o.file()));
    ResidualQuantiles r;
    STEPCAST_TRY(entry.text("region", r.region));
    STEPCAST_TRY(entry.number("message_bytes_min", r.message_bytes_min));
    STEPCAST_TRY(entry.number("message_bytes_max", r.message_bytes_max));
    STEPCAST_TRY(entry.number("log_p10", r.log_p10));
    STEPCAST_TRY(entry.number("log_p50", r.log_p50));
    STEPCAST_TRY(entry.number("log_p90", r.log_p90));
    STEPCAST_TRY(entry.count("n", 0, kMostRows, r.n));
    STEPCAST_TRY(entry.finish());
    residuals.push_back(std::move(r));
  }
  return Ok{};
}

Status read_record_provenance(ObjectView& o, Provenance& out, const Documents& documents) {
  const JsonValue* member = o.take("provenance");
  if (member == nullptr) return Ok{};
  STEPCAST_ASSIGN(out, read_provenance(*member, o.path_of("provenance"), o.file(), documents));
  return Ok{};
}

Result<CollectiveCurve> read_curve(ObjectView& o, const Documents& documents) {
  CollectiveCurve curve;
  std::string word;
  STEPCAST_TRY(o.text("collective", word));
  curve.collective = parse_collective_op(word);
  if (curve.collective == CollectiveOp::unknown) {
    return o.error("collective", word.empty() ? "missing" : "")
        .found(word.empty() ? "" : fmt::format("`{}`", word))
        .expected("all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send_receive, ...");
  }
  std::string dtype = "any";
  STEPCAST_TRY(o.text("dtype", dtype));
  curve.dtype = dtype == "any" ? DType::unknown : parse_dtype(dtype);
  if (curve.dtype == DType::unknown && dtype != "any") {
    return o.error("dtype").found(fmt::format("`{}`", dtype)).expected("any, fp32, fp16, bf16, int8, ...");
  }
  STEPCAST_TRY(o.text("variant", curve.variant));
  STEPCAST_TRY(o.count("n_nodes", 1, kMostNodes, curve.n_nodes));
  STEPCAST_TRY(o.count("gpus_per_node", 1, 1024U, curve.gpus_per_node));
  std::uint64_t ranks = std::uint64_t{curve.n_nodes} * curve.gpus_per_node;
  STEPCAST_TRY(o.count("n_ranks", 1, std::min<std::uint64_t>(ranks, 0xffffffffU), ranks));
  curve.n_ranks = static_cast<std::uint32_t>(ranks);
  STEPCAST_TRY(read_form(o, "published", curve.published));
  STEPCAST_TRY(read_form(o, "improved", curve.improved));
  STEPCAST_TRY(read_knots(o, curve.knots));
  STEPCAST_TRY(read_residuals(o, curve.residuals));
  STEPCAST_TRY(read_record_provenance(o, curve.provenance, documents));
  STEPCAST_TRY(o.finish());
  return curve;
}

Result<ModelRecord> read_model(ObjectView& o, const Documents& documents) {
  ModelRecord model;
  STEPCAST_TRY(o.text("name", model.name));
  STEPCAST_TRY(o.text("kind", model.kind));
  STEPCAST_TRY(o.text("device", model.device));
  if (const JsonValue* parameters = o.take("parameters")) {
    if (!parameters->is_object()) return o.wrong_kind("parameters", *parameters, "an object");
    model.parameters = *parameters;
  }
  STEPCAST_TRY(read_record_provenance(o, model.provenance, documents));
  STEPCAST_TRY(o.finish());
  return model;
}

Result<OverheadRecord> read_overhead(ObjectView& o, const Documents& documents) {
  OverheadRecord overhead;
  std::string word;
  STEPCAST_TRY(o.text("type", word));
  constexpr OverheadType kTypes[] = {OverheadType::t1, OverheadType::t2, OverheadType::t3, OverheadType::t4,
                                     OverheadType::t5};
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](OverheadType t) { return word == to_string(t); });
  if (type == std::end(kTypes)) {
    return o.error("type", word.empty() ? "missing" : "")
        .found(word.empty() ? "" : fmt::format("`{}`", word))
        .expected("T1, T2, T3, T4 or T5");
  }
  overhead.type = *type;
  STEPCAST_TRY(o.text("op", overhead.op));
  std::optional<double> mean;
  STEPCAST_TRY(o.number("mean_us", mean));
  if (!mean) return o.error("mean_us", "missing");
  overhead.mean_us = *mean;
  STEPCAST_TRY(o.number("std_us", overhead.std_us));
  STEPCAST_TRY(o.number("p10_us", overhead.p10_us));
  STEPCAST_TRY(o.number("p50_us", overhead.p50_us));
  STEPCAST_TRY(o.number("p90_us", overhead.p90_us));
  STEPCAST_TRY(o.count("n", 0, kMostRows, overhead.n));
  STEPCAST_TRY(read_record_provenance(o, overhead.provenance, documents));
  STEPCAST_TRY(o.finish());
  return overhead;
}

// Reads a list of records over what is there: the same key replaces, twice the same key in one file is an
// error.
template <class Record, class Read, class Key>
Status read_records(ObjectView& root, std::string_view list, std::vector<Record>& records,
                    const Documents& documents, Read read, Key key) {
  const JsonValue* member = root.take(list);
  if (member == nullptr) return Ok{};
  if (!member->is_array()) return root.wrong_kind(list, *member, "a list");
  std::map<std::string, Record> by_key;
  for (std::size_t i = 0; i < member->items().size(); ++i) {
    const JsonValue& item = member->items()[i];
    STEPCAST_ASSIGN(ObjectView o, ObjectView::of(item, fmt::format("{}[{}]", list, i), root.file()));
    STEPCAST_ASSIGN(Record record, read(o, documents));
    std::string k = key(record);
    if (by_key.contains(k)) {
      return error_at(root.file(), item, fmt::format("{}[{}]", list, i), fmt::format("a second `{}`", k))
          .advice("remove one of them");
    }
    by_key.emplace(std::move(k), std::move(record));
  }
  for (Record& inherited : records) {
    std::string k = key(inherited);
    by_key.emplace(std::move(k), std::move(inherited));  // does nothing where the file has its own
  }
  records.clear();
  for (auto& [unused, record] : by_key) records.push_back(std::move(record));
  return Ok{};
}

Status read_inherit(ObjectView& root, std::string_view key, const auto& forget) {
  bool inherit = true;
  STEPCAST_TRY(root.truth(key, inherit));
  if (!inherit) forget();
  return Ok{};
}

// The models fitted on the device of `other` in place of those fitted on the device so far.
void take_models(Platform& platform, Platform& other) {
  std::erase_if(other.models, [&](const ModelRecord& m) { return m.device != other.device.name; });
  std::set<std::string> replaced;
  for (const ModelRecord& model : other.models) replaced.insert(model.name);
  std::erase_if(platform.models, [&](const ModelRecord& m) {
    return m.device == platform.device.name || replaced.contains(m.name);
  });
  std::move(other.models.begin(), other.models.end(), std::back_inserter(platform.models));
  std::sort(platform.models.begin(), platform.models.end(),
            [](const ModelRecord& a, const ModelRecord& b) { return a.name < b.name; });
}

fs::path identity_of(const fs::path& file) {
  std::error_code failure;
  fs::path canonical = fs::weakly_canonical(file, failure);
  return failure ? file : canonical;
}

}  // namespace

bool is_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json");
}

std::vector<std::string> file_names(std::span<const fs::path> dirs) {
  std::vector<std::string> names;
  for (const fs::path& dir : dirs) {
    std::error_code failure;
    for (fs::directory_iterator entry{dir, failure}, end; !failure && entry != end;
         entry.increment(failure)) {
      if (entry->path().extension() == ".json") names.push_back(entry->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::string> read_platform_text(const fs::path& file) {
  std::error_code failure;
  if (!fs::exists(file, failure)) return Error::at(file.string(), "", "no such file");
  if (!fs::is_regular_file(file, failure)) return Error::at(file.string(), "", "not a regular file");
  return stepcast::read_file(file, kPlatformLimits.max_bytes);
}

Result<Platform> PlatformReader::read_text(std::string_view text, const fs::path& file) {
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, file.string(), kPlatformLimits));
  return read_root(root, file);
}

Result<Platform> PlatformReader::read_file(const fs::path& file) {
  STEPCAST_ASSIGN(const std::string text, read_platform_text(file));
  return read_text(text, file);
}

Result<Platform> PlatformReader::read_root(const JsonValue& root, const fs::path& file) {
  auto platform = read_unchecked(root, file);
  if (!platform.ok()) return platform;
  if (auto status = platform->check(); !status.ok()) return std::move(status).error().in_file(file.string());
  return platform;
}

Result<Platform> PlatformReader::read_base(const JsonValue& reference, std::string_view path,
                                           const fs::path& file) {
  const std::string from = file.string();
  if (!reference.is_text() || reference.text().empty()) {
    return error_at(from, reference, path)
        .found(describe_value(reference))
        .expected("the name of a platform or the path of a file");
  }
  const std::string& name = reference.text();
  fs::path base;
  if (is_path(name)) {
    base = fs::path{name}.is_absolute() ? fs::path{name} : file.parent_path() / name;
  } else {
    for (const fs::path& dir : search_dirs_) {
      std::error_code failure;
      if (fs::path candidate = dir / (name + ".json"); fs::exists(candidate, failure)) {
        base = std::move(candidate);
        break;
      }
    }
    if (base.empty()) {
      const auto meant = nearest_word(name, file_names(search_dirs_));
      return error_at(from, reference, path, fmt::format("no platform named `{}`", name))
          .advice(meant ? fmt::format("did you mean `{}`?", *meant)
                        : "`stepcast platforms` lists those that ship; a path ends in .json");
    }
  }
  const fs::path identity = identity_of(base);
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (open_[i] != identity) continue;
    std::string circle;
    for (std::size_t k = i; k < open_.size(); ++k)
      circle += fmt::format("{} -> ", open_[k].filename().string());
    return error_at(from, reference, path, "files that extend each other in a circle")
        .found(circle + identity.filename().string());
  }
  if (open_.size() >= kLongestChain || ++files_read_ > kMostFilesRead) {
    return error_at(from, reference, path, "too many files that extend each other")
        .expected(fmt::format("at most {} in a chain and {} in all", kLongestChain, kMostFilesRead));
  }
  auto text = read_platform_text(base);
  if (!text.ok()) {
    return error_at(from, reference, path, fmt::format("cannot be read ({})", text.error().message()));
  }
  STEPCAST_ASSIGN(const JsonValue root, parse_json(*text, base.string(), kPlatformLimits));
  return read_unchecked(root, base);
}

Result<Platform> PlatformReader::read_unchecked(const JsonValue& root, const fs::path& file) {
  const std::string name = file.string();
  STEPCAST_ASSIGN(ObjectView o, ObjectView::of(root, "", name));

  const JsonValue* version = o.take("stepcast_platform");
  if (version == nullptr) {
    return o.error("stepcast_platform", "missing")
        .expected("the version of the format, 1")
        .advice("is this a platform file?");
  }
  if (!version->is_number() || version->number() != kPlatformFileVersion) {
    return o.wrong_kind("stepcast_platform", *version, "the version of the format, 1");
  }

  open_.push_back(identity_of(file));
  struct Closing {
    std::vector<fs::path>& open;
    ~Closing() { open.pop_back(); }
  } const closing{open_};

  Platform platform;
  if (const JsonValue* base = o.take("extends")) {
    STEPCAST_ASSIGN(platform, read_base(*base, "extends", file));
  }
  platform.files.insert(platform.files.begin(), file);

  platform.name = file.stem().string();
  platform.description.clear();
  platform.aliases.clear();
  STEPCAST_TRY(o.text("name", platform.name));
  STEPCAST_TRY(o.text("description", platform.description));
  STEPCAST_TRY(o.texts("aliases", platform.aliases));
  STEPCAST_ASSIGN(const Documents documents, read_documents(o.take("documents"), name));

  if (const JsonValue* member = o.take("device")) {
    STEPCAST_ASSIGN(ObjectView device, ObjectView::of(*member, "device", name));
    if (const JsonValue* base = device.take("extends")) {
      STEPCAST_ASSIGN(Platform other, read_base(*base, "device.extends", file));
      // Models go with the device that they were fitted on.
      take_models(platform, other);
      platform.device = std::move(other.device);
      platform.files.insert(platform.files.end(), other.files.begin(), other.files.end());
    }
    STEPCAST_TRY(read_device(device, platform.device, documents));
  }
  if (const JsonValue* member = o.take("node")) {
    STEPCAST_ASSIGN(ObjectView node, ObjectView::of(*member, "node", name));
    if (const JsonValue* base = node.take("extends")) {
      STEPCAST_ASSIGN(Platform other, read_base(*base, "node.extends", file));
      platform.node = std::move(other.node);
      platform.curves = std::move(other.curves);  // they were measured on that node
      platform.files.insert(platform.files.end(), other.files.begin(), other.files.end());
    }
    STEPCAST_TRY(read_node(node, platform.node, documents));
  }

  STEPCAST_TRY(read_inherit(o, "inherit_curves", [&] { platform.curves.clear(); }));
  STEPCAST_TRY(read_inherit(o, "inherit_models", [&] { platform.models.clear(); }));
  STEPCAST_TRY(read_inherit(o, "inherit_overheads", [&] { platform.overheads.clear(); }));
  STEPCAST_TRY(read_records(o, "collective_curves", platform.curves, documents, read_curve,
                            [](const CollectiveCurve& c) { return c.key(); }));
  STEPCAST_TRY(read_records(o, "models", platform.models, documents, read_model,
                            [](const ModelRecord& m) { return m.name; }));
  STEPCAST_TRY(read_records(o, "overheads", platform.overheads, documents, read_overhead,
                            [](const OverheadRecord& r) { return r.key(); }));
  STEPCAST_TRY(o.finish());
  return platform;
}

}  // namespace stepcast::detail
