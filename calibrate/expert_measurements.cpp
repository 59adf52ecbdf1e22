#include "calibrate/expert_measurements.h"

#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

bool says(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view header_of(std::string_view text) { return text.substr(0, text.find('\n')); }

Status check_needed(const CsvRows& rows, std::initializer_list<std::string_view> needed) {
  for (const std::string_view column : needed) {
    if (rows.has(column)) continue;
    return Error::at(rows.name(), "the header", fmt::format("lacks the column {}", column))
        .expected("the columns of measured expert layers or exchanges (docs/kernels.md)");
  }
  return Ok{};
}

// Parses "balanced" or "power_law_1.2".
Result<ExpertLoad> load_of(const CsvRows& rows) {
  std::string text{rows.cell("token_distribution")};
  constexpr std::string_view kPowerLaw = "power_law_";
  if (text.starts_with(kPowerLaw)) text = "power-law:" + text.substr(kPowerLaw.size());
  Result<ExpertLoad> load = parse_expert_load(text);
  if (!load || !load->visits.empty())
    return rows.error("token_distribution").expected("balanced or power_law_EXPONENT");
  return load;
}

Status check_routing(const CsvRows& rows, std::int64_t top_k, std::int64_t n_experts, std::int64_t ranks) {
  if (top_k > n_experts) return rows.error("top_k").expected(fmt::format("at most n_experts {}", n_experts));
  if (n_experts % ranks != 0)
    return rows.error("n_experts").expected(fmt::format("a multiple of the {} ranks that share them", ranks));
  return Ok{};
}

Status read_layers(CsvRows& rows, ExpertMeasurements& out) {
  STEPCAST_TRY(
      check_needed(rows, {"gpu", "dtype", "n_tokens", "hidden_size", "expert_ffn_size", "top_k", "n_experts",
                          "expert_tensor_parallel", "expert_parallel", "token_distribution", "time_us"}));
  std::map<std::tuple<double, std::int64_t, std::int64_t, std::int64_t>, double> busiest;  // few
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    MeasuredExpertLayer m{.line = rows.line()};
    m.gpu = rows.cell("gpu");
    const std::string type = lower(rows.cell("dtype"));
    m.dtype = type == "nvfp4" ? DType::fp4 : parse_dtype(type);
    if (m.dtype == DType::unknown) return rows.error("dtype", "an unknown type");
    STEPCAST_TRY(rows.extents({{"n_tokens", &m.tokens},
                               {"hidden_size", &m.hidden_size},
                               {"expert_ffn_size", &m.expert_ffn_size},
                               {"top_k", &m.top_k},
                               {"n_experts", &m.n_experts},
                               {"expert_tensor_parallel", &m.expert_tensor_parallel},
                               {"expert_parallel", &m.expert_parallel}}));
    STEPCAST_TRY(check_routing(rows, m.top_k, m.n_experts, m.expert_parallel));
    m.gated = !says(rows.cell("kernel"), "nongated");
    STEPCAST_ASSIGN(m.load, load_of(rows));
    const auto [known, is_new] =
        busiest.try_emplace({m.load.power_law, m.n_experts, m.expert_parallel, m.tokens}, 1.0);
    if (is_new) {
      known->second =
          busiest_over_mean(m.load, m.n_experts, m.expert_parallel, static_cast<double>(m.tokens));
    }
    m.busiest = known->second;
    STEPCAST_ASSIGN(m.time_us, rows.number("time_us", 0));
    if (m.time_us <= 0) return rows.error("time_us").expected("a time above 0 in microseconds");
    out.layers.push_back(std::move(m));
  }
}

Status read_exchanges(CsvRows& rows, ExpertMeasurements& out) {
  STEPCAST_TRY(check_needed(rows, {"gpu", "n_nodes", "hidden_size", "n_tokens", "top_k", "n_experts",
                                   "dispatch_sms", "dispatch_us", "combine_us"}));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    MeasuredExchange m{.line = rows.line()};
    m.gpu = rows.cell("gpu");
    STEPCAST_TRY(rows.extents({{"n_nodes", &m.n_nodes},
                               {"hidden_size", &m.hidden_size},
                               {"n_tokens", &m.tokens},
                               {"top_k", &m.top_k},
                               {"n_experts", &m.n_experts}}));
    STEPCAST_TRY(check_routing(rows, m.top_k, m.n_experts, 1));
    STEPCAST_ASSIGN(m.sms, rows.extent("dispatch_sms"));
    STEPCAST_ASSIGN(m.dispatch_us, rows.number("dispatch_us", 0));
    STEPCAST_ASSIGN(m.combine_us, rows.number("combine_us", 0));
    if (m.dispatch_us <= 0) return rows.error("dispatch_us").expected("a time above 0 in microseconds");
    if (m.combine_us <= 0) return rows.error("combine_us").expected("a time above 0 in microseconds");
    out.exchanges.push_back(std::move(m));
  }
}

}  // namespace

bool looks_like_expert_layers(std::string_view text) {
  const std::string_view header = header_of(text);
  return says(header, "expert_ffn_size") && says(header, "token_distribution");
}

bool looks_like_expert_exchanges(std::string_view text) {
  const std::string_view header = header_of(text);
  return says(header, "dispatch_us") && says(header, "combine_us");
}

Status parse_expert_measurements(std::string_view text, const std::string& name, ExpertMeasurements& out) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, name));
  STEPCAST_TRY(rows.check_names());
  if (looks_like_expert_layers(text)) return read_layers(rows, out);
  if (looks_like_expert_exchanges(text)) return read_exchanges(rows, out);
  return Error::at(name, "the header", "is neither of expert layers nor of exchanges")
      .expected("expert_ffn_size and token_distribution, or dispatch_us and combine_us (docs/kernels.md)");
}

Status read_expert_measurements(const std::filesystem::path& file, ExpertMeasurements& out) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  return parse_expert_measurements(text, file.string(), out);
}

Result<ExpertMeasurements> read_expert_measurements_in(const std::filesystem::path& folder) {
  ExpertMeasurements all;
  for (const std::filesystem::path& file : csv_files_in(folder)) {
    STEPCAST_ASSIGN(const std::string text, read_file(file));
    if (!looks_like_expert_layers(text) && !looks_like_expert_exchanges(text)) continue;
    STEPCAST_TRY(parse_expert_measurements(text, file.string(), all));
  }
  return all;
}

}  // namespace stepcast
