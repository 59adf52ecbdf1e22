// Verbs run inside another program, which gets as values what the command line prints: the Python package does.
//
//   const VerbOutcome outcome = run_verb({"plan", "--model", "gpt3-175b", "--gpus", "64", "--json"}, {.wants_tables = true});
//   outcome.code, outcome.output, outcome.error, outcome.tables["priced"]
//
// Nothing is printed, and nothing is kept from one call to the next but what the listener's sessions keep. Any number of threads
// may run verbs.
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
  int code = 0;        // the exit code (verbs.h)
  std::string output;  // what goes to standard output
  std::string error;   // one line without "stepcast: error: "; empty where `code` is not an error
  std::map<std::string, std::string> tables;  // as CSV, by name; see offer_table()
};

struct VerbListener {
  bool wants_tables = false;
  // A verb reads what ships and files in these folders, and fails where it is asked to write one.
  std::optional<std::vector<std::filesystem::path>> reads_only_in{};
  // What is being done, as a terminal would show it. Called from any thread, one at a time.
  std::function<void(std::string_view)> progress;
  // Asks the verb to end (base/stop.h), which then fails with "interrupted"; where it never can, the caller's scope does.
  std::stop_token stop{};
  // Platforms and prices that are kept for the next question about a platform; without it every verb loads its own.
  std::function<std::shared_ptr<const Session>(const std::string& platform)> session{};
};

// `words` are those behind the name of the program, which is `stepcast` where it is not given.
[[nodiscard]] VerbOutcome run_verb(const Program& program, const std::vector<std::string>& words,
                                   const VerbListener& listener = {});
[[nodiscard]] VerbOutcome run_verb(const std::vector<std::string>& words, const VerbListener& listener = {});

// What a verb tells the caller of run_verb() on this thread; null on a command line.
struct VerbSink {
  const VerbListener* listener = nullptr;
  VerbOutcome* outcome = nullptr;
};
[[nodiscard]] const VerbSink* verb_sink();
// That of the listener, or one of this question.
[[nodiscard]] std::shared_ptr<const Session> session_for_question(const std::string& platform);

// A verb offers what is too long for its output; `csv` is called where somebody takes it.
void offer_table(const std::string& name, const std::function<std::string()>& csv);

}  // namespace stepcast::cli
