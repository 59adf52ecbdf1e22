// stepcast-lab laws: checks laws that no prediction from traces may break, on all traces of a folder.

#include <filesystem>
#include <memory>

#include "lab/program/lab_verbs.h"
#include "lab/what_if_laws.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::filesystem::path data;
  LawOptions laws;
  bool only_mutants = false;
};

Result<int> run(const Options& options) {
  LawOptions how = options.laws;
  if (options.only_mutants) {
    how.recorded = false;
    how.mutants = true;
  }
  STEPCAST_ASSIGN(const WhatIfLaws laws, check_what_if_laws(options.data, how));
  print("{}", what_if_laws_text(laws));
  return kSuccess;
}

}  // namespace

Verb lab_laws_verb() {
  return {"laws", "look for impossible or non-monotonic predictions: all traces, all what-ifs",
          [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("--data", options->data, "folder of traces")->required();
            app.add_option("--threads", options->laws.threads, "0: one per hardware thread");
            app.add_flag("--mutants", options->laws.mutants, "also mutants of every trace set");
            app.add_flag("--only-mutants", options->only_mutants, "mutants alone");
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
