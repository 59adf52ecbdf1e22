// stepcast-lab laws: what no prediction from traces may break, over all traces of a folder.

#include <filesystem>
#include <memory>

#include "lab/program/lab_verbs.h"
#include "lab/what_if_laws.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::filesystem::path data;
  unsigned threads = 0;
};

Result<int> run(const Options& options) {
  STEPCAST_ASSIGN(const WhatIfLaws laws, check_what_if_laws(options.data, options.threads));
  print("{}", what_if_laws_text(laws));
  return kSuccess;
}

}  // namespace

Verb lab_laws_verb() {
  return {"laws", "look for impossible or non-monotonic predictions: all traces, all what-ifs",
          [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("--data", options->data, "folder of traces")->required();
            app.add_option("--threads", options->threads, "0: one per hardware thread");
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
