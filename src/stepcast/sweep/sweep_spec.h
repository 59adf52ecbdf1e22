// Many questions from one file: lists of models, platforms, numbers of GPUs, layouts and flags. Each
// combination is a point of the sweep.
//
//   STEPCAST_ASSIGN(const SweepSpec spec, read_sweep("sweep.toml"));
//   spec.points.size(), spec.points[0].id        // "9f1c2a7be0d35c44": a hash of the point's content
//
// The file is TOML or JSON (docs/sweeps.md). A list is a dimension, a single value applies to all points, and
// a list of tables contains values that are set together:
//
//   mode = "predict"                                       # or "plan"
//   model = ["llama-3-8b", "llama-3-70b"]
//   gpus = [64, 128]
//   gbs = 256
//   layouts = [{ tp = 8, pp = 4 }, { tp = 4, pp = 8 }]     # the name is free
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// The command that a point runs.
enum class SweepMode : std::uint8_t { predict, plan };
[[nodiscard]] std::string_view to_string(SweepMode mode);

// One question of the sweep.
struct SweepPoint {
  // 16 hexadecimal digits: a hash of the mode, the settings and the content of the files that settings name.
  // The same on every machine and in every version.
  std::string id;
  SweepMode mode = SweepMode::predict;
  // Numbers, texts and `true`, sorted by key. Keys are canonical (sweep_key()). Settings that are off or
  // empty are left out, so they do not change the id.
  std::vector<std::pair<std::string, JsonValue>> settings;
  // The folder of the sweep file. Names of files are looked up there first.
  std::filesystem::path folder{};

  // The value of a setting; a null pointer if the point does not have it.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
  // The path of the file that a setting names: in `folder` if it exists there, otherwise `text` unchanged.
  [[nodiscard]] std::string file(std::string_view text) const;
  // The point as one line of JSON: an object of `mode` and all settings. parse_sweep() reads it as a spec of
  // one point.
  [[nodiscard]] std::string json() const;
};

// All points of a sweep.
struct SweepSpec {
  std::string name;  // the name of the sweep file, for errors
  SweepMode mode = SweepMode::predict;
  std::string hash;  // a hash of the ids of all points in their order
  // In the order of the file, with the last list varying fastest. Each id appears once.
  std::vector<SweepPoint> points;
  std::uint64_t n_repeated = 0;  // combinations that were left out because they repeat a point

  // The point with this id; a null pointer if there is none. Linear in the number of points.
  [[nodiscard]] const SweepPoint* find(std::string_view id) const;
};

// The largest number of points. A spec with more of them is an error.
inline constexpr std::size_t kMostSweepPoints = 1'000'000;

// Reads a sweep file of at most 16 MiB. Errors: a file that is neither JSON nor TOML, an unknown key (with
// the nearest known key), an empty list, a key that is set in two places, more than kMostSweepPoints points.
// Whether a point can be run is only checked when it runs.
[[nodiscard]] Result<SweepSpec> read_sweep(const std::filesystem::path& file);
// The same from text. `name`: for errors. `folder`: see SweepPoint::folder.
[[nodiscard]] Result<SweepSpec> parse_sweep(std::string_view text, const std::string& name,
                                            const std::filesystem::path& folder = {});

}  // namespace stepcast
