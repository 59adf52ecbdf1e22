// The verbs of `stepcast-lab`, one file each; apps/stepcast/verbs.h says how one is written.
#pragma once

#include "verbs.h"

namespace stepcast::cli {

Verb lab_validate_verb();
Verb lab_reference_verb();
Verb lab_predict_verb();
Verb lab_laws_verb();
Verb lab_published_runs_verb();

}  // namespace stepcast::cli
