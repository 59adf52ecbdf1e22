#include "stepcast/describe/framework_command_line.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/text.h"
#include "stepcast/describe/launch_script.h"
#include "stepcast/describe/megatron.h"

namespace stepcast {

std::optional<Job> config_of_command_line(const Job& said) {
  if (!said.command_line) return std::nullopt;
  const auto words = words_of_launch_script(*said.command_line);
  if (!words) return std::nullopt;
  const auto begins = [&](std::string_view with) {
    return std::ranges::any_of(*words, [&](const std::string& word) { return word.starts_with(with); });
  };
  const bool is_trainer = begins("--model_name_or_path"),
             is_maxtext = begins("model_name=") && begins("per_device_batch_size=");
  if (!is_trainer && !is_maxtext) return std::nullopt;
  // A key, then its values: what stands alone is a switch.
  std::vector<std::pair<std::string, std::vector<std::string>>> keys;
  for (const std::string& word : *words) {
    const std::string_view text = std::string_view{word}.substr(is_trainer && word.starts_with("--") ? 2 : 0);
    const std::size_t equals = text.find('=');
    if (word.ends_with(".py")) {
      keys.clear();  // the launcher's
    } else if (is_trainer ? word.starts_with("--")
                          : equals != std::string_view::npos && !word.starts_with('-')) {
      keys.emplace_back(text.substr(0, equals), 0);
      std::ranges::replace(keys.back().first, '-', '_');
      if (equals != std::string_view::npos) keys.back().second.emplace_back(text.substr(equals + 1));
    } else if (!keys.empty() && is_trainer && !word.starts_with('$')) {
      keys.back().second.push_back(word);
    }
  }
  JsonWriter json;
  json.begin_object();
  for (const auto& [key, values] : keys) {
    json.key(key);
    if (values.size() > 1) json.begin_array();
    if (values.empty()) json.value(true);
    for (const std::string& value : values) {
      const std::string word = lower(value);
      if (word == "true" || word == "false")
        json.value(word == "true");
      else
        json.value(value);
    }
    if (values.size() > 1) json.end_array();
  }
  json.end_object();
  Job job = said;
  job.command_line.reset();
  job.config = ConfigText{std::move(json).text(), "--command-line"};
  if (!job.n_gpus) job.n_gpus = launched_gpus(*words);
  // What accelerate reads before the script stands in a file of its own.
  for (std::size_t i = 0; i + 1 < words->size() && !(*words)[i].ends_with(".py"); ++i)
    if ((*words)[i] == "--config_file")
      job.not_modelled.push_back(
          fmt::format("--config_file {}: --sharding says how it shards", (*words)[i + 1].substr(0, 80)));
  return job;
}

}  // namespace stepcast
