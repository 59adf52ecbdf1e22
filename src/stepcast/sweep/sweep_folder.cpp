#include "stepcast/sweep/sweep_folder.h"

#include <algorithm>
#include <random>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/version.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The manifest is one JSON object: schema, version of the program, mode, hash of the spec and number of
// points. Row files are shard-*.jsonl; a file is read only up to 64 GiB.
constexpr std::string_view kManifest = "sweep.json";
constexpr std::string_view kSchema = "stepcast.sweep/1";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36;

// The text of the manifest of `spec`, with a line break at the end.
std::string manifest_of(const SweepSpec& spec) {
  JsonWriter json{JsonWriter::Layout::spaced};
  json.begin_object().field("schema", kSchema).field("version", version());
  json.field("mode", to_string(spec.mode)).field("spec", spec.hash).field("n_points", spec.points.size());
  json.end_object();
  return std::move(json).text() + "\n";
}

// The content of a manifest. `spec` is the hash of the spec.
struct Manifest {
  std::string schema, version, mode, spec;
  std::int64_t n_points = 0;
};

// Reads and checks a manifest. Errors: unreadable, not JSON, unknown keys, another schema.
Result<Manifest> read_manifest(const fs::path& file) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  const std::string name = file.string();
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, name));
  STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(root, "", name));
  Manifest m;
  STEPCAST_TRY(o.optional("schema", m.schema));
  STEPCAST_TRY(o.optional("version", m.version));
  STEPCAST_TRY(o.optional("mode", m.mode));
  STEPCAST_TRY(o.optional("spec", m.spec));
  STEPCAST_TRY(o.required("n_points", m.n_points));
  STEPCAST_TRY(o.finish());
  if (m.schema == kSchema) return m;
  return Error::at(name, "schema")
      .found(fmt::format("`{}`", m.schema.substr(0, 60)))
      .expected(std::string{kSchema});
}

// Whether the folder's manifest is of this spec and mode. Error: it was written by another version of the
// program, since rows of two versions must not be mixed.
Result<bool> is_of(const fs::path& folder, const SweepSpec& spec) {
  STEPCAST_ASSIGN(const Manifest m, read_manifest(folder / kManifest));
  if (m.version != version()) {
    return Error::at((folder / kManifest).string(), "version")
        .found(m.version)
        .expected(std::string{version()})
        .advice("finish it with the version that began it, or choose another folder");
  }
  return m.spec == spec.hash && m.mode == to_string(spec.mode);
}

// The error for a folder of another spec: shows hash and number of points of both.
Error of_another_spec(const fs::path& folder, const SweepSpec& spec) {
  const Result<Manifest> m = read_manifest(folder / kManifest);
  return Error::at(folder.string(), "", "the folder belongs to another sweep")
      .found(m.ok() ? fmt::format("spec {} of {} points", m->spec, m->n_points) : "another spec")
      .expected(fmt::format("{} of {} points ({})", spec.hash, spec.points.size(), spec.name))
      .advice("choose another folder, or --extend if the spec has only become longer");
}

// Creates the manifest so that it appears complete or not at all. It is written under a random name and then
// linked to its final name. If two processes begin at once, one link succeeds and the other process finds the
// manifest.
Status begin(const fs::path& folder, const std::string& text) {
  const fs::path target = folder / kManifest;
  std::random_device random;
  const fs::path mine = fmt::format("{}.begin-{:08x}{:08x}", target.string(), random(), random());
  STEPCAST_TRY(write_file(mine, text));
  std::error_code failure, ignored;
  fs::create_hard_link(mine, target, failure);
  // On file systems without hard links, rename instead. This may replace a manifest that appeared just now.
  if (failure && !fs::exists(target, ignored)) fs::rename(mine, target, failure);
  fs::remove(mine, ignored);
  return Ok{};
}

// Whether the file name is that of a shard's rows: shard-*.jsonl.
bool is_row_file(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("shard-") && name.ends_with(".jsonl");
}

// The error for a line that is not a complete row.
Error no_row(const std::string& file, std::size_t line) {
  return Error::at(file, fmt::format("line {}", line), "no row of a sweep")
      .advice("delete the file: its points run again");
}

}  // namespace

Result<SweepFolder> SweepFolder::open(const fs::path& folder, const SweepSpec& spec, bool extends) {
  std::error_code failure;
  STEPCAST_TRY(make_folder(folder));
  if (!fs::exists(folder / kManifest, failure)) STEPCAST_TRY(begin(folder, manifest_of(spec)));
  STEPCAST_ASSIGN(const bool same, is_of(folder, spec));
  SweepFolder opened{folder};
  if (same) return opened;
  if (!extends) return of_another_spec(folder, spec);
  STEPCAST_TRY(opened.rows(spec));  // error if a row is not of a point of `spec`
  STEPCAST_TRY(write_file(folder / kManifest, manifest_of(spec)));
  return opened;
}

Result<SweepFolder> SweepFolder::existing(const fs::path& folder, const SweepSpec& spec) {
  std::error_code ignored;
  if (!fs::exists(folder / kManifest, ignored)) {
    return Error::at(folder.string(), "", "holds no sweep")
        .expected("a folder that `stepcast sweep -o` has written");
  }
  STEPCAST_ASSIGN(const bool same, is_of(folder, spec));
  if (!same) return of_another_spec(folder, spec);
  return SweepFolder{folder};
}

std::vector<fs::path> SweepFolder::own_files() const {
  std::vector<fs::path> all = files();
  all.push_back(path_ / kManifest);
  return all;
}

bool SweepFolder::would_be_row_file(const fs::path& file) const {
  std::error_code failure;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path{"."};
  return is_row_file(file) && fs::equivalent(folder, path_, failure);
}

std::vector<fs::path> SweepFolder::files() const {
  std::error_code failure;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, failure))
    if (is_row_file(entry.path())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Result<SweepRows> SweepFolder::rows(const SweepSpec& spec) const {
  SweepRows all;
  for (const fs::path& file : files()) {
    STEPCAST_ASSIGN(SweepRows more, rows_of(file.filename().string(), spec));
    for (auto& [id, row] : more) {
      const auto [place, fresh] = all.emplace(id, row);
      // The same row in two files is fine: shards may have been split in another way before.
      if (fresh || place->second == row) continue;
      return Error::at(file.string(), "", fmt::format("point {} has another row in another file", id))
          .advice("delete one of the two files: its points run again");
    }
  }
  return all;
}

Result<SweepRows> SweepFolder::rows_of(const std::string& file, const SweepSpec& spec) const {
  SweepRows rows;
  const fs::path path = path_ / file;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return rows;
  STEPCAST_ASSIGN(const std::string text, read_file(path, kMostBytes));
  std::set<std::string_view> ids;
  for (const SweepPoint& point : spec.points) ids.insert(point.id);
  // Rows are recognised by their first characters and not parsed as JSON: `{"id":"`, 16 hexadecimal digits,
  // `"`. The file may be large, and merged_csv() parses each row anyway.
  constexpr std::string_view kBegin = R"({"id":")";
  constexpr std::size_t kIdLength = 16;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++line;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = std::string_view{text}.substr(at, end - at);
    const bool is_row = end < text.size() && row.starts_with(kBegin) && row.ends_with('}') &&
                        row.size() > kBegin.size() + kIdLength + 1 && row[kBegin.size() + kIdLength] == '"';
    if (!is_row) return no_row(path.string(), line);
    const std::string_view id = row.substr(kBegin.size(), kIdLength);
    if (!ids.contains(id)) {
      return Error::at(path.string(), fmt::format("line {}", line),
                       fmt::format("point {} is not of {}", id, spec.name))
          .advice("choose another folder");
    }
    rows.emplace(id, row);
    at = end + 1;
  }
  return rows;
}

Status SweepFolder::write(const std::string& file, const SweepSpec& spec, const SweepRows& rows) const {
  std::string text;
  for (const SweepPoint& point : spec.points)
    if (const auto row = rows.find(point.id); row != rows.end()) text += row->second + "\n";
  return write_file(path_ / file, text);
}

void SweepFolder::clear_leftovers(const std::string& file) const {
  std::error_code failure, ignored;
  std::vector<fs::path> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, failure))
    if (entry.path().filename().string().starts_with(file + ".tmp")) left.push_back(entry.path());
  for (const fs::path& one : left) fs::remove(one, ignored);
}

namespace {

// The rows in the order of the points of the spec. Error: points without a row, with their number.
Result<std::vector<std::string_view>> in_order(const SweepSpec& spec, const SweepRows& rows) {
  std::vector<std::string_view> all;
  std::size_t n_missing = 0;
  for (const SweepPoint& point : spec.points) {
    const auto row = rows.find(point.id);
    if (row == rows.end())
      ++n_missing;
    else
      all.emplace_back(row->second);
  }
  if (n_missing == 0) return all;
  return Error{fmt::format("{} of {} points have no row yet", n_missing, spec.points.size())}.advice(
      "run the shards that are missing or were killed again: they do what is left");
}

// The text of a JSON value in a CSV cell, not quoted: items of lists are joined by "; ", null is empty.
std::string csv_cell(const JsonValue& value) {
  std::string text;
  if (value.is_text()) {
    text = value.text();
  } else if (value.is_array()) {
    for (const JsonValue& item : value.items()) text += (text.empty() ? "" : "; ") + csv_cell(item);
    return text;
  } else if (!value.is_null()) {
    text = compact_json(value);
  }
  return text;
}

// Quotes a cell as RFC 4180 does: only if it contains a comma, a quote or a line break.
std::string csv_quoted(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string{c};
  return quoted + "\"";
}

}  // namespace

Result<std::string> merged_rows(const SweepSpec& spec, const SweepRows& rows) {
  STEPCAST_ASSIGN(const std::vector<std::string_view> all, in_order(spec, rows));
  std::string text;
  for (const std::string_view row : all) (text += row) += '\n';
  return text;
}

Result<std::string> merged_csv(const SweepSpec& spec, const SweepRows& rows) {
  STEPCAST_ASSIGN(const std::vector<std::string_view> all, in_order(spec, rows));
  std::vector<JsonValue> parsed;
  // Columns: all settings that any point has, sorted by name, then all results in the order of first
  // appearance. Results that are objects are left out, since they do not fit into one cell.
  std::set<std::string> settings;
  std::vector<std::string> results;
  for (const std::string_view row : all) {
    STEPCAST_ASSIGN(JsonValue value, parse_json(row, "row " + std::to_string(parsed.size() + 1)));
    if (const JsonValue* point = value.find("point"); point != nullptr && point->is_object())
      for (const JsonValue::Member& member : point->members()) settings.insert(member.key);
    for (const JsonValue::Member& member : value.members()) {
      if (member.key == "point" || member.value.is_object()) continue;
      if (std::ranges::find(results, member.key) == results.end()) results.push_back(member.key);
    }
    parsed.push_back(std::move(value));
  }
  std::string text;
  for (const std::string& key : settings) text += (text.empty() ? "" : ",") + csv_quoted("point." + key);
  for (const std::string& key : results) text += (text.empty() ? "" : ",") + csv_quoted(key);
  text += '\n';
  for (const JsonValue& row : parsed) {
    std::string line;
    const auto cell = [&](const JsonValue* of, const std::string& key, bool first) {
      const JsonValue* value = of == nullptr ? nullptr : of->find(key);
      line += (first ? "" : ",") + (value == nullptr ? std::string{} : csv_quoted(csv_cell(*value)));
    };
    bool first = true;
    for (const std::string& key : settings) cell(row.find("point"), key, std::exchange(first, false));
    for (const std::string& key : results) cell(&row, key, std::exchange(first, false));
    text += line + "\n";
  }
  return text;
}

}  // namespace stepcast
