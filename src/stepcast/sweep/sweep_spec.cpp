#include "stepcast/sweep/sweep_spec.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/toml_document.h"
#include "stepcast/sweep/sweep_keys.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The one key that is not a setting: which command runs the points.
constexpr std::string_view kMode = "mode";

// A hash of 64 bits: FNV-1a followed by the final mixing of MurmurHash3, which makes the low bits as random
// as the high ones (SweepShard::has() uses the low bits). It is implemented here because ids must not change
// with a library.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    state_ = (state_ ^ 0xffU) * 0x100000001b3ULL;  // separates texts: "ab", "c" differs from "a", "bc"
  }
  // The hash of everything added so far, as 16 hexadecimal digits.
  [[nodiscard]] std::string text() const {
    std::uint64_t h = state_;
    h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdULL;
    h = (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
    return fmt::format("{:016x}", h ^ (h >> 33U));
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

using NamedValues = std::vector<std::pair<std::string, JsonValue>>;

// One value of a dimension: one setting, or several that are set together.
using Choice = NamedValues;
using Dimension = std::vector<Choice>;

// Whether a text looks like the name of a file: it contains a slash or a dot.
bool may_be_file(std::string_view text) { return text.find_first_of("/.") != std::string_view::npos; }

// Turns a parsed file into points. Every list is a dimension, and the points are their Cartesian product.
class SpecReader {
 public:
  SpecReader(const std::string& name, const fs::path& folder) : name_(name), folder_(folder) {}

  Result<SweepSpec> read(const JsonValue& root) {
    SweepSpec spec;
    spec.name = name_;
    if (!root.is_object()) return error_at(name_, root, "").expected("an object of settings");
    STEPCAST_ASSIGN(spec.mode, mode_of(root));
    mode_ = spec.mode;
    STEPCAST_ASSIGN(const std::vector<Dimension> dimensions, dimensions_of(root, ""));
    if (dimensions.empty()) {
      return Error::at(name_, "", "no settings")
          .expected("lists of settings, as in model = [\"llama-3-8b\"]");
    }
    // The product of all sizes, checked before each multiplication so that it cannot overflow.
    std::size_t n = 1;
    for (const Dimension& dimension : dimensions) {
      if (dimension.size() > kMostSweepPoints / n) return too_many();
      n *= dimension.size();
    }
    // Positions in spec.points by id, to find repeated points.
    std::map<std::string, std::size_t> known;
    std::vector<std::size_t> at(dimensions.size(), 0);
    for (std::size_t i = 0; i < n; ++i) {
      // The number of the point in mixed radix: one digit per dimension, the last dimension varies fastest.
      std::size_t rest = i;
      SweepPoint point;
      point.mode = mode_;
      point.folder = folder_;
      for (std::size_t d = dimensions.size(); d-- > 0;) {
        const Choice& choice = dimensions[d][rest % dimensions[d].size()];
        rest /= dimensions[d].size();
        point.settings.insert(point.settings.end(), choice.begin(), choice.end());
      }
      STEPCAST_TRY(finish(point));
      const auto [place, fresh] = known.emplace(point.id, spec.points.size());
      if (fresh) {
        spec.points.push_back(std::move(point));
        continue;
      }
      // The same id with other settings would be a collision of the hash. Ids name the rows of results, so
      // this is an error.
      if (spec.points[place->second].settings != point.settings) {
        return Error::at(name_, "", "two points have the same id " + point.id)
            .advice("split the file in two");
      }
      ++spec.n_repeated;
    }
    Hash hash;
    for (const SweepPoint& point : spec.points) hash.add(point.id);
    spec.hash = hash.text();
    return spec;
  }

 private:
  Error no_settings() const {
    return Error::at(name_, "", "no settings").expected("lists of settings, as in model = [\"llama-3-8b\"]");
  }
  Error too_many() const {
    return Error::at(name_, "", "too many points")
        .expected(fmt::format("at most {}", kMostSweepPoints))
        .advice("split the lists over several files");
  }

  // The mode of the file; predict if it is not given.
  Result<SweepMode> mode_of(const JsonValue& root) const {
    const JsonValue* mode = root.find(kMode);
    if (mode == nullptr) return SweepMode::predict;
    for (const SweepMode one : {SweepMode::predict, SweepMode::plan})
      if (mode->is_text() && mode->text() == to_string(one)) return one;
    return error_at(name_, *mode, kMode).found(describe_value(*mode)).expected("\"predict\" or \"plan\"");
  }

  // The dimensions of a table, one per member, in the order of their lines. `inside` is the path of the table
  // for errors; empty for the whole file. Only the whole file may contain lists of tables.
  // NOLINTNEXTLINE(misc-no-recursion): once, for tables in a list
  Result<std::vector<Dimension>> dimensions_of(const JsonValue& table, std::string_view inside) {
    std::vector<const JsonValue::Member*> members;
    for (const JsonValue::Member& member : table.members()) members.push_back(&member);
    std::ranges::stable_sort(members,
                             [](const auto* a, const auto* b) { return a->value.line() < b->value.line(); });
    std::vector<Dimension> all;
    std::set<std::string> here;
    for (const JsonValue::Member* member : members) {
      if (inside.empty() && member->key == kMode) continue;
      const std::string path = inside.empty() ? member->key : fmt::format("{}.{}", inside, member->key);
      const JsonValue& value = member->value;
      if (value.is_array() && value.items().empty())
        return error_at(name_, value, path, "an empty list").advice("leave the key out, or name a value");
      if (value.is_array() && value.items().front().is_object()) {
        if (!inside.empty())
          return error_at(name_, value, path).expected("values: tables are allowed at the top only");
        STEPCAST_ASSIGN(Dimension group, group_of(value, path));
        for (const std::string& key : keys_of(group)) STEPCAST_TRY(claim(here, key, value, path));
        all.push_back(std::move(group));
        continue;
      }
      if (value.is_object()) {
        return error_at(name_, value, path)
            .found("a table")
            .expected("a value, a list of values, or a list of tables ([[" + member->key + "]])");
      }
      // A single value is a dimension with one choice.
      const std::string key = sweep_key(member->key);
      if (!is_sweep_key(key, mode_))
        return error_at(name_, value, path, "unknown key").advice(advice_for_key(key, mode_));
      STEPCAST_TRY(claim(here, key, value, path));
      Dimension dimension;
      if (value.is_array()) {
        for (const JsonValue& item : value.items()) {
          STEPCAST_ASSIGN(Choice choice, choice_of(key, item, path));
          dimension.push_back(std::move(choice));
        }
      } else {
        STEPCAST_ASSIGN(Choice choice, choice_of(key, value, path));
        dimension.push_back(std::move(choice));
      }
      all.push_back(std::move(dimension));
    }
    return all;
  }

  // Adds `key` to the keys that are set. Error: it was set before.
  Status claim(std::set<std::string>& known, const std::string& key, const JsonValue& value,
               const std::string& path) const {
    if (known.insert(key).second) return Ok{};
    return error_at(name_, value, path, fmt::format("{} is set in two places", key))
        .advice("keep one of them");
  }

  // The keys that the choices of a dimension set.
  static std::set<std::string> keys_of(const Dimension& dimension) {
    std::set<std::string> keys;
    for (const Choice& choice : dimension)
      for (const auto& setting : choice) keys.insert(setting.first);
    return keys;
  }

  // The dimension of a list of tables. Each table contributes the combinations of its own lists, table after
  // table.
  // NOLINTNEXTLINE(misc-no-recursion): once
  Result<Dimension> group_of(const JsonValue& list, const std::string& path) {
    Dimension group;
    for (const JsonValue& table : list.items()) {
      if (!table.is_object()) {
        return error_at(name_, table, path)
            .found(describe_value(table))
            .expected("a table, as the first item is");
      }
      STEPCAST_ASSIGN(const std::vector<Dimension> inner, dimensions_of(table, path));
      Dimension combined{{}};
      for (const Dimension& dimension : inner) {
        if (combined.size() * dimension.size() > kMostSweepPoints) return too_many();
        Dimension longer;
        for (const Choice& before : combined) {
          for (const Choice& more : dimension) {
            longer.push_back(before);
            longer.back().insert(longer.back().end(), more.begin(), more.end());
          }
        }
        combined = std::move(longer);
      }
      group.insert(group.end(), combined.begin(), combined.end());
      if (group.size() > kMostSweepPoints) return too_many();
    }
    return group;
  }

  // The choice for one value of `key`. `false` and empty texts leave the setting out. A list inside a list is
  // one value: [4, 8] becomes "4,8".
  Result<Choice> choice_of(const std::string& key, const JsonValue& value, const std::string& path) const {
    if (value.is_array()) {
      std::string words;
      for (const JsonValue& item : value.items()) {
        if (!item.is_text() && !item.is_number())
          return error_at(name_, item, path).found(describe_value(item)).expected("texts or numbers");
        if (!words.empty()) words += ',';
        words += item.is_text() ? item.text() : compact_json(item);
      }
      return one_choice_of(key, JsonValue{std::move(words)}, value, path);
    }
    if (value.is_null() || value.is_object()) {
      return error_at(name_, value, path)
          .found(describe_value(value))
          .expected("a number, a text, true or false");
    }
    return one_choice_of(key, value, value, path);
  }

  // The choice for a plain value. `said` is the value in the file, for errors; `value` is what it means.
  Result<Choice> one_choice_of(const std::string& key, const JsonValue& value, const JsonValue& said,
                               const std::string& path) const {
    if ((value.is_bool() && !value.truth()) || (value.is_text() && value.text().empty())) return Choice{};
    JsonValue plain = spelled_out(key, value);
    if (const std::string_view expected = expected_instead(key, plain); !expected.empty())
      return error_at(name_, said, path).found(describe_value(said)).expected(std::string{expected});
    plain.set_line(0);
    return Choice{{key, std::move(plain)}};
  }

  // Sorts the settings and computes the id of the point. Error: no settings, or a file that cannot be read.
  Status finish(SweepPoint& point) {
    if (point.settings.empty()) return no_settings();
    std::ranges::stable_sort(point.settings, [](const auto& a, const auto& b) { return a.first < b.first; });
    Hash hash;
    hash.add(to_string(point.mode));
    for (const auto& [key, value] : point.settings) {
      hash.add(key);
      hash.add(compact_json(value));
      if (!names_file(key) || !value.is_text() || !may_be_file(value.text())) continue;
      // The id depends on the content of a file, not only on its name: a changed file is another point.
      STEPCAST_ASSIGN(const std::string content, content_hash(point.file(value.text())));
      if (!content.empty()) hash.add(content);
    }
    point.id = hash.text();
    return Ok{};
  }

  // The hash of a file's content, empty if there is no such file. Each file is read once.
  Result<std::string> content_hash(const std::string& file) {
    if (const auto found = contents_.find(file); found != contents_.end()) return found->second;
    std::error_code ignored;
    std::string text;
    if (fs::is_regular_file(file, ignored)) {
      STEPCAST_ASSIGN(const std::string content, read_file(file));
      Hash hash;
      hash.add(content);
      text = hash.text();
    }
    return contents_.emplace(file, std::move(text)).first->second;
  }

  const std::string& name_;
  const fs::path& folder_;
  SweepMode mode_ = SweepMode::predict;
  std::map<std::string, std::string> contents_;
};

}  // namespace

std::string_view to_string(SweepMode mode) { return mode == SweepMode::plan ? "plan" : "predict"; }

const JsonValue* SweepPoint::find(std::string_view key) const {
  for (const auto& [name, value] : settings)
    if (name == key) return &value;
  return nullptr;
}

std::string SweepPoint::file(std::string_view text) const {
  if (folder.empty() || !may_be_file(text)) return std::string{text};
  std::error_code ignored;
  const fs::path beside = folder / text;
  return fs::is_regular_file(beside, ignored) ? beside.string() : std::string{text};
}

std::string SweepPoint::json() const {
  JsonValue all = JsonValue::object();
  all.add(kMode, JsonValue{to_string(mode)});
  for (const auto& [key, value] : settings) all.add(key, value);
  return compact_json(all);
}

const SweepPoint* SweepSpec::find(std::string_view id) const {
  const auto found = std::ranges::find(points, id, &SweepPoint::id);
  return found == points.end() ? nullptr : &*found;
}

Result<SweepSpec> parse_sweep(std::string_view text, const std::string& name, const fs::path& folder) {
  // A file that begins with a brace is JSON, any other file is TOML.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return Error::at(name, "the file").found("nothing").expected("a sweep as TOML or JSON (docs/sweeps.md)");
  STEPCAST_ASSIGN(const JsonValue root, text[first] == '{' ? parse_json(text, name) : parse_toml(text, name));
  return SpecReader{name, folder}.read(root);
}

Result<SweepSpec> read_sweep(const fs::path& file) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;
  STEPCAST_ASSIGN(const std::string text, read_file(file, kMostBytes));
  return parse_sweep(text, file.string(), file.parent_path());
}

}  // namespace stepcast
