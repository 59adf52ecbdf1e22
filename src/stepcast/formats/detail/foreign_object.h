// Reads JSON objects from files of other software: null counts as a missing key, and the error for an unknown
// key says that it may matter (instead of suggesting a similar key).
#pragma once

#include <string>
#include <utility>

#include "stepcast/base/object_reader.h"

namespace stepcast::detail {

// ObjectReader::of() with these two options.
[[nodiscard]] inline Result<ObjectReader> foreign_object(const JsonValue& value, std::string path,
                                                         const std::string& file) {
  return ObjectReader::of(
      value, std::move(path), file, NullMeans::absent,
      "it may change the shape of the model, so it is not ignored; remove it if it does not");
}

}  // namespace stepcast::detail
