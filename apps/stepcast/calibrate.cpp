// stepcast calibrate: reads measurements and writes a platform file.

#include "calibrate.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "progress.h"

namespace stepcast::cli {

void PlatformCalibration::add_platform(CLI::App& app, const std::string& platform,
                                       const std::string& output_file) {
  app.add_option("--platform", base, platform)->required();
  add_output_option(app, "-o,--output", output, output_file);
  app.add_option("--name", name, "name of the new platform (default: of the file)");
}

void PlatformCalibration::add_origin(CLI::App& app, std::string_view of, std::string_view made,
                                     const std::string& example) {
  app.add_option("--document", document, fmt::format("source of the {}, for the provenance", of));
  app.add_option("--date", date, fmt::format("date when they were {}: 2024, 2024-05 or 2024-05-31", made));
  app.add_option("--software", software, example);
}

void PlatformCalibration::add_force(CLI::App& app) {
  app.add_flag("--force", force, "accept measurements that cannot be of this platform or that no model fits");
}

Provenance PlatformCalibration::provenance() const {
  return {.source = FigureSource::fitted,
          .document = document.empty() ? names_of(files) : document,
          .date = date,
          .software = software};
}

void PlatformCalibration::answer(const std::string& answer_json, const ReportDocument& shown,
                                 const PlatformOutput& to) const {
  print("{}", json ? answer_json : report_text(shown, terminal_columns()));
  if (!json && !output.empty()) print("\n{}\n", to.note());
}

Verb calibrate_verb() {
  return {"calibrate", "fit the parameters of a platform file to measurements", [](CLI::App& app) -> Action {
            const std::vector<Calibration> kinds = {
                collectives_calibration(),     kernels_calibration(),    generic_kernels_calibration(),
                related_systems_calibration(), iterations_calibration(), overheads_calibration(),
                experts_calibration()};
            auto chosen = std::make_shared<Action>();
            for (const Calibration& kind : kinds) {
              CLI::App* sub = app.add_subcommand(kind.name, kind.summary);
              Action action = kind.declare(*sub);
              sub->callback([chosen, name = kind.name, action = std::move(action)] {
                *chosen = [name, action]() -> Result<int> {
                  const ProgressLine progress{"calibrate " + name};
                  return action();
                };
              });
            }
            app.require_subcommand(1);
            return [chosen] { return (*chosen)(); };
          }};
}

}  // namespace stepcast::cli
