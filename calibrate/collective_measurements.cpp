#include "calibrate/collective_measurements.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/line_prefix.h"
#include "stepcast/base/text.h"
#include "stepcast/platform/provenance.h"

#include "calibrate/detail/collective_logs.h"

namespace stepcast {
namespace detail {

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  std::size_t i = 0;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; };
  while (i < line.size()) {
    while (i < line.size() && blank(line[i])) ++i;
    const std::size_t begin = i;
    while (i < line.size() && !blank(line[i])) ++i;
    if (i > begin) result.push_back(line.substr(begin, i - begin));
  }
  return result;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    result.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::optional<double> finite_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> whole_number(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

CollectiveOp measured_collective(std::string_view text) {
  std::string name = lower(text);
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos) name.erase(0, slash + 1);
  if (const std::size_t tail = name.find("_perf"); tail != std::string::npos) name.erase(tail);
  if (name == "p2p" || name == "pt2pt" || name == "sendrecv") return CollectiveOp::send_receive;
  if (name == "broadcastx" || name == "bcastx")
    return CollectiveOp::unknown;  // frameworks append an x, benchmarks do not
  return parse_collective_op(name);
}

CollectiveOp mentioned_collective(std::string_view text) {
  for (std::size_t at = text.find("_perf"); at != std::string_view::npos; at = text.find("_perf", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 &&
           (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_')) {
      --begin;
    }
    const CollectiveOp op = measured_collective(text.substr(begin, at - begin));
    if (op != CollectiveOp::unknown) return op;
  }
  return CollectiveOp::unknown;
}

void add_sample(CollectiveMeasurements& curve, CollectiveSample sample) {
  sample.hash = row_hash({curve.platform, to_string(curve.collective), fmt::format("{}", curve.n_nodes),
                          fmt::format("{}", curve.gpus_per_node), to_string(sample.dtype),
                          fmt::format("{}", sample.message_bytes), fmt::format("{}", sample.time_us)});
  curve.samples.push_back(sample);
}

Result<CollectiveOp> collective_or_named(CollectiveOp op, const std::string& name, const std::string& place) {
  if (op == CollectiveOp::unknown) op = mentioned_collective(name);
  if (op == CollectiveOp::unknown)
    return Error::at(name, place, "does not name the collective").advice("give --collective");
  return op;
}

Status check_sample(const CollectiveSample& sample, const std::string& name, const std::string& place) {
  if (!(sample.message_bytes > 0) || !std::isfinite(sample.message_bytes) || sample.message_bytes > 0x1p60) {
    return Error::at(name, place, "the message size")
        .found(fmt::format("{}", sample.message_bytes))
        .expected("a number of bytes above 0");
  }
  if (!(sample.time_us > 0) || !std::isfinite(sample.time_us)) {
    return Error::at(name, place, "the time")
        .found(fmt::format("{}", sample.time_us))
        .expected("microseconds above 0")
        .advice("leave this row out or measure it again");
  }
  return Ok{};
}

Status apply_ranks(const RankHeader& header, const MeasurementContext& context, const std::string& name,
                   CollectiveMeasurements& curve) {
  curve.gpu = header.gpu;
  if (context.n_ranks > 0 && header.n_ranks > 0 && context.n_ranks != header.n_ranks) {
    return Error::at(name, "the header")
        .found(fmt::format("{} ranks", header.n_ranks))
        .expected(fmt::format("{}, as said (--ranks)", context.n_ranks))
        .advice("leave --ranks out, or name the log of that run");
  }
  curve.n_ranks = context.n_ranks > 0 ? context.n_ranks : header.n_ranks;
  if (curve.n_ranks == 0) {
    return Error::at(name, "the header", "does not say how many ranks took part")
        .advice(
            "keep the lines '#  Rank  0 ... on HOST device' in the log, or give --ranks and --gpus-per-node");
  }
  const std::set<std::string> hosts(header.hosts.begin(), header.hosts.end());
  if (context.gpus_per_node > 0) {
    curve.gpus_per_node = context.gpus_per_node;
  } else if (!hosts.empty()) {
    curve.gpus_per_node = (curve.n_ranks + static_cast<std::uint32_t>(hosts.size()) - 1) /
                          static_cast<std::uint32_t>(hosts.size());
  } else {
    return Error::at(name, "the header", "does not say on which hosts the ranks were")
        .advice("give --gpus-per-node");
  }
  if (curve.gpus_per_node > curve.n_ranks) curve.gpus_per_node = curve.n_ranks;
  if (curve.n_ranks % curve.gpus_per_node != 0) {
    return Error::at(name, "the header")
        .found(fmt::format("{} ranks on nodes of {}", curve.n_ranks, curve.gpus_per_node))
        .expected("the same number of ranks on every node");
  }
  curve.n_nodes = curve.n_ranks / curve.gpus_per_node;
  return Ok{};
}

}  // namespace detail

std::string CollectiveMeasurements::name() const {
  std::string_view op = to_string(collective);
  if (collective == CollectiveOp::all_to_all) op = "alltoall";
  if (collective == CollectiveOp::send_receive) op = "sendrecv";
  const std::string ranks =
      n_nodes > 1 ? fmt::format("{}x{}", n_nodes, gpus_per_node) : fmt::format("{}", n_ranks);
  return fmt::format("{}{}{}/{}", platform, platform.empty() ? "" : "/", op, ranks);
}

void MeasuredCollectives::add(MeasuredCollectives other) {
  const auto key = [](const CollectiveMeasurements& c) {
    return std::tuple{c.platform, c.collective, c.n_nodes, c.gpus_per_node, c.n_ranks};
  };
  if (format.empty()) format = other.format;
  for (CollectiveMeasurements& curve : other.curves) {
    const auto same = std::ranges::find_if(curves, [&](const auto& c) { return key(c) == key(curve); });
    if (same == curves.end()) {
      curves.push_back(std::move(curve));
      continue;
    }
    same->samples.insert(same->samples.end(), curve.samples.begin(), curve.samples.end());
    for (std::string& source : curve.sources)
      if (std::ranges::find(same->sources, source) == same->sources.end())
        same->sources.push_back(std::move(source));
  }
  std::ranges::stable_sort(curves, [&](const auto& a, const auto& b) { return key(a) < key(b); });
  for (UnusedRows& rows : other.unused) {
    const auto same = std::ranges::find_if(
        unused, [&](const UnusedRows& u) { return u.what == rows.what && u.why == rows.why; });
    if (same == unused.end())
      unused.push_back(std::move(rows));
    else
      same->n += rows.n;
  }
}

namespace {

// The text without colours and without prefixes of launchers. Line numbers are kept.
std::string without_prefixes(std::string_view text) {
  std::string out, buffer;
  out.reserve(text.size());
  for (const std::string_view line : detail::lines(text)) {
    out += plain_line(line, buffer).text;
    out += '\n';
  }
  return out;
}

}  // namespace

Result<MeasuredCollectives> parse_collective_measurements(std::string_view printed, const std::string& name,
                                                          const MeasurementContext& context) {
  if (printed.starts_with("\xEF\xBB\xBF")) printed.remove_prefix(3);
  const std::string plain = without_prefixes(printed);
  const std::string_view text = plain;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return Error::at(name, "the file", "is empty");
  if (text[first] == '{' || text[first] == '[') return detail::parse_nccl_tests_json(text, name, context);
  if (text.find("COMMS-RES") != std::string_view::npos) return detail::parse_param_log(text, name, context);
  const std::string_view line = text.substr(first, std::min(text.find('\n', first), text.size()) - first);
  if (line.find("message_bytes") != std::string_view::npos && line.find(',') != std::string_view::npos)
    return detail::parse_collective_csv(text, name, context);
  if (text.find("algbw") != std::string_view::npos || text.find("# nThread") != std::string_view::npos)
    return detail::parse_nccl_tests_text(text, name, context);
  return Error::at(name, "the file", "is in no format that stepcast knows")
      .expected(
          "nccl-tests text with its '#' header lines, nccl-tests JSON, a PARAM log with COMMS-RES lines, or "
          "CSV with the columns collective, n_ranks, message_bytes, time_us");
}

Result<MeasuredCollectives> read_collective_measurements(const std::filesystem::path& file,
                                                         const MeasurementContext& context) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse_collective_measurements(text, file.generic_string(), context);
}

}  // namespace stepcast
