// stepcast._stepcast: what the Python package calls. Nothing here is for users of the package.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
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

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/page.h"

#include "described.h"
#include "in_process.h"
#include "sweeps.h"
#include "table.h"

namespace stepcast::python {
namespace {

namespace nb = nanobind;

// A verb on a thread of its own, so that the one that waits can look after signals. What both touch outlives either.
struct RunningVerb {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::stop_source stop;
  std::optional<std::string> said;  // and not passed on yet
  cli::VerbOutcome outcome;
};

using Outcome =
    std::tuple<int, std::string, std::string, std::map<std::string, std::shared_ptr<const Table>>>;

// After `most_s` seconds it fails. `reads_only`: it fails where it would write a file.
Outcome run(std::vector<std::string> words, bool tables, const std::optional<nb::callable>& progress,
            bool reads_only, std::optional<double> most_s) {
  auto verb = std::make_shared<RunningVerb>();
  const bool listens = progress.has_value();
  std::thread worker{[verb, words = std::move(words), tables, listens, reads_only] {
    cli::VerbListener listener;
    listener.reads_only = reads_only;
    listener.wants_tables = tables;
    listener.stop = verb->stop.get_token();
    if (listens) {
      listener.progress = [verb](std::string_view what) {
        {
          const std::scoped_lock lock{verb->mutex};
          if (verb->stop.stop_requested()) return;  // nobody waits any more
          verb->said = std::string{what};
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
  }};
  // After an interrupt, or where the callback raises: the work is asked to end, which it does within milliseconds. What
  // does not is left to itself, so that Ctrl-C never hangs.
  struct End {
    RunningVerb& verb;
    std::thread& worker;
    ~End() {
      if (!worker.joinable()) return;
      constexpr std::chrono::seconds kPatience{1};
      verb.stop.request_stop();
      const nb::gil_scoped_release others_run;
      std::unique_lock lock{verb.mutex};
      const bool has_ended = verb.changed.wait_for(lock, kPatience, [&] { return verb.is_done; });
      lock.unlock();
      has_ended ? worker.join() : worker.detach();
    }
  } const end{*verb, worker};
  constexpr std::chrono::milliseconds kLookAfterSignals{50};
  const auto begin = std::chrono::steady_clock::now();
  for (bool is_done = false; !is_done;) {
    std::optional<std::string> said;
    {
      const nb::gil_scoped_release others_run;
      std::unique_lock lock{verb->mutex};
      verb->changed.wait_for(lock, kLookAfterSignals, [&] { return verb->is_done || verb->said; });
      is_done = verb->is_done;
      said = std::exchange(verb->said, std::nullopt);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!is_done && most_s &&
        std::chrono::steady_clock::now() - begin > std::chrono::duration<double>{*most_s})
      return Outcome{1, std::string{}, fmt::format("took longer than {:g} s", *most_s), {}};
    if (said) (*progress)(*said);
  }
  {
    const nb::gil_scoped_release others_run;
    worker.join();
  }
  std::map<std::string, std::shared_ptr<const Table>> found;
  for (const auto& [name, csv] : verb->outcome.tables) {
    found.emplace(name, std::make_shared<const Table>(Table::from_csv(csv)));
  }
  return {verb->outcome.code, std::move(verb->outcome.output), std::move(verb->outcome.error),
          std::move(found)};
}

// Sessions keep platforms and prices; one for every state of the files that a platform can come from.
std::shared_ptr<const Session> session_for(const std::string& platform) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, std::filesystem::file_time_type>,
                  std::shared_ptr<const Session>>
      sessions;
  const char* const folders = std::getenv("STEPCAST_PLATFORMS");
  std::error_code none;
  const bool is_file = platform.find_first_of("/.") != std::string::npos;
  const auto changed =
      is_file ? std::filesystem::last_write_time(platform, none) : std::filesystem::file_time_type{};
  const std::scoped_lock lock{mutex};
  constexpr std::size_t kMost = 64;
  if (sessions.size() >= kMost) sessions.clear();
  auto& session = sessions[{folders != nullptr ? folders : "", platform, changed}];
  if (session == nullptr) session = std::make_shared<const Session>();
  return session;
}

// Nothing: the command line reads these keywords, and says what is wrong with them. `session_us` is what the session takes,
// as it would from C++.
std::unique_ptr<Forecast> predict_timed(const nb::dict& keywords, double& session_us) {
  const std::optional<cli::DescribedStep> step = described_step(keywords);
  if (!step) return nullptr;
  const nb::gil_scoped_release others_run;
  const Result<PredictRequest> request = cli::request_of(*step);
  if (!request.ok()) return nullptr;
  const std::shared_ptr<const Session> session = session_for(request->platform);
  const auto begin = std::chrono::steady_clock::now();
  Result<Forecast> forecast = session->predict(*request);
  session_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  if (!forecast.ok()) return nullptr;
  cli::add_notes(*step, *forecast);
  return std::make_unique<Forecast>(std::move(*forecast));
}

std::unique_ptr<Forecast> predict(const nb::dict& keywords) {
  double ignored_us = 0;
  return predict_timed(keywords, ignored_us);
}

Forecast read_forecast(const std::string& json) {
  Result<Forecast> forecast = forecast_from_json(json);
  if (!forecast.ok()) throw nb::value_error(forecast.error().message().c_str());
  return *std::move(forecast);
}

std::string html_of(const Forecast& forecast) { return report_fragment(forecast_document(forecast)); }

template <class Struct>
nb::capsule capsule_of(Struct* exported, const char* name) {
  return {exported, name, [](void* pointer) noexcept {
            auto* const held = static_cast<Struct*>(pointer);
            if (held->release != nullptr) held->release(held);
            delete held;
          }};
}

nb::object list_of(const Column& column) {
  nb::list list;
  std::visit(
      [&](const auto& values) {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (column.valid[i] == 0) {
            list.append(nb::none());
          } else if constexpr (std::is_same_v<Value, std::uint8_t>) {
            list.append(nb::bool_(values[i] != 0));
          } else {
            list.append(nb::cast(values[i]));
          }
        }
      },
      column.values);
  return list;
}

}  // namespace
}  // namespace stepcast::python

NB_MODULE(_stepcast, module) {
  using namespace stepcast::python;  // NOLINT(google-build-using-namespace): the body of the module
  namespace nb = nanobind;
  nb::set_leak_warnings(false);  // interrupted calls and interpreters that end early keep objects

  module.def("version", [] { return std::string{stepcast::version()}; });
  module.def("run", run, nb::arg("words"), nb::arg("tables"), nb::arg("progress").none(),
             nb::arg("reads_only") = false, nb::arg("most_s").none() = nb::none());
  module.def("predict", predict, nb::arg("keywords"));
  // For the bench: with the microseconds that the session took.
  module.def(
      "predict_timed",
      [](const nb::dict& keywords) {
        double session_us = 0;
        std::unique_ptr<stepcast::Forecast> forecast = predict_timed(keywords, session_us);
        return std::pair{std::move(forecast), session_us};
      },
      nb::arg("keywords"));
  module.def("sweep_points", sweep_points, nb::arg("text"), nb::arg("name"), nb::arg("folder"));
  module.def("sweep_rows", sweep_rows, nb::arg("lines"), nb::arg("folder"), nb::arg("stop") = nb::none());
  module.def("read_forecast", read_forecast, nb::arg("json"));

  nb::class_<std::stop_source>(module, "Stop").def(nb::init<>()).def("request", [](std::stop_source& stop) {
    stop.request_stop();
  });

  nb::class_<stepcast::Forecast>(module, "Forecast")
      .def("json", [](const stepcast::Forecast& f) { return stepcast::forecast_json(f); })
      .def("text", [](const stepcast::Forecast& f) { return stepcast::forecast_text(f); })
      .def("html", html_of)
      .def_ro("step_time_ms", &stepcast::Forecast::step_time_ms)
      .def_ro("step_time_p10_ms", &stepcast::Forecast::step_time_p10_ms)
      .def_ro("step_time_p90_ms", &stepcast::Forecast::step_time_p90_ms);

  nb::class_<Table>(module, "Table")
      .def_static(
          "from_csv",
          [](const std::string& text) { return std::make_shared<const Table>(Table::from_csv(text)); })
      .def("__len__", [](const Table& t) { return t.n_rows; })
      .def_prop_ro("column_names",
                   [](const Table& t) {
                     std::vector<std::string> names;
                     for (const Column& column : t.columns) names.push_back(column.name);
                     return names;
                   })
      .def("column",
           [](const Table& t, const std::string& name) {
             for (const Column& column : t.columns) {
               if (column.name == name) return list_of(column);
             }
             throw nb::key_error(name.c_str());
           })
      .def("csv", &Table::csv)
      .def("__arrow_c_schema__",
           [](const Table& t) {
             auto* const schema = new ArrowSchema{};
             export_schema(t, *schema);
             return capsule_of(schema, "arrow_schema");
           })
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<const Table>& t, const nb::object&) {
            auto* const stream = new ArrowArrayStream{};
            export_stream(t, *stream);
            return capsule_of(stream, "arrow_array_stream");
          },
          nb::arg("requested_schema") = nb::none());
}
