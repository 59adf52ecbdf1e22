#include "library.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/stop.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/page.h"

#include "command_line.h"
#include "described.h"
#include "in_process.h"
#include "pipe_arguments.h"
#include "table.h"

namespace stepcast::python {
namespace {

// Results of the last call on this thread.
thread_local std::string kept_text, kept_problem;
thread_local std::vector<std::int64_t> kept_ends;

const char* keep(std::string text, std::size_t* size) {
  kept_text = std::move(text);
  *size = kept_text.size();
  return kept_text.c_str();
}

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A verb on a separate thread, so that the caller can handle signals. The shared state outlives both.
struct RunningVerb {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::stop_source stop;
  std::optional<std::string> said;  // progress that was not passed on yet
  double share = kUnknown;          // of it
  cli::VerbOutcome outcome;
};

struct Run {
  std::shared_ptr<RunningVerb> verb = std::make_shared<RunningVerb>();
  std::thread worker;
};

void work(const std::shared_ptr<RunningVerb>& verb, const std::vector<std::string>& words,
          cli::VerbListener listener, bool listens) {
  listener.stop = verb->stop.get_token();
  if (listens) {
    listener.progress = [verb](std::string_view what, std::optional<double> share) {
      {
        const std::scoped_lock lock{verb->mutex};
        if (verb->stop.stop_requested()) return;  // the result is no longer wanted
        verb->said = std::string{what};
        verb->share = share.value_or(kUnknown);
      }
      verb->changed.notify_all();
    };
  }
  cli::VerbOutcome outcome = cli::run_verb(words, listener);
  {
    const std::scoped_lock lock{verb->mutex};
    verb->outcome = std::move(outcome);
    verb->is_done = true;
  }
  verb->changed.notify_all();
}

std::vector<std::string> texts_of(const char* list, std::size_t size) {
  std::vector<std::string> texts;
  for (std::string_view rest{list, size}; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    texts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return texts;
}

// Sessions with cached platforms and prices: one for each state of the platform files. A session is replaced
// after many answers, which bounds the cache.
std::shared_ptr<const Session> session_for(const std::string& platform) {
  struct Kept {
    std::shared_ptr<const Session> session;
    std::size_t n_answers = 0;
  };
  constexpr std::size_t kMostAnswers = 4096;
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, std::filesystem::file_time_type>, Kept> sessions;
  const char* const folders = std::getenv("STEPCAST_PLATFORMS");
  std::error_code none;
  const bool is_file = platform.find_first_of("/.") != std::string::npos;
  const auto changed =
      is_file ? std::filesystem::last_write_time(platform, none) : std::filesystem::file_time_type{};
  const std::scoped_lock lock{mutex};
  constexpr std::size_t kMost = 64;
  if (sessions.size() >= kMost) sessions.clear();
  Kept& kept = sessions[{folders != nullptr ? folders : "", platform, changed}];
  if (kept.session == nullptr || ++kept.n_answers > kMostAnswers) kept = {std::make_shared<const Session>()};
  return kept.session;
}

// A forecast for Python. If its step does not depend on files, the full forecast is computed only when more
// than the step time is read.
class Answer {
 public:
  explicit Answer(Forecast forecast) : forecast_(std::move(forecast)) {}
  Answer(cli::DescribedStep step, PredictRequest request, std::shared_ptr<const Session> session)
      : open_(Open{std::move(step), std::move(request), std::move(session)}) {}

  Status make(StepTime& time) {
    const auto& [step, request, session] = *open_;
    std::error_code none;
    if (request.measured.empty() && !std::filesystem::exists(request.job.model, none)) {
      STEPCAST_ASSIGN(const std::optional<StepTime> known, session->step_time(request));
      if (known) {
        time = *known;
        return Ok{};
      }
    }
    STEPCAST_TRY(forecast());
    time = {forecast_->step_time_ms, forecast_->step_time_p10_ms, forecast_->step_time_p90_ms};
    return Ok{};
  }

  Result<const Forecast*> forecast() {
    const std::scoped_lock lock{mutex_};
    if (!forecast_) {
      STEPCAST_ASSIGN(forecast_, open_->session->predict(open_->request));
      cli::add_notes(open_->step, *forecast_);
      open_.reset();
    }
    return &*forecast_;
  }

 private:
  struct Open {
    cli::DescribedStep step;
    PredictRequest request;
    std::shared_ptr<const Session> session;
  };
  std::mutex mutex_;
  std::optional<Open> open_;
  std::optional<Forecast> forecast_;
};

void tell(const StepTime& time, double* numbers) {
  numbers[0] = time.step_time_ms;
  numbers[1] = time.step_time_p10_ms;
  numbers[2] = time.step_time_p90_ms;
}

// A forecast of keywords. Null: the command line must read them, and reports what is wrong.
std::unique_ptr<Answer> predict(const std::vector<std::string>& keywords, double* numbers) {
  std::optional<cli::DescribedStep> step = described_step(keywords);
  if (!step) return nullptr;
  Result<PredictRequest> request = cli::request_of(*step);
  if (!request.ok()) return nullptr;
  std::shared_ptr<const Session> session = session_for(request->platform);
  auto answer = std::make_unique<Answer>(std::move(*step), std::move(*request), std::move(session));
  StepTime time;
  const auto begin = std::chrono::steady_clock::now();
  const Status made = answer->make(time);
  numbers[3] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  if (!made.ok()) return nullptr;
  tell(time, numbers);
  return answer;
}

using SharedTable = std::shared_ptr<const Table>;
const Table& table_of(void* table) { return **static_cast<SharedTable*>(table); }

void* (*capsule_pointer)(void*, const char*) = nullptr;

template <class Struct>
void free_capsule(void* capsule, const char* name) {
  auto* const held = static_cast<Struct*>(capsule_pointer(capsule, name));
  if (held == nullptr) return;
  if (held->release != nullptr) held->release(held);
  delete held;
}

}  // namespace
}  // namespace stepcast::python

using namespace stepcast::
    python;  // NOLINT(google-build-using-namespace): the functions below are all of the file
namespace cli = stepcast::cli;

int stepcast_main(int argc, char** argv) { return cli::run_program(argc, argv); }

const char* stepcast_version_text() { return stepcast::version().data(); }
const char* stepcast_problem(size_t* size) {
  *size = kept_problem.size();
  return kept_problem.c_str();
}

void* stepcast_run_new(const char* words, size_t size, int tables, int listens, const char* folders,
                       size_t folders_size) {
  auto run = std::make_unique<Run>();
  cli::VerbListener listener;
  listener.wants_tables = tables != 0;
  if (folders != nullptr) {  // a server: it receives many requests, and platform files may change
    listener.reads_only_in.emplace();
    for (std::string& folder : texts_of(folders, folders_size))
      listener.reads_only_in->emplace_back(std::move(folder));
    listener.session = [](const std::string& platform) {
      const bool ships =
          platform.find_first_of("/.") == std::string::npos && std::getenv("STEPCAST_PLATFORMS") == nullptr;
      return ships ? session_for(platform) : std::make_shared<const stepcast::Session>();
    };
  }
  run->worker = std::thread{work, run->verb, texts_of(words, size), std::move(listener), listens != 0};
  return run.release();
}

int stepcast_run_wait(void* run, int milliseconds) {
  RunningVerb& verb = *static_cast<Run*>(run)->verb;
  std::unique_lock lock{verb.mutex};
  verb.changed.wait_for(lock, std::chrono::milliseconds{milliseconds},
                        [&] { return verb.is_done || verb.said; });
  return verb.said ? 1 : verb.is_done ? 2 : 0;
}

const char* stepcast_run_said(void* run, double* share, size_t* size) {
  RunningVerb& verb = *static_cast<Run*>(run)->verb;
  const std::scoped_lock lock{verb.mutex};
  *share = verb.share;
  return keep(std::exchange(verb.said, std::nullopt).value_or(""), size);
}

int stepcast_run_code(void* run) { return static_cast<Run*>(run)->verb->outcome.code; }
const char* stepcast_run_output(void* run, size_t* size) {
  return keep(std::move(static_cast<Run*>(run)->verb->outcome.output), size);
}
const char* stepcast_run_error(void* run, size_t* size) {
  return keep(static_cast<Run*>(run)->verb->outcome.error, size);
}

const char* stepcast_run_table_name(void* run, size_t number, size_t* size) {
  const auto& tables = static_cast<Run*>(run)->verb->outcome.tables;
  if (number >= tables.size()) return nullptr;
  return keep(std::next(tables.begin(), static_cast<std::ptrdiff_t>(number))->first, size);
}

void* stepcast_run_table(void* run, size_t number) {
  const auto& tables = static_cast<Run*>(run)->verb->outcome.tables;
  const std::string& csv = std::next(tables.begin(), static_cast<std::ptrdiff_t>(number))->second;
  return stepcast_table_new(csv.data(), csv.size());
}

// Called after an interrupt, or an exception in a callback. The work is asked to stop, which takes
// milliseconds. Work that does not stop is abandoned, so that Ctrl-C never hangs.
void stepcast_run_free(void* run) {
  const std::unique_ptr<Run> owned{static_cast<Run*>(run)};
  constexpr std::chrono::seconds kPatience{1};
  RunningVerb& verb = *owned->verb;
  verb.stop.request_stop();
  std::unique_lock lock{verb.mutex};
  const bool has_ended = verb.changed.wait_for(lock, kPatience, [&] { return verb.is_done; });
  lock.unlock();
  has_ended ? owned->worker.join() : owned->worker.detach();
}

void* stepcast_predict(const char* keywords, size_t size, double* numbers) {
  return predict(texts_of(keywords, size), numbers).release();
}

void* stepcast_forecast_new(const char* json, size_t size, double* numbers) {
  stepcast::Result<stepcast::Forecast> forecast = stepcast::forecast_from_json({json, size});
  if (!forecast.ok()) {
    kept_problem = forecast.error().message();
    return nullptr;
  }
  tell({forecast->step_time_ms, forecast->step_time_p10_ms, forecast->step_time_p90_ms}, numbers);
  return std::make_unique<Answer>(*std::move(forecast)).release();
}

const char* stepcast_forecast_text(void* forecast, int kind, size_t* size) {
  const stepcast::Result<const stepcast::Forecast*> made = static_cast<Answer*>(forecast)->forecast();
  if (!made.ok()) {
    kept_problem = made.error().message();
    return nullptr;
  }
  const stepcast::Forecast& f = **made;
  if (kind == 'j') return keep(stepcast::forecast_json(f), size);
  if (kind == 't') return keep(stepcast::forecast_text(f), size);
  return keep(stepcast::report_fragment(stepcast::forecast_document(f)), size);
}

void stepcast_forecast_free(void* forecast) { delete static_cast<Answer*>(forecast); }

const char* stepcast_sweep_points(const char* text, const char* name, const char* folder, size_t* size) {
  const stepcast::Result<stepcast::SweepSpec> spec = stepcast::parse_sweep(text, name, folder);
  if (!spec.ok()) {
    kept_problem = spec.error().message();
    return nullptr;
  }
  std::string lines;
  for (const stepcast::SweepPoint& point : spec->points) lines += point.json() + '\0';
  return keep(std::move(lines), size);
}

void* stepcast_session_new() { return new stepcast::Session; }
void stepcast_session_free(void* session) { delete static_cast<stepcast::Session*>(session); }

const char* stepcast_sweep_rows(void* session, const char* point, const char* folder, void* stop, int* kind,
                                size_t* size) {
  const auto* const source = static_cast<const std::stop_source*>(stop);
  const stepcast::StopScope scope{source != nullptr ? source->get_token() : std::stop_token{}};
  *kind = 2;
  const stepcast::Result<stepcast::SweepSpec> spec = stepcast::parse_sweep(point, "a point", folder);
  if (!spec.ok()) {
    kept_problem = spec.error().message();
    return nullptr;
  }
  *kind = 1;
  std::string rows;
  for (const stepcast::SweepPoint& one : spec->points) {
    stepcast::Result<std::string> row = static_cast<const stepcast::Session*>(session)->run(one);
    const bool is_stopped = stepcast::is_stop_requested();
    if (is_stopped || !row.ok()) {
      kept_problem = is_stopped ? "interrupted" : row.error().message();
      return nullptr;
    }
    rows += *row + '\0';
  }
  return keep(std::move(rows), size);
}

void* stepcast_stop_new() { return new std::stop_source; }
void stepcast_stop_request(void* stop) { static_cast<std::stop_source*>(stop)->request_stop(); }
void stepcast_stop_free(void* stop) { delete static_cast<std::stop_source*>(stop); }

void* stepcast_table_new(const char* csv, size_t size) {
  return new SharedTable{std::make_shared<const Table>(Table::from_csv({csv, size}))};
}
void stepcast_table_free(void* table) { delete static_cast<SharedTable*>(table); }
size_t stepcast_table_rows(void* table) { return table_of(table).n_rows; }
const char* stepcast_table_csv(void* table, size_t* size) { return keep(table_of(table).csv(), size); }

const char* stepcast_table_column_name(void* table, size_t column, size_t* size) {
  const std::vector<Column>& columns = table_of(table).columns;
  return column < columns.size() ? keep(columns[column].name, size) : nullptr;
}

int stepcast_table_column(void* table, size_t column, const void** values, const uint8_t** valid) {
  const Column& one = table_of(table).columns[column];
  *valid = one.valid.data();
  *values = std::visit([](const auto& all) -> const void* { return all.data(); }, one.values);
  return static_cast<int>(one.values.index());
}

const char* stepcast_table_texts(void* table, size_t column, const int64_t** ends, size_t* size) {
  std::string text;
  kept_ends.clear();
  for (const std::string& one : std::get<std::vector<std::string>>(table_of(table).columns[column].values)) {
    text += one;
    kept_ends.push_back(static_cast<std::int64_t>(text.size()));
  }
  *ends = kept_ends.data();
  return keep(std::move(text), size);
}

void* stepcast_table_schema_new(void* table) {
  auto schema = std::make_unique<ArrowSchema>();
  export_schema(table_of(table), *schema);
  return schema.release();
}

void* stepcast_table_stream_new(void* table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  export_stream(*static_cast<SharedTable*>(table), *stream);
  return stream.release();
}

void stepcast_capsules(void* (*get_pointer)(void*, const char*)) { capsule_pointer = get_pointer; }
void stepcast_free_schema_capsule(void* capsule) { free_capsule<ArrowSchema>(capsule, "arrow_schema"); }
void stepcast_free_stream_capsule(void* capsule) {
  free_capsule<ArrowArrayStream>(capsule, "arrow_array_stream");
}
