// Reads, writes and finds platform files: JSON, version 1, described in docs/platform-file.md.
//
//   STEPCAST_ASSIGN(Platform mine, load_platform("my-cluster.json"));  // a file; may extend one that ships
//   STEPCAST_ASSIGN(Platform dgx, load_platform("dgx-a100"));          // one that ships, by name or alias
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

// Where platforms that are asked for by name are looked for: $STEPCAST_PLATFORMS (folders, separated by ':'),
// then the installed share folder or the source tree of this build.
[[nodiscard]] std::vector<std::filesystem::path> platform_search_dirs();

// A name (or alias) of a platform in `search_dirs`, or the path of a file: what holds a '/' or ends in
// ".json". `device_hint` chooses where several platforms have the same alias; empty: that is an error.
[[nodiscard]] Result<Platform> load_platform(std::string_view name_or_path,
                                             std::span<const std::filesystem::path> search_dirs,
                                             std::string_view device_hint = {});
[[nodiscard]] Result<Platform> load_platform(std::string_view name_or_path,
                                             std::string_view device_hint = {});

// The platform whose file describes the device that is called so in measurements: "NVIDIA A100-PCIE-40GB",
// "h100_sxm".
[[nodiscard]] Result<Platform> load_device(std::string_view device_name,
                                           std::span<const std::filesystem::path> search_dirs);
[[nodiscard]] Result<Platform> load_device(std::string_view device_name);

// The platform that `text` says. `file` stands for it in errors and is where relative `extends` start from.
[[nodiscard]] Result<Platform> parse_platform(std::string_view text, const std::filesystem::path& file,
                                              std::span<const std::filesystem::path> search_dirs);

// What `platform` is, without any `extends`. Equal platforms give equal bytes, and reading them gives the
// same platform.
[[nodiscard]] std::string platform_json(const Platform& platform);
// The same platform as a short file: `extends: base_reference` and what differs from `base`, which is that
// platform. Without a reference only what differs: a part that another file can extend.
[[nodiscard]] std::string platform_extension_json(const Platform& platform, const Platform& base,
                                                  std::string_view base_reference);

// One figure with its unit in the path: "device.memory_bandwidth_GBps", "2039".
struct PlatformFigure {
  std::string path;
  std::string value;
  Provenance provenance;
};
// The figures of device, node and network that are stated, in the order of docs/platform-file.md.
[[nodiscard]] std::vector<PlatformFigure> platform_figures(const Platform& platform);

// One line of `stepcast platforms`.
struct PlatformListing {
  // A GPU without a node; a node that one can buy or rent; the machine of a published benchmark.
  enum class Role : std::uint8_t { device, node, benchmark };
  Role role = Role::device;
  std::string name;
  std::string description;
  std::vector<std::string> aliases;
  std::string device;
  std::vector<std::string> device_aliases;
  std::uint32_t gpus_per_node = 1;
  std::size_t n_curves = 0, n_models = 0, n_overheads = 0;
  std::filesystem::path file;
};
// What could not be read of a folder of platforms, and why.
struct PlatformListings {
  std::vector<PlatformListing> platforms;  // by name
  std::vector<std::string> unreadable;     // an error each
};
// Every platform in `search_dirs`; where two folders have a file of the same name, the first counts. Models are not
// looked into: that is left to who loads a platform.
[[nodiscard]] PlatformListings list_platforms(std::span<const std::filesystem::path> search_dirs);

}  // namespace stepcast
