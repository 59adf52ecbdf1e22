// Reads, writes and finds platform files: JSON, version 1, described in docs/platform-file.md.
//
//   STEPCAST_ASSIGN(Platform mine, load_platform("my-cluster.json"));  // a file; may extend a shipped one
//   STEPCAST_ASSIGN(Platform dgx, load_platform("dgx-a100"));          // a shipped one, by name or alias
//   platform_json(mine)                                                the text of such a file
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

inline constexpr int kPlatformFileVersion = 1;

// Folders that are searched for platforms by name: $STEPCAST_PLATFORMS (folders, separated by ':'), then the
// installed share folder or the source tree of this build.
[[nodiscard]] std::vector<std::filesystem::path> platform_search_dirs();

// Loads a platform by name or alias from `search_dirs`, or by path: text that contains a '/' or ends in
// ".json". `device_hint` selects where several platforms have the same alias; without it that is an error.
[[nodiscard]] Result<Platform> load_platform(std::string_view name_or_path,
                                             std::span<const std::filesystem::path> search_dirs,
                                             std::string_view device_hint = {});
[[nodiscard]] Result<Platform> load_platform(std::string_view name_or_path,
                                             std::string_view device_hint = {});

// The platform that describes a device, by a name from measurements: "NVIDIA A100-PCIE-40GB", "h100_sxm".
[[nodiscard]] Result<Platform> load_device(std::string_view device_name,
                                           std::span<const std::filesystem::path> search_dirs);
[[nodiscard]] Result<Platform> load_device(std::string_view device_name);

// The platform in `text`. `file` is named in errors and is the base of relative `extends`.
[[nodiscard]] Result<Platform> parse_platform(std::string_view text, const std::filesystem::path& file,
                                              std::span<const std::filesystem::path> search_dirs);

// `platform` as text, without `extends`. Equal platforms give equal bytes, and reading the text gives an
// equal platform.
[[nodiscard]] std::string platform_json(const Platform& platform);
// `platform` as a short text: `extends: base_reference` and the differences from `base`, the platform of that
// reference. Without a reference only the differences: a part that another file can extend.
[[nodiscard]] std::string platform_extension_json(const Platform& platform, const Platform& base,
                                                  std::string_view base_reference);

// A figure with its unit in the path: "device.memory_bandwidth_GBps", "2039".
struct PlatformFigure {
  std::string path;
  std::string value;
  Provenance provenance;
};
// The stated figures of device, node and network, in the order of docs/platform-file.md.
[[nodiscard]] std::vector<PlatformFigure> platform_figures(const Platform& platform);

// One line of `stepcast platforms`.
struct PlatformListing {
  // device: a GPU without a node; node: a node on the market; benchmark: the machine of a published
  // benchmark.
  enum class Role : std::uint8_t { device, node, benchmark };
  Role role = Role::device;
  std::string name;
  std::string description;
  std::vector<std::string> aliases;
  std::string device;  // name of the GPU
  std::vector<std::string> device_aliases;
  std::uint32_t gpus_per_node = 1;
  // Collective curves, model records, overhead records.
  std::size_t n_curves = 0, n_models = 0, n_overheads = 0;
  std::filesystem::path file;
};
// The platforms of some folders.
struct PlatformListings {
  std::vector<PlatformListing> platforms;  // by name
  std::vector<std::string> unreadable;     // one error message per unreadable file
};
// All platforms in `search_dirs`; where two folders have a file of the same name, the first counts. Models
// are not parsed, only when a platform is loaded.
[[nodiscard]] PlatformListings list_platforms(std::span<const std::filesystem::path> search_dirs);

}  // namespace stepcast
