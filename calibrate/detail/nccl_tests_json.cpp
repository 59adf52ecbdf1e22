// Reads the output of nccl-tests -J FILE. These keys are read, at any depth unless stated:
//
//   "results": [{"size": 1048576, "type": "float", "out_of_place": {"time": 61.2, "nwrong": 0}, ...}, ...]
//   "devices" or "ranks": [{"hostname": "node-1", "device_name": "NVIDIA A100-SXM4-80GB"}, ...]
//   any text that names the test: "all_reduce_perf"
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"

#include "calibrate/detail/collective_logs.h"

namespace stepcast::detail {
namespace {

const JsonValue* find_deep(const JsonValue& value, std::string_view key) {
  if (const JsonValue* direct = value.find(key)) return direct;
  if (value.is_object()) {
    for (const JsonValue::Member& member : value.members())
      if (const JsonValue* found = find_deep(member.value, key)) return found;
  } else if (value.is_array()) {
    for (const JsonValue& item : value.items())
      if (const JsonValue* found = find_deep(item, key)) return found;
  }
  return nullptr;
}

CollectiveOp find_collective(const JsonValue& value) {
  if (value.is_text()) return mentioned_collective(value.text());
  if (value.is_array()) {
    for (const JsonValue& item : value.items())
      if (const CollectiveOp op = find_collective(item); op != CollectiveOp::unknown) return op;
  } else if (value.is_object()) {
    for (const JsonValue::Member& member : value.members()) {
      CollectiveOp op = find_collective(member.value);
      if (op == CollectiveOp::unknown && member.value.is_text() &&
          (member.key == "collective" || member.key == "test" || member.key == "test_name")) {
        op = measured_collective(member.value.text());
      }
      if (op != CollectiveOp::unknown) return op;
    }
  }
  return CollectiveOp::unknown;
}

const JsonValue* first_of(const JsonValue& value, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const JsonValue* found = value.find(key)) return found;
  return nullptr;
}

// A number, or text with a number.
std::optional<double> number_of(const JsonValue* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->number();
  if (value->is_text()) return finite_number(value->text());
  return std::nullopt;
}

RankHeader ranks_of(const JsonValue& root) {
  RankHeader header;
  const JsonValue* devices = find_deep(root, "devices");
  if (devices == nullptr) devices = find_deep(root, "ranks");
  if (devices == nullptr || !devices->is_array()) return header;
  for (const JsonValue& device : devices->items()) {
    ++header.n_ranks;
    const JsonValue* host = first_of(device, {"hostname", "host"});
    if (host != nullptr && host->is_text()) header.hosts.push_back(host->text());
    const JsonValue* gpu = first_of(device, {"device_name", "name", "gpu"});
    if (gpu != nullptr && gpu->is_text()) header.gpu = gpu->text();
  }
  return header;
}

}  // namespace

Result<MeasuredCollectives> parse_nccl_tests_json(std::string_view text, const std::string& name,
                                                  const MeasurementContext& context) {
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, name));
  const JsonValue* results = find_deep(root, "results");
  if (results == nullptr || !results->is_array())
    return Error::at(name, "the document", "has no list 'results'").expected("what nccl-tests -J writes");
  CollectiveMeasurements curve;
  STEPCAST_TRY(apply_ranks(ranks_of(root), context, name, curve));
  const CollectiveOp said =
      context.collective != CollectiveOp::unknown ? context.collective : find_collective(root);
  STEPCAST_ASSIGN(curve.collective, collective_or_named(said, name, "the document"));
  curve.platform = context.platform;
  curve.sources = {name};
  MeasuredCollectives result{.format = "nccl-tests JSON"};
  std::uint64_t zero_sizes = 0;
  for (const JsonValue& item : results->items()) {
    const std::string place = fmt::format("line {}", item.line());
    const JsonValue* timing = first_of(item, {"out_of_place", "in_place"});
    if (timing == nullptr) timing = &item;
    CollectiveSample sample;
    const auto size = number_of(first_of(item, {"size", "size_bytes", "bytes"}));
    const auto time = number_of(first_of(*timing, {"time", "time_us"}));
    if (!size || !time) return Error::at(name, place, "a result without the numbers 'size' and 'time'");
    if (*size == 0) {
      ++zero_sizes;
      continue;
    }
    sample.message_bytes = *size;
    sample.time_us = *time;
    STEPCAST_TRY(check_sample(sample, name, place));
    const auto wrong = number_of(first_of(*timing, {"nwrong", "wrong", "#wrong"}));
    if (wrong && *wrong != 0) {
      return Error::at(name, place, "wrong results")
          .found(fmt::format("{}", *wrong))
          .expected("0")
          .advice(
              "the collective gave wrong results, so its times say nothing: find out why and measure again");
    }
    if (const JsonValue* type = item.find("type"); type != nullptr && type->is_text())
      sample.dtype = parse_dtype(type->text());
    add_sample(curve, sample);
  }
  if (zero_sizes > 0) result.unused.push_back({name, "size 0", zero_sizes});
  if (curve.samples.empty()) return Error::at(name, "the document", "has no result with a time");
  if (curve.n_ranks < 2) {
    return Error::at(name, "the document",
                     "was measured on one rank, which has no other to communicate with");
  }
  result.add({result.format, {std::move(curve)}, {}});
  return result;
}

}  // namespace stepcast::detail
