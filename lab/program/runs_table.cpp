// stepcast-lab published-runs: writes the errors of our forecasts of published runs, as the table shipped with the library.

#include <filesystem>
#include <memory>
#include <string>

#include "lab/program/lab_verbs.h"
#include "lab/suites.h"

namespace stepcast::cli {

Verb lab_published_runs_verb() {
  return {"published-runs", "print src/stepcast/analyze/tables/published_runs.csv", [](CLI::App& app) {
            auto data = std::make_shared<std::filesystem::path>();
            app.add_option("--data", *data, "folder of the suite `iterations`")->required();
            return [data]() -> Result<int> {
              STEPCAST_ASSIGN(const std::string table, published_runs_table(*data));
              print("{}", table);
              return kSuccess;
            };
          }};
}

}  // namespace stepcast::cli
