// stepcast models, stepcast platforms: lists built-in names, and the figures of a platform with their sources.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/api/subject.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/text.h"
#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/catalog_document.h"

#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {

namespace {

struct ModelsOptions {
  std::string word;
  bool json = false, names = false, details = false;
};

bool is_meant(const std::string& name, const std::string& word) {
  return spelling_core(name).find(spelling_core(word)) != std::string::npos;
}

Result<int> run_models(const ModelsOptions& options) {
  std::vector<const Preset*> chosen;
  // Listed, lists: for subjects with models that only have names.
  std::vector<std::string> names, listed, lists;
  for (const Preset& preset : presets()) {
    names.push_back(preset.model.name);
    if (is_meant(preset.model.name, options.word) ||
        std::ranges::any_of(preset.aliases, [&](const std::string& n) { return is_meant(n, options.word); }))
      chosen.push_back(&preset);
  }
  for (const Subject& subject : subjects()) {
    if (subject.names == nullptr) continue;
    const std::vector<std::string> all = subject.names();
    names.insert(names.end(), all.begin(), all.end());
    std::ranges::copy_if(all, std::back_inserter(listed),
                         [&](const std::string& name) { return is_meant(name, options.word); });
    lists.push_back(fmt::format("{}: {}.", subject.listed_as, fmt::join(all, ", ")));
  }
  if (chosen.empty() && !listed.empty() && !options.json) {
    for (const std::string& name : listed) print("{}\n", name);
    return kSuccess;
  }
  if (chosen.empty()) {
    const auto near = nearest_word(options.word, names);
    return Error{fmt::format("no model is named `{}`", options.word.substr(0, 60))}.advice(
        near ? fmt::format("did you mean `{}`?", *near) : "`stepcast models` lists all");
  }
  if (options.names) {
    for (const Preset* preset : chosen) print("{}\n", preset->model.name);
    for (const std::string& name : listed) print("{}\n", name);
    return kSuccess;
  }
  const ModelsAnswer models = models_answer(chosen);
  print("{}",
        options.json ? models_json(models) : terminal_text(models_document(models, lists), options.details));
  return kSuccess;
}

struct PlatformsOptions {
  std::string platform;
  bool json = false, names = false, details = false;
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
                                : terminal_text(platforms_document(all), options.details));
    return kSuccess;
  }
  STEPCAST_ASSIGN(const Platform platform, load_platform(options.platform));
  print("{}",
        options.json ? platform_json(platform) : terminal_text(platform_document(platform), options.details));
  return kSuccess;
}

}  // namespace

Verb models_verb() {
  return {"models", "list the models with a preset", [](CLI::App& app) {
            auto options = std::make_shared<ModelsOptions>();
            app.add_option("WORD", options->word,
                           "list only models with this word in their name, e.g. llama");
            app.add_flag("--names", options->names, "print only names, one per line");
            app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
            add_details_flag(app, options->details);
            return [options] { return run_models(*options); };
          }};
}

Verb platforms_verb() {
  return {
      "platforms", "list the shipped platforms, or show one", [](CLI::App& app) {
        auto options = std::make_shared<PlatformsOptions>();
        app.add_option("NAME|FILE", options->platform,
                       "platform to show: a name, alias or file; default: list all");
        app.add_flag("--names", options->names, "print only names, one per line");
        app.add_flag(
            "--json", options->json,
            "print JSON: the list, or the platform file with everything it extends (docs/platform-file.md)");
        add_details_flag(app, options->details);
        return [options] { return run_platforms(*options); };
      }};
}

}  // namespace stepcast::cli
