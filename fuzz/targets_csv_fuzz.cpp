// Any bytes as a file of targets and as one of published errors: an error of one line, or rows that can be held
// against a result without harm.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lab/kernel_sets.h"
#include "lab/suite.h"
#include "lab/target.h"

namespace {
void require(bool condition) {
  if (!condition) std::abort();
}
void require_sentence(const stepcast::Error& error) {
  require(!error.message().empty() && error.message().find('\n') == std::string::npos);
}

stepcast::SuiteResult made_result() {
  stepcast::SuiteResult result;
  result.suite = "kernels";
  stepcast::TestScore test;
  test.test = "t";
  stepcast::SetScore set;
  set.set = "s";
  set.group = "g";
  set.rows = {{"row", 100, 110, 90, 120}};
  set.extras = {{"x", 1}};
  test.sets = {set};
  test.finish();
  result.tests = {test};
  return result;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  static const SuiteResult result = made_result();
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const Result<std::vector<TargetRow>> rows = parse_targets(text, "fuzz");
  if (rows.ok()) {
    for (const TargetRow& row : *rows)
      require(row.target.must || row.target.aim || row.target.from <= row.target.to);
    for (const Target& target : targets_of(result, *rows)) {
      require(!target.what.empty() && std::isfinite(target.value));
      (void)target.met();
      (void)target.aim_met();
    }
  } else {
    require_sentence(rows.error());
  }
  const Result<PublishedErrors> errors = PublishedErrors::parse(text, "fuzz");
  if (errors.ok()) {
    const auto found = errors->mape_percent("A100", "bmm", Direction::forward);
    require(!found || *found > 0);
  } else {
    require_sentence(errors.error());
  }
  return 0;
}
