// Turns platform files into Platforms: versions, keys, and what one file takes from another.
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

// The document of a file; what ships is known to be valid, and parsed as far as it is asked for.
struct PlatformDocument {
  JsonValue root;
  bool is_shipped = false;
};

// One reader may read many platforms: each file that they extend is parsed once.
class PlatformReader {
 public:
  // What is read of fitted models: all, or name, kind and device, which is quick and enough for a list.
  enum class Models : std::uint8_t { whole, names };
  explicit PlatformReader(std::span<const std::filesystem::path> search_dirs, Models models = Models::whole)
      : search_dirs_(search_dirs), models_(models) {}

  [[nodiscard]] Result<Platform> read_text(std::string_view text, const std::filesystem::path& file);
  [[nodiscard]] Result<Platform> read_file(const std::filesystem::path& file);

 private:
  Result<Platform> read_root(const PlatformDocument& document, const std::filesystem::path& file);
  // Without the checks of the whole: a file that is extended may be incomplete.
  Result<Platform> read_unchecked(const PlatformDocument& document, const std::filesystem::path& file);
  // `notes_changes`: of figures that were measured with others (changed_figures.h).
  Status read_parts(ObjectReader& o, const std::filesystem::path& file, const Documents& documents,
                    bool notes_changes, Platform& platform);
  // Records of the nearest measured relative, beneath those of a platform that has only what all devices share.
  Status take_sibling(const std::filesystem::path& base, Platform& platform);
  Status read_fitted(ObjectReader& o, const RecordSource& from, Platform& platform) const;
  Result<Platform> read_base(const JsonValue& reference, std::string_view path,
                             const std::filesystem::path& file);

  std::span<const std::filesystem::path> search_dirs_;
  Models models_;
  std::vector<std::filesystem::path> open_;  // files that are being read, the outermost first
  std::size_t files_read_ = 0;
  std::map<std::filesystem::path, PlatformDocument> parsed_;  // [identity] of files that were extended
};

inline constexpr JsonLimits kPlatformLimits{};

// The part that platforms of devices without records extend (platforms/kernels/regenerate.sh).
inline constexpr std::string_view kSharedModelsFile = "generic.json";

// The `role` of a file that describes the machine of a published benchmark.
inline constexpr std::string_view kBenchmarkRole = "benchmark";

// "x.json" or "dir/x": a path. Anything else: a name.
[[nodiscard]] bool is_path(std::string_view name_or_path);
// Names of all platform files in the folders, for suggestions.
[[nodiscard]] std::vector<std::string> file_names(std::span<const std::filesystem::path> dirs);
[[nodiscard]] Result<std::string> read_platform_text(const std::filesystem::path& file);
[[nodiscard]] Result<PlatformDocument> parse_platform_document(std::string text,
                                                               const std::filesystem::path& file);
[[nodiscard]] Result<PlatformDocument> read_platform_document(const std::filesystem::path& file);

}  // namespace stepcast::detail
