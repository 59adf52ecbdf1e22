#include "stepcast/base/version.h"

#include "verbs.h"

namespace stepcast::cli {

Verb version_verb() {
  return {"version", "print the version", [](CLI::App&) {
            return [] {
              print("stepcast {}\n", version());
              return Result<int>{kSuccess};
            };
          }};
}

}  // namespace stepcast::cli
