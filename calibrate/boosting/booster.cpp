#include "calibrate/boosting/booster.h"

#include <filesystem>
#include <system_error>

#include <dlfcn.h>

#include <fmt/format.h>

#include "calibrate/boosting/booster_plugin.h"

namespace stepcast::detail {
namespace {

namespace fs = std::filesystem;

using TrainBooster = decltype(&stepcast_train_booster_2);

struct Plugin {
  TrainBooster train = nullptr;
  std::string problem;
};

// Searches next to the program, in the folder above it (for programs in a build folder) and in the install location.
Plugin load_plugin() {
  constexpr const char* kName = "stepcast-boosting.so";
  std::error_code failure;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path();
  for (const fs::path& place : {folder, folder.parent_path(), folder.parent_path() / "lib" / "stepcast"}) {
    const fs::path file = place / kName;
    if (!fs::exists(file, failure)) continue;
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one for each thread
      return {nullptr,
              fmt::format("trees are left out: {}; install XGBoost (Debian and Ubuntu: libxgboost0)", why)};
    }
    if (void* symbol = ::dlsym(library, "stepcast_train_booster_2"))
      return {reinterpret_cast<TrainBooster>(symbol), {}};
    return {nullptr, fmt::format("trees are left out: {} is of another version", file.string())};
  }
  return {
      nullptr,
      fmt::format(
          "trees are left out: {} is not in the folder of the program; install XGBoost (Debian and Ubuntu: "
          "libxgboost-dev) and build again",
          kName)};
}

const Plugin& plugin() {
  static const Plugin kPlugin = load_plugin();
  return kPlugin;
}

}  // namespace

const std::string& why_no_trees() { return plugin().problem; }

BoosterDump train_booster(std::span<const float> rows, std::size_t n_features, std::span<const float> targets,
                          std::span<const float> weights, const BoosterOptions& options) {
  BoosterDump dump;
  if (plugin().train == nullptr) {
    dump.problem = plugin().problem;
    return dump;
  }
  const StepcastBoosterJob job{
      .rows = rows.data(),
      .n_rows = targets.size(),
      .n_features = n_features,
      .targets = targets.data(),
      .weights = weights.empty() ? nullptr : weights.data(),
      .rounds = options.rounds,
      .depth = options.depth,
      .leaves = options.leaves,
      .forest = options.forest ? 1 : 0,
      .learning_rate = options.learning_rate,
      .row_sample = options.row_sample,
      .column_sample = options.column_sample,
      .min_child_weight = options.min_child_weight,
      .lambda = options.lambda,
      .seed = options.seed,
      .receiver = &dump,
      .take_tree = [](void* to,
                      const char* json) { static_cast<BoosterDump*>(to)->trees.emplace_back(json); },
      .take_predictions =
          [](void* to, const float* values, std::uint64_t n) {
            static_cast<BoosterDump*>(to)->predictions.assign(values, values + n);
          }};
  if (const char* problem = plugin().train(&job)) dump.problem = problem;
  return dump;
}

}  // namespace stepcast::detail
