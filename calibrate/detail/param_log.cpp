// Parses the output of PARAM comms.py, the benchmark that the published method uses:
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

// Reads a log line by line.
class ParamLog {
 public:
  ParamLog(const std::string& name, const MeasurementContext& context)
      : name_(name), context_(context), named_(context.collective) {}

  Result<MeasuredCollectives> read(std::string_view text) {
    const std::vector<std::string_view> all = lines(text);
    for (std::size_t i = 0; i < all.size(); ++i) {
      place_ = fmt::format("line {}", i + 1);
      read_settings(all[i]);
      std::vector<std::string_view> w = words(all[i]);
      const auto mark =
          std::ranges::find_if(w, [](std::string_view v) { return v.starts_with("COMMS-RES"); });
      if (mark == w.end()) continue;
      const std::string_view tag = *mark;
      w.erase(w.begin(), mark + 1);
      if (w.empty()) continue;
      STEPCAST_TRY(whole_number(w.front()) ? read_row(tag, w) : read_header(std::move(w)));
    }
    if (result_.curves.empty()) return Error::at(name_, "the log", "has no COMMS-RES row with a time");
    return std::move(result_);
  }

 private:
  struct Columns {
    std::size_t size = 0, latency = 0, n = 0;
  };

  // Reads the number of ranks and the collective from a line.
  void read_settings(std::string_view line) {
    if (const auto n = number_after(line, "world_size")) header_.n_ranks = *n;
    if (const auto n = number_after(line, "local_size"); n && context_.gpus_per_node == 0) local_size_ = *n;
    for (const std::string_view flag : {"--collective ", "--collective="}) {
      const std::size_t at = line.find(flag);
      if (at == std::string_view::npos || context_.collective != CollectiveOp::unknown) continue;
      const std::vector<std::string_view> after = words(line.substr(at + flag.size()));
      if (!after.empty()) named_ = measured_collective(after.front());
    }
  }

  Status read_header(std::vector<std::string_view> w) {
    // Units written as separate words belong to the name before them.
    std::erase_if(w, [](std::string_view v) { return v == "(B)" || v == "(us)" || v == "(GB/s)"; });
    const auto find = [&](auto accept) {
      return static_cast<std::size_t>(std::ranges::find_if(w, accept) - w.begin());
    };
    const Columns c{
        .size = find([](std::string_view v) { return lower(v) == "size" || lower(v) == "total-size"; }),
        .latency = find([](std::string_view v) { return lower(v).starts_with("latency"); }),
        .n = w.size()};
    if (c.size == w.size() || c.latency == w.size())
      return Error::at(name_, place_, "a header of COMMS-RES rows").expected("columns size and Latency(us)");
    const std::string unit = lower(w[c.latency]);
    if (unit.find("(ms)") != std::string::npos || unit.find("(s)") != std::string::npos)
      return Error::at(name_, place_, "the unit of the latency").found(unit).expected("Latency(us)");
    columns_ = c;
    return Ok{};
  }

  Status read_row(std::string_view tag, const std::vector<std::string_view>& w) {
    if (!columns_)
      return Error::at(name_, place_, "a COMMS-RES row before the header 'COMMS-RES size ... Latency(us)'");
    if (w.size() <= std::max(columns_->size, columns_->latency)) {
      return Error::at(name_, place_, "a COMMS-RES row")
          .found(fmt::format("{} columns", w.size()))
          .expected(fmt::format("{}", columns_->n));
    }
    const auto size = finite_number(w[columns_->size]), time = finite_number(w[columns_->latency]);
    if (!size || !time) {
      return Error::at(name_, place_, "a COMMS-RES row")
          .found(std::string{w[size ? columns_->latency : columns_->size].substr(0, 40)})
          .expected("a number");
    }
    CollectiveSample sample{.message_bytes = *size, .time_us = *time};
    STEPCAST_TRY(check_sample(sample, name_, place_));
    CollectiveMeasurements curve{.platform = context_.platform, .collective = named_, .sources = {name_}};
    if (tag.size() > 10) {  // COMMS-RES-all_reduce-float32
      const std::string_view rest = tag.substr(10);
      const std::size_t dash = rest.find('-');
      if (context_.collective == CollectiveOp::unknown)
        curve.collective = measured_collective(rest.substr(0, dash));
      if (dash != std::string_view::npos) {
        const std::string_view type = rest.substr(dash + 1);
        sample.dtype = parse_dtype(type.substr(0, type.find('-')));
      }
    }
    STEPCAST_ASSIGN(curve.collective, collective_or_named(curve.collective, name_, place_));
    MeasurementContext with_size = context_;
    with_size.gpus_per_node = local_size_;
    STEPCAST_TRY(apply_ranks(header_, with_size, name_, curve));
    if (curve.n_ranks < 2) return Error::at(name_, place_, "one rank has no other to communicate with");
    add_sample(curve, sample);
    result_.add({result_.format, {std::move(curve)}, {}});
    return Ok{};
  }

  const std::string& name_;
  const MeasurementContext& context_;
  std::string place_;
  RankHeader header_;
  std::uint32_t local_size_ = context_.gpus_per_node;
  CollectiveOp named_;
  std::optional<Columns> columns_;
  MeasuredCollectives result_{.format = "PARAM comms log"};
};

}  // namespace

Result<MeasuredCollectives> parse_param_log(std::string_view text, const std::string& name,
                                            const MeasurementContext& context) {
  return ParamLog{name, context}.read(text);
}

}  // namespace stepcast::detail
