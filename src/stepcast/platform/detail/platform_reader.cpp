#include "stepcast/platform/detail/platform_reader.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/platform/changed_figures.h"
#include "stepcast/platform/detail/hardware_reader.h"
#include "stepcast/platform/detail/record_reader.h"
#include "stepcast/platform/device_siblings.h"
#include "stepcast/platform/host_spread_kind.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/platform/shipped_texts.h"

// Inheritance between platform files: the base of the whole file, then of device, node and host; records by
// key; and the sibling of an unmeasured device.

namespace stepcast::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestChain = 16;   // files that extend each other, in a chain
constexpr std::size_t kMostFilesRead = 64;  // for one platform
constexpr double kFarthestSibling = 2.1;    // limit of sibling_distance(), a factor of eight: assumed
// The record that is taken together with kernels of short runs (cost/sustained_clock.h).
constexpr std::string_view kClockOfLongRuns = "sustained_clock";

// A list of records over inherited ones: an equal key replaces the inherited record; a repeated key within
// one file is an error.
template <class Record>
Result<std::vector<Record>> merged_records(const JsonValue& list, std::string_view name,
                                           const std::string& file, std::vector<Record> inherited,
                                           const RecordSource& from,
                                           Result<Record> (*read)(ObjectReader&, const RecordSource&)) {
  std::map<std::string, Record> by_key;
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const JsonValue& item = list.items()[i];
    STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(item, fmt::format("{}[{}]", name, i), file));
    STEPCAST_ASSIGN(Record record, read(o, from));
    std::string k = record.key();
    if (by_key.contains(k)) {
      return error_at(file, item, fmt::format("{}[{}]", name, i), fmt::format("a second `{}`", k))
          .advice("remove one of them");
    }
    by_key.emplace(std::move(k), std::move(record));
  }
  for (Record& record : inherited) {
    std::string k = record.key();
    by_key.emplace(std::move(k), std::move(record));  // no effect where the file has such a record
  }
  std::vector<Record> records;
  for (auto& [unused, record] : by_key) records.push_back(std::move(record));
  return records;
}

// The member as a list; null if missing.
Result<const JsonValue*> take_list(ObjectReader& root, std::string_view name) {
  const JsonValue* member = root.take(name);
  if (member == nullptr || member->is_array()) return member;
  return root.wrong_kind(name, *member, "a list");
}

// Reads a list of records over `records`, if the file has it.
template <class Record>
Status read_records(ObjectReader& root, std::string_view name, std::vector<Record>& records,
                    const RecordSource& from, Result<Record> (*read)(ObjectReader&, const RecordSource&)) {
  STEPCAST_ASSIGN(const JsonValue* list, take_list(root, name));
  if (list == nullptr) return Ok{};
  STEPCAST_ASSIGN(records, merged_records(*list, name, root.file(), std::move(records), from, read));
  return Ok{};
}

// Overheads of shipped files are parsed on first use: only forecasts from traces need them.
Status read_overheads(ObjectReader& root, Later<std::vector<OverheadRecord>>& records,
                      const RecordSource& from) {
  static constexpr std::string_view kName = "overheads";
  if (!from.is_shipped) return read_records(root, kName, records.edit(), from, read_overhead);
  if (const JsonValue* list = root.take(kName)) {
    const auto later = [inherited = std::move(records), from, file = root.file()](const JsonValue& json) {
      return merged_records(json, kName, file, *inherited, from, read_overhead);
    };
    records = {*list, later};
  }
  return Ok{};
}

// A flag such as `inherit_models`: false drops the inherited records.
Status read_inherit(ObjectReader& root, std::string_view key, const auto& forget) {
  bool inherit = true;
  STEPCAST_TRY(root.optional(key, inherit));
  if (!inherit) forget();
  return Ok{};
}

// Replaces the models of the current device by those of the device of `other`. Records of relatives of that
// device are not taken: for these a file has to extend the whole platform and take the node of this one.
void take_models(Platform& platform, Platform& other) {
  std::erase_if(other.models, [&](const ModelRecord& m) { return m.device != other.device.name; });
  std::set<std::string> replaced;
  for (const ModelRecord& model : other.models) replaced.insert(model.name);
  std::erase_if(platform.models, [&](const ModelRecord& m) {
    return m.device == platform.device.name || replaced.contains(m.name);
  });
  std::move(other.models.begin(), other.models.end(), std::back_inserter(platform.models));
  std::ranges::sort(platform.models, {}, &ModelRecord::name);
}

// Checks `role`, which groups platforms in list_platforms() and is not a property of the machine.
Status check_role(ObjectReader& o) {
  const JsonValue* role = o.take("role");
  if (role == nullptr || (role->is_text() && role->text() == kBenchmarkRole)) return Ok{};
  return o.wrong_kind("role", *role, fmt::format("`{}`, or nothing", kBenchmarkRole));
}

// Only the device of a file, without following `extends`.
Result<Device> read_device_alone(const fs::path& file) {
  Device device;
  STEPCAST_ASSIGN(const PlatformDocument document, read_platform_document(file));
  const JsonValue* member = document.root.find("device");
  if (member == nullptr) return device;
  STEPCAST_ASSIGN(const Documents documents, read_documents(document.root.find("documents"), file.string()));
  STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(*member, "device", file.string()));
  STEPCAST_TRY(read_device(o, device, documents));
  return device;
}

// Canonical path, for comparison of files.
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
    for (fs::directory_iterator entry{dir, failure}, end; !failure && entry != end; entry.increment(failure))
      if (entry->path().extension() == ".json") names.push_back(entry->path().stem().string());
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::string> read_platform_text(const fs::path& file) {
  std::error_code failure;
  if (!fs::exists(file, failure)) return Error::at(file.string(), "", "no such file");
  if (!fs::is_regular_file(file, failure)) return Error::at(file.string(), "", "not a regular file");
  return stepcast::read_file(file, kPlatformLimits.max_bytes);
}

Result<PlatformDocument> parse_platform_document(std::string text, const fs::path& file) {
  const auto long_values = shipped_text(text);
  PlatformDocument document{.root = {}, .is_shipped = long_values.has_value()};
  if (long_values) {
    STEPCAST_ASSIGN(document.root, parse_known_json(std::make_shared<const std::string>(std::move(text)),
                                                    *long_values, file.string()));
  } else {
    STEPCAST_ASSIGN(document.root, parse_json(text, file.string(), kPlatformLimits));
  }
  return document;
}

Result<PlatformDocument> read_platform_document(const fs::path& file) {
  STEPCAST_ASSIGN(std::string text, read_platform_text(file));
  return parse_platform_document(std::move(text), file);
}

Result<Platform> PlatformReader::read_text(std::string_view text, const fs::path& file) {
  STEPCAST_ASSIGN(JsonValue root, parse_json(text, file.string(), kPlatformLimits));
  return read_root({.root = std::move(root)}, file);
}

Result<Platform> PlatformReader::read_file(const fs::path& file) {
  STEPCAST_ASSIGN(const PlatformDocument document, read_platform_document(file));
  return read_root(document, file);
}

Result<Platform> PlatformReader::read_root(const PlatformDocument& document, const fs::path& file) {
  files_read_ = 0;
  auto platform = read_unchecked(document, file);
  if (!platform.ok() || models_ == Models::names) return platform;
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
    // Only .json files may be extended: errors quote the text of a file, and a platform of unknown origin
    // must not expose other files.
    if (!name.ends_with(".json"))
      return error_at(from, reference, path)
          .found(describe_value(reference))
          .expected("a path that ends in .json");
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
                        : "`stepcast platforms` lists the shipped ones; a path ends in .json");
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
        .expected(fmt::format("at most {} in a chain and {} in total", kLongestChain, kMostFilesRead));
  }
  auto known = parsed_.find(identity);
  if (known == parsed_.end()) {
    auto text = read_platform_text(base);
    if (!text.ok())
      return error_at(from, reference, path, fmt::format("cannot be read ({})", text.error().message()));
    STEPCAST_ASSIGN(PlatformDocument document, parse_platform_document(*std::move(text), base));
    known = parsed_.emplace(identity, std::move(document)).first;
  }
  return read_unchecked(known->second, base);
}

// Device, node and host, each optionally from another file.
Status PlatformReader::read_parts(ObjectReader& o, const fs::path& file, const Documents& documents,
                                  bool notes_changes, Platform& platform) {
  const std::string name = file.string();
  if (const JsonValue* member = o.take("device")) {
    STEPCAST_ASSIGN(ObjectReader device, ObjectReader::of(*member, "device", name));
    if (const JsonValue* base = device.take("extends")) {
      STEPCAST_ASSIGN(Platform other, read_base(*base, "device.extends", file));
      // Models belong to the device that they were fitted on.
      take_models(platform, other);
      platform.device = std::move(other.device);
      platform.files.insert(platform.files.end(), other.files.begin(), other.files.end());
    }
    const Device before = platform.device;
    STEPCAST_TRY(read_device(device, platform.device, documents));
    if (notes_changes) note_changed_figures(before, platform.node, platform);
  }
  if (const JsonValue* member = o.take("node")) {
    STEPCAST_ASSIGN(ObjectReader node, ObjectReader::of(*member, "node", name));
    if (const JsonValue* base = node.take("extends")) {
      STEPCAST_ASSIGN(Platform other, read_base(*base, "node.extends", file));
      platform.node = std::move(other.node);
      platform.curves = std::move(other.curves);  // measured on that node
      platform.files.insert(platform.files.end(), other.files.begin(), other.files.end());
    }
    const Node before = platform.node;
    STEPCAST_TRY(read_node(node, platform.node, documents));
    if (notes_changes) note_changed_figures(platform.device, before, platform);
  }

  if (const JsonValue* member = o.take("host")) {
    STEPCAST_ASSIGN(ObjectReader host, ObjectReader::of(*member, "host", name));
    if (const JsonValue* base = host.take("extends")) {
      STEPCAST_ASSIGN(Platform other, read_base(*base, "host.extends", file));
      platform.overheads = std::move(other.overheads);
      for (const std::string_view kind : {kHostLaunchesKind, kHostSpreadKind}) {
        std::erase_if(platform.models, [&](const ModelRecord& m) { return m.name == kind; });
        if (const ModelRecord* record = other.find_model(kind)) platform.set(*record);
      }
      platform.files.insert(platform.files.end(), other.files.begin(), other.files.end());
    }
    STEPCAST_TRY(host.finish());
  }
  return Ok{};
}

// Measured relatives are platforms in the folder above the parts: NAME.json for kernels/NAME.json. The
// nearest one with kernels by type is taken.
Status PlatformReader::take_sibling(const fs::path& base, Platform& platform) {
  if (models_ == Models::names || platform.device.architecture.empty()) return Ok{};  // a part has no device
  const fs::path folder = base.parent_path().parent_path();
  std::vector<std::pair<double, fs::path>> siblings;
  std::error_code failure;
  for (fs::directory_iterator entry{base.parent_path(), failure}, end; !failure && entry != end;
       entry.increment(failure)) {
    const fs::path file = folder / entry->path().filename();
    if (!fs::is_regular_file(file, failure)) continue;
    STEPCAST_ASSIGN(const Device device, read_device_alone(file));
    const auto distance = sibling_distance(device, platform.device);
    if (distance && *distance < kFarthestSibling && !platform.device.matches_name(device.name))
      siblings.emplace_back(*distance, file);
  }
  std::ranges::sort(siblings);
  for (const auto& [unused, file] : siblings) {
    STEPCAST_ASSIGN(Platform other, read_base(JsonValue{file.filename().string()}, "extends", file));
    std::erase_if(other.models, [&](const ModelRecord& m) {
      const bool by_type = m.device == other.device.name && m.parameters.find("regime") != nullptr;
      return (!by_type && m.name != kClockOfLongRuns) || platform.find_model(m.name) != nullptr;
    });
    if (std::ranges::all_of(other.models, &std::string::empty, &ModelRecord::device)) continue;
    for (ModelRecord& model : other.models) platform.set(std::move(model));
    platform.set(sibling_of(other.device, platform.device).record());
    platform.files.insert(platform.files.end(), other.files.begin(), other.files.end());
    break;
  }
  return Ok{};
}

// Fitted records of the file and the inheritance flags.
Status PlatformReader::read_fitted(ObjectReader& o, const RecordSource& from, Platform& platform) const {
  STEPCAST_TRY(read_inherit(o, "inherit_curves", [&] { platform.curves.clear(); }));
  STEPCAST_TRY(read_inherit(o, "inherit_models", [&] { platform.models.clear(); }));
  STEPCAST_TRY(read_inherit(o, "inherit_overheads", [&] { platform.overheads = {}; }));
  STEPCAST_TRY(read_records(o, "collective_curves", platform.curves, from, read_curve));
  STEPCAST_TRY(read_records(o, "models", platform.models, from,
                            models_ == Models::whole ? read_model : read_model_names));
  return read_overheads(o, platform.overheads, from);
}

Result<Platform> PlatformReader::read_unchecked(const PlatformDocument& document, const fs::path& file) {
  const std::string name = file.string();
  STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(document.root, "", name));

  const JsonValue* version = o.take("stepcast_platform");
  if (version == nullptr) {
    return o.error("stepcast_platform", "missing")
        .expected("the version of the format, 1")
        .advice("is this a platform file?");
  }
  if (!version->is_number() || version->number() != kPlatformFileVersion)
    return o.wrong_kind("stepcast_platform", *version, "the version of the format, 1");

  open_.push_back(identity_of(file));
  // Keeps `open_` correct on every return.
  struct Closing {
    std::vector<fs::path>& open;
    ~Closing() { open.pop_back(); }
  } const closing{open_};

  static_cast<void>(o.take("$schema"));  // used by editors
  Platform platform;
  fs::path from;
  if (const JsonValue* base = o.take("extends")) {
    STEPCAST_ASSIGN(platform, read_base(*base, "extends", file));
    from = platform.files.front();
  }
  platform.files.insert(platform.files.begin(), file);

  platform.name = file.stem().string();
  platform.description.clear();
  platform.aliases.clear();
  STEPCAST_TRY(o.optional("name", platform.name));
  STEPCAST_TRY(o.optional("description", platform.description));
  STEPCAST_TRY(o.optional("aliases", platform.aliases));
  STEPCAST_TRY(check_role(o));
  STEPCAST_ASSIGN(Documents documents, read_documents(o.take("documents"), name));
  const RecordSource records{std::make_shared<const Documents>(std::move(documents)), document.is_shipped};

  // A part in the folder below was measured on the machine that this file describes, so its figures are not
  // changes.
  const bool completes_part = !from.empty() && from.parent_path().parent_path() == file.parent_path();
  STEPCAST_TRY(read_parts(o, file, *records.documents, !document.is_shipped && !completes_part, platform));
  STEPCAST_TRY(read_fitted(o, records, platform));
  if (from.filename() == kSharedModelsFile) STEPCAST_TRY(take_sibling(from, platform));
  STEPCAST_TRY(o.finish());
  return platform;
}

}  // namespace stepcast::detail
