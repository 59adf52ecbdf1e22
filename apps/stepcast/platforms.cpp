// stepcast platforms: which platforms there are, and what a platform says with the source of every figure.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/platform/platform_file.h"
#include "stepcast/report/catalog_document.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

struct PlatformsOptions {
  std::string platform;
  bool json = false, names = false;
};

std::string listing_names(const PlatformListings& all) {
  std::string out;
  for (const PlatformListing& p : all.platforms) out += p.name + "\n";
  return out;
}

Result<int> run_platforms(const PlatformsOptions& options) {
  if (options.platform.empty()) {
    const std::vector<std::filesystem::path> dirs = platform_search_dirs();
    const PlatformListings all = list_platforms(dirs);
    if (all.platforms.empty() && all.unreadable.empty()) {
      return Error{"no platforms were found"}.advice(
          "set STEPCAST_PLATFORMS to the folder `platforms` of the checkout, or to share/stepcast/platforms "
          "of the "
          "installation");
    }
    print("{}", options.json    ? platforms_json(all)
                : options.names ? listing_names(all)
                                : report_text(platforms_document(all)));
    return kSuccess;
  }
  STEPCAST_ASSIGN(const Platform platform, load_platform(options.platform));
  print("{}", options.json ? platform_json(platform) : report_text(platform_document(platform)));
  return kSuccess;
}

}  // namespace

Verb platforms_verb() {
  return {
      "platforms", "list the shipped platforms, or show one", [](CLI::App& app) {
        auto options = std::make_shared<PlatformsOptions>();
        app.add_option("NAME|FILE", options->platform,
                       "a platform to show: a name or alias, or a file; without it all are listed");
        app.add_flag("--names", options->names, "print names alone, one a line");
        app.add_flag(
            "--json", options->json,
            "print JSON: the list, or the platform file with all that it extends (docs/platform-file.md)");
        return [options] { return run_platforms(*options); };
      }};
}

}  // namespace stepcast::cli
