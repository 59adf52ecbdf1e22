#include "stepcast/platform/detail/record_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/platform/detail/figures.h"

// Readers of curves, models and overheads in platform files.

namespace stepcast::detail {

namespace {

// Limit that catches wrong figures; far above any machine.
constexpr std::uint32_t kMostNodes = 1U << 24U;

// A curve form under `key`, if present.
Status read_form(ObjectReader& o, std::string_view key, CurveForm& form) {
  const JsonValue* member = o.take(key);
  if (member == nullptr) return Ok{};
  STEPCAST_ASSIGN(ObjectReader entry, ObjectReader::of(*member, o.path_of(key), o.file()));
  STEPCAST_TRY(entry.optional("form", form.form));
  if (form.form.empty()) return entry.error("form", "missing").expected("the name of the formula");
  STEPCAST_TRY(read_numbers_by_name(entry, "parameters", form.parameters));
  return entry.finish();
}

// {"message_bytes": [...], "time_us": [...]}: equal lengths, increasing sizes, positive times.
Status read_knots(ObjectReader& o, std::vector<CurveKnot>& knots) {
  const JsonValue* member = o.take("knots");
  if (member == nullptr) return Ok{};
  STEPCAST_ASSIGN(ObjectReader entry, ObjectReader::of(*member, o.path_of("knots"), o.file()));
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
        .expected(fmt::format("one per size, {} in total", sizes.size()));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0 && !(sizes[i] > sizes[i - 1])) {
      return entry.error("message_bytes")
          .found(fmt::format("{} behind {}", json_number(sizes[i]), json_number(sizes[i - 1])))
          .expected("sizes that increase");
    }
    if (!(times[i] > 0))
      return entry.error("time_us").found(json_number(times[i])).expected("numbers above 0");
    knots.push_back({sizes[i], times[i]});
  }
  return entry.finish();
}

// A list of residual quantiles, if present.
Status read_residuals(ObjectReader& o, std::vector<ResidualQuantiles>& residuals) {
  const JsonValue* member = o.take("residuals");
  if (member == nullptr) return Ok{};
  if (!member->is_array()) return o.wrong_kind("residuals", *member, "a list");
  for (std::size_t i = 0; i < member->items().size(); ++i) {
    STEPCAST_ASSIGN(
        ObjectReader entry,
        ObjectReader::of(member->items()[i], o.path_of(fmt::format("residuals[{}]", i)), o.file()));
    ResidualQuantiles r;
    STEPCAST_TRY(entry.optional("region", r.region));
    STEPCAST_TRY(entry.optional("message_bytes_min", r.message_bytes_min));
    STEPCAST_TRY(entry.optional("message_bytes_max", r.message_bytes_max));
    STEPCAST_TRY(entry.optional("log_p10", r.log_p10));
    STEPCAST_TRY(entry.optional("log_p50", r.log_p50));
    STEPCAST_TRY(entry.optional("log_p90", r.log_p90));
    STEPCAST_TRY(entry.count("n", 0, kMostRows, r.n));
    STEPCAST_TRY(entry.finish());
    residuals.push_back(std::move(r));
  }
  return Ok{};
}

// Figures of the platform at the time of a measurement, by path, where a later file changed them.
constexpr std::string_view kMeasuredWith = "measured_with";

// The member `provenance` of a record, if present.
Status read_record_provenance(ObjectReader& o, Provenance& out, const Documents& documents) {
  const JsonValue* member = o.take("provenance");
  if (member == nullptr) return Ok{};
  STEPCAST_ASSIGN(out, read_provenance(*member, o.path_of("provenance"), o.file(), documents));
  return Ok{};
}

constexpr std::uint8_t kNoDigit = 0xff;

// [character] value of a hexadecimal digit, or kNoDigit.
constexpr std::array<std::uint8_t, 256> kHexDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 10; ++i) digits[std::size_t{'0'} + i] = i;
  for (std::uint8_t i = 10; i < 16; ++i)
    digits[std::size_t{'a'} + i - 10] = digits[std::size_t{'A'} + i - 10] = i;
  return digits;
}();

// Parses "1a2b 3f 1c0": the first hash, then the difference of each further one. Older files have eight
// digits per hash and no space. Stops at the first invalid number; `read` is set to its position, or past the
// end of the text.
std::vector<std::uint32_t> row_hashes_of(std::string_view digits, std::size_t& read) {
  constexpr std::size_t kDigits = 8;
  const bool is_older = digits.size() > kDigits && digits.find(' ') == std::string_view::npos;
  const std::size_t usual_digits = is_older ? kDigits : kDigits - 2;  // and a space
  std::vector<std::uint32_t> hashes;
  hashes.reserve(digits.size() / usual_digits);
  std::uint32_t hash = 0;
  // Each pass reads one number at `read`.
  for (read = 0; read < digits.size();) {
    std::size_t i = read;
    std::uint32_t number = 0;
    for (; i < digits.size() && i - read < kDigits; ++i) {
      const std::uint8_t digit = kHexDigits[static_cast<unsigned char>(digits[i])];
      if (digit == kNoDigit) break;
      number = number << 4U | digit;
    }
    const bool ends = is_older ? i - read == kDigits : i == digits.size() || digits[i] == ' ';
    if (i == read || !ends) return hashes;
    hash = is_older ? number : hash + number;
    hashes.push_back(hash);
    read = is_older ? i : i + 1;
  }
  return hashes;
}

// The member `row_hashes`, if present; that of a shipped file is parsed on first use.
Status read_row_hashes(ObjectReader& o, RowHashes& out) {
  constexpr std::string_view kKey = "row_hashes";
  const JsonValue* member = o.take(kKey);
  if (member == nullptr) return Ok{};
  std::size_t read = 0;
  if (member->is_deferred()) {  // of a shipped file
    const auto later = [](const JsonValue& text) -> Result<std::vector<std::uint32_t>> {
      std::size_t all = 0;
      return RowHashes{row_hashes_of(text.text(), all)}.all();
    };
    out = RowHashes{RowHashes::List{*member, later}};
    return Ok{};
  }
  if (!member->is_text()) return o.wrong_kind(kKey, *member, "a text");
  out = RowHashes{row_hashes_of(member->text(), read)};
  if (read >= member->text().size()) return Ok{};
  return o.error(kKey)
      .found(fmt::format("`{}`", member->text().substr(read, 9)))
      .expected("hexadecimal digits: the first hash, then differences");
}

// A provenance object. Errors: a missing or unknown `source`, unknown keys.
Result<Provenance> read_provenance_object(const JsonValue& value, const std::string& path,
                                          const std::string& file) {
  STEPCAST_ASSIGN(ObjectReader o, ObjectReader::of(value, path, file));
  Provenance p;
  std::string source;
  STEPCAST_TRY(o.optional("source", source));
  const auto parsed = parse_figure_source(source);
  if (!parsed) {
    return o.error("source", source.empty() ? "missing" : "")
        .found(source.empty() ? "" : fmt::format("`{}`", source))
        .expected("data_sheet, measured, fitted or assumed");
  }
  p.source = *parsed;
  STEPCAST_TRY(o.optional("document", p.document));
  STEPCAST_TRY(o.optional("date", p.date));
  STEPCAST_TRY(o.optional("software", p.software));
  STEPCAST_TRY(o.count("n_rows", 0, kMostRows, p.n_rows));
  STEPCAST_TRY(read_row_hashes(o, p.row_hashes));
  STEPCAST_TRY(read_numbers_by_name(o, "error", p.error));
  STEPCAST_TRY(read_numbers_by_name(o, "range", p.range));
  STEPCAST_TRY(o.finish());
  return p;
}

// The collective and the group of ranks of a curve.
Status read_group(ObjectReader& o, CollectiveCurve& curve) {
  std::string word;
  STEPCAST_TRY(o.optional("collective", word));
  curve.collective = parse_collective_op(word);
  if (curve.collective == CollectiveOp::unknown) {
    return o.error("collective", word.empty() ? "missing" : "")
        .found(word.empty() ? "" : fmt::format("`{}`", word))
        .expected("all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send_receive, ...");
  }
  std::string dtype = "any";
  STEPCAST_TRY(o.optional("dtype", dtype));
  curve.dtype = dtype == "any" ? DType::unknown : parse_dtype(dtype);
  if (curve.dtype == DType::unknown && dtype != "any")
    return o.error("dtype").found(fmt::format("`{}`", dtype)).expected("any, fp32, fp16, bf16, int8, ...");
  STEPCAST_TRY(o.optional("variant", curve.variant));
  STEPCAST_TRY(o.count("n_nodes", 1, kMostNodes, curve.n_nodes));
  STEPCAST_TRY(o.count("gpus_per_node", 1, 1024U, curve.gpus_per_node));
  std::uint64_t ranks = std::uint64_t{curve.n_nodes} * curve.gpus_per_node;
  STEPCAST_TRY(o.count("n_ranks", 1, std::min<std::uint64_t>(ranks, 0xffffffffU), ranks));
  curve.n_ranks = static_cast<std::uint32_t>(ranks);
  return Ok{};
}

// The fit of a curve: forms, knots, residuals and provenance.
Result<CurveFit> read_fit(ObjectReader& o, const Documents& documents) {
  CurveFit fit;
  STEPCAST_TRY(read_form(o, "published", fit.published));
  STEPCAST_TRY(read_form(o, "improved", fit.improved));
  STEPCAST_TRY(read_knots(o, fit.knots));
  STEPCAST_TRY(read_residuals(o, fit.residuals));
  STEPCAST_TRY(read_record_provenance(o, fit.provenance, documents));
  return fit;
}

}  // namespace

Result<CollectiveCurve> read_curve(ObjectReader& o, const RecordSource& from) {
  CollectiveCurve curve;
  STEPCAST_TRY(read_group(o, curve));
  // Shipped: the fit is parsed on first use.
  if (from.is_shipped) {
    const auto later = [documents = from.documents,
                        file = o.file()](const JsonValue& value) -> Result<CurveFit> {
      STEPCAST_ASSIGN(ObjectReader all, ObjectReader::of(value, "", file));
      return read_fit(all, *documents);
    };
    curve.fit = {o.value(), later};
    return curve;
  }
  STEPCAST_TRY(read_numbers_by_name(o, kMeasuredWith, curve.measured_with));
  STEPCAST_ASSIGN(curve.fit, read_fit(o, *from.documents));
  STEPCAST_TRY(o.finish());
  return curve;
}

Result<ModelRecord> read_model(ObjectReader& o, const RecordSource& from) {
  ModelRecord model;
  model.is_shipped = from.is_shipped;
  STEPCAST_TRY(o.optional("name", model.name));
  STEPCAST_TRY(o.optional("kind", model.kind));
  STEPCAST_TRY(o.optional("device", model.device));
  if (const JsonValue* parameters = o.take("parameters")) {
    if (!parameters->is_object()) return o.wrong_kind("parameters", *parameters, "an object");
    model.parameters = *parameters;
  }
  STEPCAST_TRY(read_numbers_by_name(o, kMeasuredWith, model.measured_with));
  STEPCAST_TRY(read_record_provenance(o, model.provenance, *from.documents));
  STEPCAST_TRY(o.finish());
  return model;
}

Result<ModelRecord> read_model_names(ObjectReader& o, const RecordSource& from) {
  ModelRecord model;
  model.is_shipped = from.is_shipped;
  STEPCAST_TRY(o.optional("name", model.name));
  STEPCAST_TRY(o.optional("kind", model.kind));
  STEPCAST_TRY(o.optional("device", model.device));
  return model;
}

Result<OverheadRecord> read_overhead(ObjectReader& o, const RecordSource& from) {
  OverheadRecord overhead;
  std::string word;
  STEPCAST_TRY(o.optional("type", word));
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
  STEPCAST_TRY(o.optional("op", overhead.op));
  std::optional<double> mean;
  STEPCAST_TRY(o.optional("mean_us", mean));
  if (!mean) return o.error("mean_us", "missing");
  overhead.mean_us = *mean;
  STEPCAST_TRY(o.optional("std_us", overhead.std_us));
  STEPCAST_TRY(o.optional("p10_us", overhead.p10_us));
  STEPCAST_TRY(o.optional("p50_us", overhead.p50_us));
  STEPCAST_TRY(o.optional("p90_us", overhead.p90_us));
  STEPCAST_TRY(o.optional("outlier_us", overhead.outlier_us));
  STEPCAST_TRY(o.optional("profiler_events", overhead.profiler_events));
  STEPCAST_TRY(o.count("n", 0, kMostRows, overhead.n));
  STEPCAST_TRY(read_record_provenance(o, overhead.provenance, *from.documents));
  STEPCAST_TRY(o.finish());
  return overhead;
}

Status read_numbers_by_name(ObjectReader& o, std::string_view key, NamedNumbers& out) {
  const JsonValue* member = o.take(key);
  if (member == nullptr) return Ok{};
  if (!member->is_object()) return o.wrong_kind(key, *member, "an object of numbers");
  out.clear();
  for (const JsonValue::Member& entry : member->members()) {
    if (!entry.value.is_number())
      return o.wrong_kind(fmt::format("{}.{}", key, entry.key), entry.value, "a number");
    out.emplace(entry.key, entry.value.number());
  }
  return Ok{};
}

Result<Provenance> read_provenance(const JsonValue& value, const std::string& path, const std::string& file,
                                   const Documents& documents) {
  if (!value.is_text()) return read_provenance_object(value, path, file);
  const auto found = documents.find(value.text());
  if (found != documents.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, unused] : documents) known.push_back(name);
  // An unknown short name is an error, with the nearest known one as advice.
  const auto meant = nearest_word(value.text(), known);
  return error_at(file, value, path)
      .found(describe_value(value))
      .expected("an entry of `documents`")
      .advice(meant ? fmt::format("did you mean `{}`?", *meant) : "add it there");
}

Result<Documents> read_documents(const JsonValue* value, const std::string& file) {
  Documents documents;
  if (value == nullptr) return documents;
  if (!value->is_object())
    return error_at(file, *value, "documents").found(describe_value(*value)).expected("an object");
  for (const JsonValue::Member& entry : value->members()) {
    STEPCAST_ASSIGN(Provenance p,
                    read_provenance_object(entry.value, fmt::format("documents.{}", entry.key), file));
    documents.emplace(entry.key, std::move(p));
  }
  return documents;
}

}  // namespace stepcast::detail
