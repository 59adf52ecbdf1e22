#include "described.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>

#include "stepcast/describe/dlrm_job.h"

#include "verbs.h"

namespace stepcast::python {
namespace {

using cli::DescribedStep;

struct Value {
  char kind = 0;  // library.h
  std::string text;
};

std::optional<std::int64_t> count_of(const Value& value) {
  std::int64_t n = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, n);
  if (value.kind != 'i' || read.ec != std::errc{} || read.ptr != end || n < 1) return std::nullopt;
  return n;
}

std::optional<double> amount_of(const Value& value) {
  if (const auto n = count_of(value)) return static_cast<double>(*n);
  double x = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, x);
  if (value.kind != 'f' || read.ec != std::errc{} || read.ptr != end || !std::isfinite(x) || x <= 0)
    return std::nullopt;
  return x;
}

// Without commas, which the command line takes as the ends of values.
std::optional<std::string> word_of(const Value& value) {
  if ((value.kind != 's' && value.kind != 'l') || value.text.empty() ||
      value.text.find(',') != std::string::npos)
    return std::nullopt;
  return value.text;
}

template <class To, class Read>
bool take(std::optional<To>& to, const Value& value, const Read& read) {
  const auto found = read(value);
  if (found) to = *found;
  return found.has_value();
}

bool take_word(std::string& to, const Value& value) {
  const auto found = value.kind == 's' ? word_of(value) : std::nullopt;
  if (found) to = *found;
  return found.has_value();
}

bool take_words(std::vector<std::string>& to, const Value& value) {
  const auto found = word_of(value);
  if (found) to.push_back(*found);
  return found.has_value();
}

using Taker = bool (*)(DescribedStep&, const Value&);

struct Keyword {
  std::string_view name;
  Taker take;
};

// So few that a look at each costs less than a search; a call comes here with cold caches.
std::span<const Keyword> keywords_read_here() {
  static constexpr Keyword kAll[] = {
      {"model", [](DescribedStep& s, const Value& v) { return take_word(s.request.job.model, v); }},
      {"platform",
       [](DescribedStep& s, const Value& v) {
         s.platform_is_named = true;
         return take_word(s.request.platform, v);
       }},
      {"gpus", [](DescribedStep& s, const Value& v) { return take(s.request.job.n_gpus, v, count_of); }},
      {"nodes", [](DescribedStep& s, const Value& v) { return take(s.nodes, v, count_of); }},
      {"gpus-per-node",
       [](DescribedStep& s, const Value& v) { return take(s.request.job.gpus_per_node, v, count_of); }},
      {"tp",
       [](DescribedStep& s, const Value& v) { return take(s.request.job.settings.tensor, v, count_of); }},
      {"pp",
       [](DescribedStep& s, const Value& v) { return take(s.request.job.settings.pipeline, v, count_of); }},
      {"cp",
       [](DescribedStep& s, const Value& v) { return take(s.request.job.settings.context, v, count_of); }},
      {"ep",
       [](DescribedStep& s, const Value& v) { return take(s.request.job.settings.expert, v, count_of); }},
      {"mbs", [](DescribedStep& s,
                 const Value& v) { return take(s.request.job.settings.micro_batch_sequences, v, count_of); }},
      {"gbs",
       [](DescribedStep& s, const Value& v) {
         return take(s.request.job.settings.global_batch_sequences, v, count_of);
       }},
      {"seq", [](DescribedStep& s,
                 const Value& v) { return take(s.request.job.settings.seq_len_tokens, v, count_of); }},
      {"dtype",
       [](DescribedStep& s, const Value& v) {
         static const std::set<std::string_view> known = {"bf16", "fp16", "fp32", "fp8", "fp4"};
         return take_word(s.dtype, v) && known.contains(s.dtype);
       }},
      {"framework", [](DescribedStep& s, const Value& v) { return take_word(s.framework, v); }},
      {"what-if", [](DescribedStep& s, const Value& v) { return take_words(s.request.what_if, v); }},
      {"train-tokens",
       [](DescribedStep& s, const Value& v) { return take(s.request.budget.tokens, v, amount_of); }},
      {"gpu-hour-price",
       [](DescribedStep& s, const Value& v) {
         return take(s.request.budget.price_per_gpu_hour, v, amount_of);
       }},
      {"carbon-intensity",
       [](DescribedStep& s, const Value& v) {
         return take(s.request.budget.carbon_g_per_kWh, v, amount_of);
       }},
      {"failures", [](DescribedStep& s, const Value& v) { return take_word(s.request.budget.failures, v); }},
      {"recovery", [](DescribedStep& s, const Value& v) { return take_words(s.request.budget.recovery, v); }},
      {"gpu-power-watts",
       [](DescribedStep& s, const Value& v) { return take(s.request.budget.power_per_gpu_W, v, amount_of); }},
  };
  return kAll;
}

// Names of the flags that `predict` declares itself; what it leaves over are flags of Megatron-LM.
bool is_own_flag(const std::string& name) {
  static const std::vector<std::string> names = [] {
    CLI::App app;
    static_cast<void>(cli::predict_verb().declare(app));
    std::vector<std::string> all;
    for (const CLI::Option* option : app.get_options()) {
      all.insert(all.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }();
  return std::binary_search(names.begin(), names.end(), name);
}

bool add_megatron_flag(const std::string& name, const Value& value, std::vector<std::string>& flags) {
  if (value.kind == 't') {
    flags.push_back("--" + name);
    return true;
  }
  if (!count_of(value) && (value.kind != 's' || !word_of(value))) return false;
  flags.push_back("--" + name + "=" + value.text);
  return true;
}

}  // namespace

std::optional<DescribedStep> described_step(const std::vector<std::string>& keywords) {
  DescribedStep step;
  for (std::size_t i = 0; i + 2 < keywords.size(); i += 3) {
    std::string name = keywords[i];
    const Value value{keywords[i + 1].front(), keywords[i + 2]};
    std::replace(name.begin(), name.end(), '_', '-');
    const std::span<const Keyword> plain = keywords_read_here();
    const auto known = std::find_if(plain.begin(), plain.end(),
                                    [&](const Keyword& keyword) { return keyword.name == name; });
    if (known != plain.end()) {
      if (!known->take(step, value)) return std::nullopt;
    } else if (is_own_flag(name) || !add_megatron_flag(name, value, step.megatron_flags)) {
      return std::nullopt;
    }
  }
  const std::string& model = step.request.job.model;
  if (model.find('/') != std::string::npos || model.find('.') == 0 || model.ends_with(".json") ||
      is_dlrm_job(model))
    return std::nullopt;
  return step;
}

}  // namespace stepcast::python
