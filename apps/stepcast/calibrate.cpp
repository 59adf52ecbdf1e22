// stepcast calibrate: measurements in, platform file out.

#include "calibrate.h"

#include <memory>
#include <utility>
#include <vector>

#include "progress.h"

namespace stepcast::cli {

Verb calibrate_verb() {
  return {"calibrate", "turn measurements into the fitted parameters of a platform file",
          [](CLI::App& app) -> Action {
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
