#include "stepcast/report/result_reader.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/trace_forecast.h"
#include "stepcast/base/byte_source.h"
#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/html/page.h"

namespace stepcast {
namespace {

// The list of accepted inputs in error messages.
constexpr std::string_view kWhatHoldsAStep =
    "output of predict, replay or inspect of a log with --json, an HTML report, or a training log";

// The text of a member; empty if it is missing or not a text.
std::string_view text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->is_text() ? std::string_view{value->text()} : std::string_view{};
}

// The forecast of a log that `inspect --json` printed. Rates and layout are optional.
Result<Forecast> of_inspected_log(const JsonValue& log, const std::string& name) {
  const auto number = [&](std::string_view key) {
    const JsonValue* value = log.find(key);
    return value != nullptr && value->is_number() && value->number() > 0 ? value->number() : 0;
  };
  Forecast f;
  f.kind = "log";
  f.traces = std::string{text_of(log, "file")};
  f.step_time_ms = number("step_time_ms");
  if (f.step_time_ms <= 0)
    return Error::at(name, "", "the log has no step time").expected(std::string{kWhatHoldsAStep});
  f.step_time_p10_ms = number("step_time_p10_ms");
  f.step_time_p90_ms = number("step_time_p90_ms");
  f.source = EstimateSource::measured;
  if (const std::string_view model = text_of(log, "model"); !model.empty()) f.model = std::string{model};
  if (const std::string_view gpu = text_of(log, "gpu"); !gpu.empty()) f.gpu = std::string{gpu};
  constexpr double kMost = 1e9;
  if (const double n = number("n_gpus"); n < kMost) f.n_gpus = static_cast<std::uint64_t>(n);
  if (const JsonValue* layout = log.find("layout"); layout != nullptr && layout->is_object()) {
    for (const auto& [key, value] : layout->members()) {
      if (value.is_bool()) f.layout.push_back({key, value.truth()});
      if (value.is_number()) f.layout.push_back({key, value.number()});
      if (value.is_text()) f.layout.push_back({key, value.text()});
    }
  }
  if (const double rate = number("tokens_per_s_per_gpu"); rate > 0) f.throughput.tokens_per_s_per_gpu = rate;
  if (const double rate = number("tflops_per_gpu"); rate > 0) f.throughput.tflops_per_gpu = rate;
  return f;
}

// The step in a JSON document, by the document's schema. Errors distinguish a document of another version of
// stepcast from one without a step.
Result<Forecast> of_json(const JsonValue& root, const std::string& name) {
  const std::string_view schema = text_of(root, "schema");
  const auto member = [&](std::string_view key) -> Result<Forecast> {
    const JsonValue* inner = root.find(key);
    if (inner == nullptr) return Error::at(name, std::string{key}, "is missing");
    return forecast_from_json(*inner, name);
  };
  if (schema == kForecastSchema) return forecast_from_json(root, name);
  if (schema == "stepcast.replay/2") return member("simulated");
  if (schema == "stepcast.log_forecast/1") return member("forecast");
  if (schema == "stepcast.inspect/1") {
    const JsonValue* files = root.find("files");
    if (files != nullptr && files->is_array() && files->items().size() == 1 &&
        text_of(files->items().front(), "format") == "training_log")
      return of_inspected_log(files->items().front(), name);
  }
  const JsonValue* said = root.find("schema");
  const std::string place = fmt::format("line {}", said != nullptr ? said->line() : root.line());
  const std::string_view family = std::string_view{schema}.substr(0, schema.find('/'));
  for (const std::string_view known : {kForecastSchema, std::string_view{"stepcast.replay/2"},
                                       std::string_view{"stepcast.log_forecast/1"}}) {
    if (family == known.substr(0, known.find('/')))
      return Error::at(name, place)
          .found(fmt::format("`{}`, written by another version of stepcast", schema.substr(0, 60)))
          .expected(std::string{known});
  }
  return Error::at(name, place)
      .found(schema.empty()
                 ? std::string{"JSON without a `schema` of stepcast"}
                 : fmt::format("a document `{}`, which does not have exactly one step", schema.substr(0, 60)))
      .expected(std::string{kWhatHoldsAStep});
}

// The position of the first character that is not a blank, behind a byte order mark.
std::size_t first_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text.find_first_not_of(" \t\r\n");
}

// The kinds of content, recognised by the first bytes.
enum class Kind : std::uint8_t { document, log, binary };

// A document begins with "<", "{" or "[". A log may begin with brackets, too, so logs are recognised first.
Kind kind_of(std::string_view beginning) {
  if (beginning.starts_with("\xEF\xBB\xBF")) beginning.remove_prefix(3);
  const std::size_t first = first_of(beginning);
  if (first == std::string_view::npos) return Kind::log;
  const char c = beginning[first];
  if (c != '<' && may_be_training_log(beginning)) return Kind::log;
  return c == '<' || c == '{' || c == '[' ? Kind::document : Kind::binary;
}

// The error for content that is neither a document nor a log.
Error binary(const std::string& name) {
  return Error::at(name, "").found("binary data").expected(std::string{kWhatHoldsAStep});
}

// The work per step as known from the other side of a comparison.
LoggedWork work_beside(const ResultReadOptions& options) {
  LoggedWork work;
  if (options.beside == nullptr) return work;
  work.samples_per_step = options.beside->throughput.samples_per_step;
  work.tokens_per_step = options.beside->throughput.tokens_per_step;
  if (options.beside->n_gpus > 0) work.n_gpus = static_cast<double>(options.beside->n_gpus);
  return work;
}

// The forecast of a log. Error: no step time follows from it.
Result<Forecast> forecast_of(const LoggedRun& run, const std::string& name) {
  if (!run.times.why_no_time.empty()) return Error::at(name, "", run.times.why_no_time);
  return log_forecast(run);
}

}  // namespace

Result<Forecast> parse_result(std::string_view text, const std::string& name) {
  const std::size_t first = first_of(text);
  if (first != std::string_view::npos && text.substr(0, first + 4).find('<') != std::string_view::npos) {
    const std::optional<std::string_view> json = embedded_json_view(text);
    if (!json) {
      return Error::at(name, "")
          .found("HTML without <script type=\"application/json\" id=\"stepcast-json\">")
          .expected("a report written by stepcast");
    }
    // Line numbers in errors are those of the page, so the lines before the JSON are replaced by empty ones.
    const std::string_view before = text.substr(0, static_cast<std::size_t>(json->data() - text.data()));
    std::string lines(static_cast<std::size_t>(std::ranges::count(before, '\n')), '\n');
    return parse_result(lines.append(*json), name);
  }
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, name, forecast_json_limits()));
  if (!root.is_object()) {
    return Error::at(name, fmt::format("line {}", root.line()))
        .found(std::string{root.kind_name()})
        .expected(std::string{kWhatHoldsAStep});
  }
  return of_json(root, name);
}

Result<Forecast> parse_result_or_log(std::string_view text, const std::string& name,
                                     const ResultReadOptions& options) {
  // This many bytes decide the kind of content.
  constexpr std::size_t kBeginning = 4096;
  const Kind kind = kind_of(text.substr(0, kBeginning));
  if (kind == Kind::document) return parse_result(text, name);
  if (kind == Kind::binary) return binary(name);
  STEPCAST_ASSIGN(TrainingLog log, parse_training_log(text, name));
  STEPCAST_ASSIGN(const LoggedRun run, logged_run(std::move(log), {}, work_beside(options)));
  return forecast_of(run, name);
}

Result<Forecast> read_result(const std::filesystem::path& file, const ResultReadOptions& options) {
  std::string beginning(4096, '\0');
  {
    STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
    STEPCAST_ASSIGN(const std::size_t n, source.read(beginning.data(), beginning.size()));
    beginning.resize(n);
  }
  const Kind kind = kind_of(beginning);
  if (kind == Kind::document) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;
    STEPCAST_ASSIGN(const std::string text, read_file(file, kMostBytes));
    return parse_result(text, file.string());
  }
  if (kind == Kind::binary) return binary(file.string());
  STEPCAST_ASSIGN(const LoggedRun run, read_logged_run(file, {}, {}, work_beside(options)));
  return forecast_of(run, file.string());
}

}  // namespace stepcast
