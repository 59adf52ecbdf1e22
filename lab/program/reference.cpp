// stepcast-lab reference: writes the tables of models, devices and options known to stepcast as Markdown pages.

#include <memory>
#include <string>

#include <fmt/format.h>

#include "calibration_answers.h"
#include "lab/program/lab_verbs.h"
#include "lab/reference_pages.h"
#include "lab/validation_report.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::string page;
};

std::string page_names() {
  std::string names;
  for (const ReferencePage& page : reference_pages())
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", page.name, page.summary);
  return names;
}

Result<int> run(const Options& options) {
  if (options.page == "validate.json") {
    print("{}", validation_schema());
    return kSuccess;
  }
  for (const AnswerSchema& schema : calibration_schemas()) {
    if (schema.name != options.page) continue;
    print("{}", schema.text());
    return kSuccess;
  }
  const ReferencePage* page = find_reference_page(options.page);
  if (page == nullptr)
    return Error{fmt::format("there is no reference page '{}'", options.page)}.expected(page_names());
  print("{}", page->text());
  return kSuccess;
}

}  // namespace

Verb lab_reference_verb() {
  return {"reference", "print a table of what is known: operators, presets, flags", [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("PAGE", options->page, page_names())->required();
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
