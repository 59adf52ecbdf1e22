// Reads the records of a platform file: curves of collectives, models, overheads.
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

// Reads where the figures of a platform file are from.

inline constexpr std::uint64_t kMostRows = std::uint64_t{1} << 52U;  // behind a figure

// What a file says about its sources, by the short name that its figures use.
using Documents = std::map<std::string, Provenance, std::less<>>;

// The member `documents`; none if `value` is null.
[[nodiscard]] Result<Documents> read_documents(const JsonValue* value, const std::string& file);
// A short name of `documents`, or an object that says all. `path` leads to `value`.
[[nodiscard]] Result<Provenance> read_provenance(const JsonValue& value, const std::string& path,
                                                 const std::string& file, const Documents& documents);
// An object of numbers, such as the parameters of a form.
[[nodiscard]] Status read_numbers_by_name(ObjectReader& o, std::string_view key, NamedNumbers& out);

// What the records of a file are read with.
struct RecordSource {
  std::shared_ptr<const Documents> documents;
  bool is_shipped = false;  // known to be readable, so that it can be read when it is first asked for
};
[[nodiscard]] Result<CollectiveCurve> read_curve(ObjectReader& o, const RecordSource& from);
[[nodiscard]] Result<ModelRecord> read_model(ObjectReader& o, const RecordSource& from);
// Name, kind and device alone: nothing else is looked at.
[[nodiscard]] Result<ModelRecord> read_model_names(ObjectReader& o, const RecordSource& from);
[[nodiscard]] Result<OverheadRecord> read_overhead(ObjectReader& o, const RecordSource& from);

}  // namespace stepcast::detail
