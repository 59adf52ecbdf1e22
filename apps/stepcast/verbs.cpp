#include "verbs.h"

namespace stepcast::cli {

std::vector<Verb> builtin_verbs() {
  return {
#define STEPCAST_VERB(name) name##_verb(),
#include "verbs.def"  // NOLINT(bugprone-suspicious-include): a list that is read twice
#undef STEPCAST_VERB
  };
}

}  // namespace stepcast::cli
