// stepcast models: the models that are known by name.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/text.h"
#include "stepcast/base/version.h"
#include "stepcast/describe/presets.h"
#include "stepcast/report/text_table.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

using Align = TextTable::Align;

struct Options {
  std::string word;
  bool json = false, names = false;
};

bool is_meant(const Preset& preset, const std::string& word) {
  const auto holds = [&](const std::string& name) {
    return spelling_core(name).find(spelling_core(word)) != std::string::npos;
  };
  if (holds(preset.model.name)) return true;
  for (const std::string& alias : preset.aliases) {
    if (holds(alias)) return true;
  }
  return false;
}

std::string experts_of(const Transformer& model) {
  return model.moe ? fmt::format("{} of {}", model.moe->experts_per_token, model.moe->n_experts) : "";
}

std::string as_json(const std::vector<const Preset*>& chosen) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.models/1").field("version", version());
  json.key("models").begin_array();
  for (const Preset* preset : chosen) {
    const Transformer& m = preset->model;
    json.begin_object().field("name", m.name);
    json.key("aliases").begin_array();
    for (const std::string& alias : preset->aliases) json.value(alias);
    json.end_array();
    json.field("parameters", parameter_count(m).total());
    json.field("active_parameters", active_parameter_count(m));
    json.field("n_layers", m.n_layers).field("hidden_size", m.hidden_size).field("n_heads", m.n_heads);
    json.field("n_kv_heads", m.kv_heads()).field("vocab_size", m.vocab_size);
    json.field("n_experts", m.moe ? m.moe->n_experts : 0).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

std::string as_text(const std::vector<const Preset*>& chosen) {
  TextTable table{{{"model", Align::left},
                   {"parameters\nin billions"},
                   {"of them\nper token"},
                   {"layers"},
                   {"hidden"},
                   {"heads / kv"},
                   {"experts"},
                   {"positions"},
                   {"also called", Align::left}}};
  for (const Preset* preset : chosen) {
    const Transformer& m = preset->model;
    const auto billions = [](std::int64_t count) {
      return table_number(static_cast<double>(count) / 1e9, 2);
    };
    table.row({m.name, billions(parameter_count(m).total()), m.moe ? billions(active_parameter_count(m)) : "",
               std::to_string(m.n_layers), std::to_string(m.hidden_size),
               fmt::format("{} / {}", m.n_heads, m.kv_heads()), experts_of(m),
               table_number_or_blank(static_cast<double>(m.longest_sequence()), 0), join(preset->aliases)});
  }
  return table.text() +
         "\nAny other: `--model config.json` of Hugging Face, or Megatron's flags from --num-layers on.\n";
}

Result<int> run(const Options& options) {
  std::vector<const Preset*> chosen;
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    names.push_back(preset.model.name);
    if (options.word.empty() || is_meant(preset, options.word)) chosen.push_back(&preset);
  }
  if (chosen.empty()) {
    const auto near = nearest_word(options.word, names);
    return Error{fmt::format("no model is called like `{}`", options.word.substr(0, 60))}.advice(
        near ? fmt::format("did you mean `{}`?", *near) : "`stepcast models` lists all");
  }
  if (options.names) {
    for (const Preset* preset : chosen) print("{}\n", preset->model.name);
    return kSuccess;
  }
  print("{}", options.json ? as_json(chosen) : as_text(chosen));
  return kSuccess;
}

}  // namespace

Verb models_verb() {
  return {"models", "list the models that are known by name", [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("WORD", options->word, "only those whose name holds it, e.g. llama");
            app.add_flag("--names", options->names, "print names alone, one a line");
            app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
