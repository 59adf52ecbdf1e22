#include "stepcast/sweep/measured_words.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/sweep/sweep_keys.h"
#include "stepcast/sweep/sweep_question.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {
namespace {

constexpr std::string_view kExpected =
    "`5.2s` or milliseconds, also behind a layout, as in `gpus=64 tp=8 pp=2=4120`";

// The start of every error of this file: the flag and at most 80 characters of the given text.
Error at_measured(std::string_view found) {
  return Error::at("", "--measured").found(fmt::format("`{}`", found.substr(0, 80)));
}

// Writes the layout as a sweep spec with one point, so that parse_sweep() checks it as it checks any sweep. A
// key without a value is a switch and becomes `true`. Values that read as numbers become JSON numbers, all
// others strings.
Result<std::string> spec_of(std::string_view words) {
  JsonWriter json;
  json.begin_object();
  json.field("mode", "predict");
  for (const std::string_view word : split(words, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    const std::string key = sweep_key(word.substr(0, equals));
    if (!is_sweep_key(key, SweepMode::predict) || key == "measured")
      return at_measured(word).expected("words of a layout").advice(advice_for_key(key, SweepMode::predict));
    json.key(key);
    const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    if (equals == std::string_view::npos)
      json.value(true);
    else if (const auto number = scan<double>(value))
      json.value(*number);
    else
      json.value(value);
  }
  json.end_object();
  return std::move(json).text();
}

}  // namespace

Result<SaidStep> parse_measured_words(std::string_view text, const Job& asked) {
  // The time is behind the last `=`. Everything in front of it is the layout.
  const std::size_t last = text.rfind('=');
  std::string_view ms = last == std::string_view::npos ? text : text.substr(last + 1);
  double ms_per_unit = 1;
  if (ms.ends_with("ms")) {
    ms.remove_suffix(2);
  } else if (ms.ends_with('s')) {
    ms.remove_suffix(1);
    ms_per_unit = 1e3;
  }
  const auto time = scan<double>(ms);
  const std::string_view words = last == std::string_view::npos ? "" : text.substr(0, last);
  if (!time || !(*time > 0)) return at_measured(text).expected(std::string{kExpected});
  // "tp=8" alone is read as a layout without a time, not as 8 ms of an unknown setting.
  if (!words.empty() && words.find('=') == std::string_view::npos &&
      words.find(' ') == std::string_view::npos)
    return at_measured(text).expected(std::string{kExpected}).advice("add the milliseconds");
  STEPCAST_ASSIGN(const std::string spec, spec_of(words));
  SaidStep step{asked, *time * ms_per_unit};
  if (words.find_first_not_of(' ') == std::string_view::npos) return step;
  step.is_asked = false;
  STEPCAST_ASSIGN(const SweepSpec one, parse_sweep(spec, "--measured"));
  if (one.points.size() != 1) return at_measured(text).expected(std::string{kExpected});
  STEPCAST_ASSIGN(const SweepQuestion said, question_of(one.points.front()));
  // A measured step must be of the platform that is being forecast, so keys that change the platform or the
  // kind of question are rejected.
  for (const char* key : {"platform", "what_if", "pools", "zones", "nodes", "config", "command_line", "rl"})
    if (one.points.front().find(key) != nullptr)
      return at_measured(text)
          .expected("words of a layout on the platform that is asked for")
          .advice(fmt::format("leave out {}", key));
  // The layout overrides the settings of the job. A model by name also replaces a model that was read from a
  // file.
  Job& job = step.job;
  if (!said.job.model.empty()) {
    job.model = said.job.model;
    job.transformer.reset();
  }
  if (said.job.framework) job.framework = said.job.framework;
  if (said.n_gpus) job.n_gpus = said.n_gpus;
  job.settings = over(job.settings, said.job.settings);
  return step;
}

}  // namespace stepcast
