// Turns platform files into Platforms: versions, keys, and inheritance between files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/detail/record_reader.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

// The document of a file; a shipped document is known to be valid and is parsed on demand.
struct PlatformDocument {
  JsonValue root;
  bool is_shipped = false;
};

// Reads any number of platforms; each extended file is parsed once. Not thread-safe.
class PlatformReader {
 public:
  // Parts of fitted models to read: everything, or only name, kind and device, which is fast and sufficient
  // for a list.
  enum class Models : std::uint8_t { whole, names };
  explicit PlatformReader(std::span<const std::filesystem::path> search_dirs, Models models = Models::whole)
      : search_dirs_(search_dirs), models_(models) {}

  // Errors: invalid JSON or version, unknown keys, values outside of limits, circular or missing `extends`.
  [[nodiscard]] Result<Platform> read_text(std::string_view text, const std::filesystem::path& file);
  [[nodiscard]] Result<Platform> read_file(const std::filesystem::path& file);

 private:
  // read_unchecked() with the checks of the whole platform.
  Result<Platform> read_root(const PlatformDocument& document, const std::filesystem::path& file);
  // Without these checks: an extended file may be incomplete.
  Result<Platform> read_unchecked(const PlatformDocument& document, const std::filesystem::path& file);
  // `notes_changes`: records figures that differ from the ones in measurements (changed_figures.h).
  Status read_parts(ObjectReader& o, const std::filesystem::path& file, const Documents& documents,
                    bool notes_changes, Platform& platform);
  // For a platform with only the shared models: adds the records of the nearest measured relative, with lower
  // priority.
  Status take_sibling(const std::filesystem::path& base, Platform& platform);
  // Fitted records of the file, over the inherited ones.
  Status read_fitted(ObjectReader& o, const RecordSource& from, Platform& platform) const;
  // The platform that an `extends` refers to; `path` is the place of the reference.
  Result<Platform> read_base(const JsonValue& reference, std::string_view path,
                             const std::filesystem::path& file);

  std::span<const std::filesystem::path> search_dirs_;
  Models models_;
  std::vector<std::filesystem::path> open_;                   // files being read, outermost first
  std::size_t files_read_ = 0;                                // for the current platform
  std::map<std::filesystem::path, PlatformDocument> parsed_;  // [identity] extended files
};

// Limits of size and depth for platform files.
inline constexpr JsonLimits kPlatformLimits{};

// The part with shared models, which platforms of devices without records extend
// (platforms/kernels/regenerate.sh).
inline constexpr std::string_view kSharedModelsFile = "generic.json";

// The `role` of a file that describes the machine of a published benchmark.
inline constexpr std::string_view kBenchmarkRole = "benchmark";

// Whether a reference is a path ("x.json", "dir/x") instead of a name.
[[nodiscard]] bool is_path(std::string_view name_or_path);
// Names of all platform files in the folders, for suggestions.
[[nodiscard]] std::vector<std::string> file_names(std::span<const std::filesystem::path> dirs);
// The text of a file. Errors: missing, not a regular file, or too large.
[[nodiscard]] Result<std::string> read_platform_text(const std::filesystem::path& file);
// Parses a text; a shipped text is only indexed.
[[nodiscard]] Result<PlatformDocument> parse_platform_document(std::string text,
                                                               const std::filesystem::path& file);
[[nodiscard]] Result<PlatformDocument> read_platform_document(const std::filesystem::path& file);

}  // namespace stepcast::detail
