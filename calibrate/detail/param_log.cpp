// PARAM comms.py (the benchmark that the published method uses) prints
//
//   MPI environment: {'world_size': 8, 'local_size': 8, ...}
//   COMMS-RES-all_reduce-float32   size (B)  num-elements  Latency(us):p50   p75   p95   Min   Max
//   algBW(GB/s)  busBW(GB/s) COMMS-RES-all_reduce-float32      65536         16384            31.20  ...
//
// Older versions print a bare COMMS-RES and name the collective in the command line.
#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/platform/provenance.h"

#include "calibrate/detail/collective_logs.h"

namespace stepcast::detail {
namespace {

// The number after `key` in "'world_size': 8" or "world_size=8".
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t i = at + key.size();
  while (i < text.size() &&
         (text[i] == '\'' || text[i] == '"' || text[i] == ':' || text[i] == '=' || text[i] == ' '))
    ++i;
  std::size_t end = i;
  while (end < text.size() && end - i < 9 && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  const auto value = whole_number(text.substr(i, end - i));
  if (!value || *value == 0) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

struct ParamColumns {
  std::size_t size = 0, latency = 0, n = 0;
};

}  // namespace

Result<MeasuredCollectives> parse_param_log(std::string_view text, const std::string& name,
                                            const MeasurementContext& context) {
  MeasuredCollectives result;
  result.format = "PARAM comms log";
  RankHeader header;
  std::uint32_t local_size = context.gpus_per_node;
  CollectiveOp named = context.collective;
  std::optional<ParamColumns> columns;
  const std::vector<std::string_view> all = lines(text);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string place = fmt::format("line {}", i + 1);
    if (const auto n = number_after(all[i], "world_size")) header.n_ranks = *n;
    if (const auto n = number_after(all[i], "local_size"); n && context.gpus_per_node == 0) local_size = *n;
    for (const std::string_view flag :
         {std::string_view{"--collective "}, std::string_view{"--collective="}}) {
      const std::size_t at = all[i].find(flag);
      if (at == std::string_view::npos || context.collective != CollectiveOp::unknown) continue;
      const std::vector<std::string_view> after = words(all[i].substr(at + flag.size()));
      if (!after.empty()) named = measured_collective(after.front());
    }
    std::vector<std::string_view> w = words(all[i]);
    const auto mark =
        std::find_if(w.begin(), w.end(), [](std::string_view v) { return v.starts_with("COMMS-RES"); });
    if (mark == w.end()) continue;
    const std::string_view tag = *mark;
    w.erase(w.begin(), mark + 1);
    if (w.empty()) continue;
    if (!whole_number(w.front())) {
      // Header: units that stand as words of their own belong to the name before them.
      std::erase_if(w, [](std::string_view v) { return v == "(B)" || v == "(us)" || v == "(GB/s)"; });
      ParamColumns c;
      c.n = w.size();
      const auto find = [&](auto accept) {
        return static_cast<std::size_t>(std::find_if(w.begin(), w.end(), accept) - w.begin());
      };
      c.size = find([](std::string_view v) { return lower(v) == "size" || lower(v) == "total-size"; });
      c.latency = find([](std::string_view v) { return lower(v).starts_with("latency"); });
      if (c.size == w.size() || c.latency == w.size()) {
        return Error::at(name, place, "a header of COMMS-RES rows").expected("columns size and Latency(us)");
      }
      const std::string unit = lower(w[c.latency]);
      if (unit.find("(ms)") != std::string::npos || unit.find("(s)") != std::string::npos) {
        return Error::at(name, place, "the unit of the latency").found(unit).expected("Latency(us)");
      }
      columns = c;
      continue;
    }
    if (!columns)
      return Error::at(name, place, "a COMMS-RES row before the header 'COMMS-RES size ... Latency(us)'");
    if (w.size() <= std::max(columns->size, columns->latency)) {
      return Error::at(name, place, "a COMMS-RES row")
          .found(fmt::format("{} columns", w.size()))
          .expected(fmt::format("{}", columns->n));
    }
    CollectiveSample sample;
    const auto size = finite_number(w[columns->size]), time = finite_number(w[columns->latency]);
    if (!size || !time) {
      return Error::at(name, place, "a COMMS-RES row")
          .found(std::string{w[size ? columns->latency : columns->size].substr(0, 40)})
          .expected("a number");
    }
    sample.message_bytes = *size;
    sample.time_us = *time;
    STEPCAST_TRY(check_sample(sample, name, place));
    CollectiveMeasurements curve;
    curve.collective = named;
    if (tag.size() > 10) {  // COMMS-RES-all_reduce-float32
      const std::string_view rest = tag.substr(10);
      const std::size_t dash = rest.find('-');
      if (context.collective == CollectiveOp::unknown)
        curve.collective = measured_collective(rest.substr(0, dash));
      if (dash != std::string_view::npos) {
        const std::string_view type = rest.substr(dash + 1);
        sample.dtype = parse_dtype(type.substr(0, type.find('-')));
      }
    }
    if (curve.collective == CollectiveOp::unknown) curve.collective = mentioned_collective(name);
    if (curve.collective == CollectiveOp::unknown) {
      return Error::at(name, place, "the log does not name the collective").advice("give --collective");
    }
    MeasurementContext with_size = context;
    with_size.gpus_per_node = local_size;
    STEPCAST_TRY(apply_ranks(header, with_size, name, curve));
    curve.platform = context.platform;
    curve.sources = {name};
    if (curve.n_ranks < 2) return Error::at(name, place, "one rank has no other to communicate with");
    sample.hash = row_hash({curve.platform, to_string(curve.collective), fmt::format("{}", curve.n_nodes),
                            fmt::format("{}", curve.gpus_per_node), to_string(sample.dtype),
                            fmt::format("{}", sample.message_bytes), fmt::format("{}", sample.time_us)});
    curve.samples.push_back(sample);
    result.add({result.format, {std::move(curve)}, {}});
  }
  if (result.curves.empty()) return Error::at(name, "the log", "has no COMMS-RES row with a time");
  return result;
}

}  // namespace stepcast::detail
