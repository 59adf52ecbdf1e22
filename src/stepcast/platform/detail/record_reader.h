// Readers of the records of a platform file: collective curves, models, overheads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/platform/provenance.h"

namespace stepcast::detail {

inline constexpr std::uint64_t kMostRows = std::uint64_t{1} << 52U;  // limit of measurements behind a figure

// The sources in a file, by the short names that its figures use.
using Documents = std::map<std::string, Provenance, std::less<>>;

// Reads the member `documents`; empty if `value` is null.
[[nodiscard]] Result<Documents> read_documents(const JsonValue* value, const std::string& file);
// A source: a short name of `documents`, or an object. `path` is the place of `value`.
[[nodiscard]] Result<Provenance> read_provenance(const JsonValue& value, const std::string& path,
                                                 const std::string& file, const Documents& documents);
// An object of numbers, such as the parameters of a form; a missing member leaves `out` unchanged.
[[nodiscard]] Status read_numbers_by_name(ObjectReader& o, std::string_view key, NamedNumbers& out);

// Context of the records of a file.
struct RecordSource {
  std::shared_ptr<const Documents> documents;
  bool is_shipped = false;  // known to be readable, so large parts are parsed on first use
};
// Each reads one object of its list. Errors: missing or invalid members, unknown keys.
[[nodiscard]] Result<CollectiveCurve> read_curve(ObjectReader& o, const RecordSource& from);
[[nodiscard]] Result<ModelRecord> read_model(ObjectReader& o, const RecordSource& from);
// Only name, kind and device; other members are ignored.
[[nodiscard]] Result<ModelRecord> read_model_names(ObjectReader& o, const RecordSource& from);
[[nodiscard]] Result<OverheadRecord> read_overhead(ObjectReader& o, const RecordSource& from);

}  // namespace stepcast::detail
