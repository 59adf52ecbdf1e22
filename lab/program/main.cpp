// stepcast-lab: measures the accuracy of stepcast, and runs the published methods for comparison.
#include <string_view>

#include "command_line.h"
#include "lab/program/lab_verbs.h"
#include "verbs.h"

namespace {

// `stepcast validate` and `stepcast reference` run this program under the name `stepcast` (apps/stepcast/laboratory.cpp).
constexpr std::string_view kForwarded = "stepcast";

}  // namespace

int main(int argc, char** argv) {
  using stepcast::cli::lab_laws_verb, stepcast::cli::lab_predict_verb, stepcast::cli::lab_published_runs_verb,
      stepcast::cli::lab_reference_verb, stepcast::cli::lab_validate_verb;
  const bool forwarded = argc > 0 && argv[0] == kForwarded;
  const stepcast::cli::Program program{
      .name = forwarded ? "stepcast" : "stepcast-lab",
      .description = "stepcast-lab measures stepcast: its forecasts against measured data and other methods.",
      .footer =
          "Exit codes: 0 done, 1 the machine failed, 2 the input cannot be used.\n"
          "  stepcast-lab validate replay --data examples/dlrm_4gpu\n"
          "  stepcast-lab predict --trace examples/dlrm_4gpu --published-algorithm",
      .verbs = {lab_validate_verb(), lab_predict_verb(), lab_reference_verb(), lab_laws_verb(),
                lab_published_runs_verb()}};
  return stepcast::cli::run_command_line(program, argc, argv);
}
