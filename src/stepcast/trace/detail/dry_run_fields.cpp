// Reads the fields that `stepcast dryrun` adds to execution traces. Values come from files, so malformed ones
// are ignored, except for an unknown format.
#include "stepcast/trace/detail/dry_run_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/scan.h"

namespace stepcast::detail {
namespace {

using namespace std::string_view_literals;
using Kind = EtRuntimeCall::Kind;

// The text form of a runtime call and its arguments.
struct CallWord {
  std::string_view word;
  Kind kind;
  bool has_stream, has_event;
};
constexpr std::array kCallWords{CallWord{"record", Kind::record_event, true, true},
                                CallWord{"wait", Kind::wait_event, true, true},
                                CallWord{"sync_stream", Kind::sync_stream, true, false},
                                CallWord{"sync_event", Kind::sync_event, false, true},
                                CallWord{"sync_device", Kind::sync_device, false, false}};

// One call such as "record 7 12"; empty if it is not known or malformed.
std::optional<EtRuntimeCall> read_call(std::string_view text, std::uint32_t before) {
  std::vector<std::string_view> words = split(text, ' ');
  std::erase(words, ""sv);
  if (words.empty()) return std::nullopt;
  const auto word = std::ranges::find(kCallWords, words.front(), &CallWord::word);
  if (word == kCallWords.end()) return std::nullopt;
  EtRuntimeCall call{.kind = word->kind, .before = before};
  std::size_t at = 1;
  if (word->has_stream) {
    const auto stream = at < words.size() ? scan<std::int32_t>(words[at++]) : std::nullopt;
    if (!stream) return std::nullopt;
    call.stream = *stream;
  }
  if (word->has_event) {
    const auto event = at < words.size() ? scan<std::uint64_t>(words[at++]) : std::nullopt;
    if (!event) return std::nullopt;
    call.event = *event;
  }
  return call;
}

// The integer member `key`; 0 if it is not a number or too large to be exact in 53 bits.
std::int64_t whole(const JsonValue& object, std::string_view key) {
  constexpr double kMost = 9e15;
  const JsonValue* const value = object.find(key);
  if (value == nullptr || !value->is_number() || !(std::abs(value->number()) < kMost)) return 0;
  return static_cast<std::int64_t>(value->number());
}

// The boolean member `key`; false if it is missing.
bool truth(const JsonValue* object, std::string_view key) {
  const JsonValue* const value = object == nullptr ? nullptr : object->find(key);
  return value != nullptr && value->is_bool() && value->truth();
}

// The member "ranks" as a list; negative and too large numbers are dropped.
std::vector<std::uint32_t> ranks_of(const JsonValue& object) {
  std::vector<std::uint32_t> ranks;
  const JsonValue* const list = object.find("ranks");
  const std::optional<std::vector<double>> numbers = list == nullptr ? std::nullopt : list->numbers();
  if (!numbers) return ranks;
  for (const double number : *numbers) {
    if (number >= 0 && number < std::numeric_limits<std::int32_t>::max())
      ranks.push_back(static_cast<std::uint32_t>(number));
  }
  return ranks;
}

// The texts of the list `key`.
std::vector<std::string> texts_of(const JsonValue& object, std::string_view key) {
  std::vector<std::string> texts;
  const JsonValue* const list = object.find(key);
  if (list == nullptr || !list->is_array()) return texts;
  for (const JsonValue& item : list->items())
    if (item.is_text()) texts.push_back(item.text());
  return texts;
}

}  // namespace

// Also sets the rank of the trace and the calls after its last node.
Status read_dry_run(std::string_view json, const std::string& file, ExecutionTrace& trace) {
  constexpr std::int64_t kFormat = 1;
  STEPCAST_ASSIGN(const JsonValue root, parse_json(json, file));
  if (whole(root, "format") != kFormat) {
    return Error::at(file, "\"stepcast\"")
        .found("a record of another format")
        .expected(fmt::format("\"format\": {}", kFormat))
        .advice("record it again with `stepcast dryrun` of this version");
  }
  const JsonValue* const tf32 = root.find("tf32");
  trace.dry_run = EtDryRun{.world_size = std::max<std::int64_t>(1, whole(root, "world_size")),
                           .start_allocated_bytes = whole(root, "start_allocated_bytes"),
                           .peak_allocated_bytes = whole(root, "peak_allocated_bytes"),
                           .peak_reserved_bytes = whole(root, "peak_reserved_bytes"),
                           .tf32_products = truth(tf32, "matmul"),
                           .tf32_convolutions = truth(tf32, "cudnn"),
                           .channels_last = truth(&root, "channels_last"),
                           .ranks = ranks_of(root),
                           .notes = texts_of(root, "notes")};
  if (root.find("rank") != nullptr && root.find("rank")->is_number())
    trace.rank = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(whole(root, "rank"), 0, std::numeric_limits<std::int32_t>::max()));
  constexpr std::uint32_t kBehindAll = std::numeric_limits<std::uint32_t>::max();
  for (const std::string& call : texts_of(root, "runtime_after"))
    read_runtime_calls(call, kBehindAll, trace.runtime_calls);
  return Ok{};
}

void read_runtime_calls(std::string_view text, std::uint32_t before, std::vector<EtRuntimeCall>& calls) {
  for (const std::string_view call : split(text, ';'))
    if (const auto read = read_call(call, before)) calls.push_back(*read);
}

std::vector<EtGroup> read_groups(std::string_view json, StringTable& names) {
  std::vector<EtGroup> groups;
  const Result<JsonValue> root = parse_json(json, "process groups");
  if (!root.ok() || !root->is_array()) return groups;
  for (const JsonValue& group : root->items()) {
    const JsonValue* const name = group.find("pg_name");
    if (name == nullptr || !name->is_text() || name->text().empty()) continue;
    const JsonValue* const said = group.find("pg_desc");
    const bool is_said =
        said != nullptr && said->is_text() && !said->text().empty() && said->text() != "undefined";
    groups.push_back({names.intern(name->text()), is_said ? said->text() : name->text(), ranks_of(group)});
  }
  return groups;
}

}  // namespace stepcast::detail
