// The verbs of `stepcast-lab`, one file for each; apps/stepcast/verbs.h explains how to write one.
#pragma once

#include "verbs.h"

namespace stepcast::cli {

Verb lab_validate_verb();
Verb lab_reference_verb();
Verb lab_predict_verb();
Verb lab_laws_verb();
Verb lab_published_runs_verb();

}  // namespace stepcast::cli
