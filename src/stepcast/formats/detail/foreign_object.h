// Objects in files that somebody else's software wrote: null means that a key is not there, and a key that
// nobody knows is no slip of the pen.
#pragma once

#include <string>
#include <utility>

#include "stepcast/base/object_reader.h"

namespace stepcast::detail {

// As ObjectReader::of.
[[nodiscard]] inline Result<ObjectReader> foreign_object(const JsonValue& value, std::string path,
                                                         const std::string& file) {
  return ObjectReader::of(
      value, std::move(path), file, NullMeans::absent,
      "it may change the shape of the model, so it is not ignored; remove it if it does not");
}

}  // namespace stepcast::detail
