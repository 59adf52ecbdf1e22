// Runs verbs inside another program, such as the Python package, which gets the printed output as values.
//
//   const VerbOutcome outcome = run_verb({"plan", "--model", "gpt3-175b", "--gpus", "64", "--json"}, {.wants_tables = true});
//   outcome.code, outcome.output, outcome.error, outcome.tables["priced"]
//
// Nothing is printed. Only the sessions of the listener are kept between calls. Verbs may run on several threads.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/api/stepcast.h"

namespace stepcast::cli {

struct Program;

struct VerbOutcome {
  int code = 0;        // exit code (verbs.h)
  std::string output;  // the text of standard output
  std::string error;   // one line without "stepcast: error: "; empty if `code` is not an error
  std::map<std::string, std::string> tables;  // as CSV, by name; see offer_table()
};

struct VerbListener {
  bool wants_tables = false;
  // Restricts reading to built-in files and these folders, and makes writing an error.
  std::optional<std::vector<std::filesystem::path>> reads_only_in{};
  // The current activity, as a terminal would show it, and the finished share of its current part (0 to 1), if
  // known. Called from any thread, never concurrently.
  std::function<void(std::string_view, std::optional<double>)> progress;
  // Stops the verb (base/stop.h), which then fails with "interrupted". Without it the scope of the caller applies.
  std::stop_token stop{};
  // Returns a session with cached platforms and prices. Without it every verb loads its platforms.
  std::function<std::shared_ptr<const Session>(const std::string& platform)> session{};
};

// `words` are the words after the program name. Without `program` it is `stepcast`.
[[nodiscard]] VerbOutcome run_verb(const Program& program, const std::vector<std::string>& words,
                                   const VerbListener& listener = {});
[[nodiscard]] VerbOutcome run_verb(const std::vector<std::string>& words, const VerbListener& listener = {});

// Connects a verb to the caller of run_verb() on this thread; null for a command line.
struct VerbSink {
  const VerbListener* listener = nullptr;
  VerbOutcome* outcome = nullptr;
};
[[nodiscard]] const VerbSink* verb_sink();
// The session of the listener, or a new one.
[[nodiscard]] std::shared_ptr<const Session> session_for_question(const std::string& platform);

// Offers a table that is too long for the output. `csv` is called only if the caller wants tables.
void offer_table(const std::string& name, const std::function<std::string()>& csv);

}  // namespace stepcast::cli
