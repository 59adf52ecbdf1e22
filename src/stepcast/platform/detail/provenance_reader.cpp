#include "stepcast/platform/detail/provenance_reader.h"

#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"

namespace stepcast::detail {

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

namespace {

Status read_row_hashes(ObjectReader& o, std::vector<std::uint32_t>& out) {
  constexpr std::string_view kKey = "row_hashes";
  constexpr std::size_t kDigits = 8;
  std::string digits;
  STEPCAST_TRY(o.optional(kKey, digits));
  if (digits.size() % kDigits != 0) {
    return o.error(kKey)
        .found(fmt::format("{} digits", digits.size()))
        .expected("8 hexadecimal digits per row");
  }
  out.reserve(out.size() + digits.size() / kDigits);
  for (std::size_t i = 0; i < digits.size(); i += kDigits) {
    std::uint32_t hash = 0;
    const char* const first = digits.data() + i;
    const auto [end, code] = std::from_chars(first, first + kDigits, hash, 16);
    if (code != std::errc{} || end != first + kDigits) {
      return o.error(kKey)
          .found(fmt::format("`{}`", digits.substr(i, kDigits)))
          .expected("8 hexadecimal digits per row");
    }
    out.push_back(hash);
  }
  normalize_row_hashes(out);
  return Ok{};
}

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

}  // namespace

Result<Provenance> read_provenance(const JsonValue& value, const std::string& path, const std::string& file,
                                   const Documents& documents) {
  if (!value.is_text()) return read_provenance_object(value, path, file);
  const auto found = documents.find(value.text());
  if (found != documents.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, unused] : documents) known.push_back(name);
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
