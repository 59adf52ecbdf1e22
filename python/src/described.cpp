#include "described.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "stepcast/describe/dlrm_job.h"

#include "verbs.h"

namespace stepcast::python {
namespace {

namespace nb = nanobind;
using cli::DescribedStep;

std::optional<std::int64_t> count_of(nb::handle value) {
  if (!PyLong_CheckExact(value.ptr())) return std::nullopt;
  int overflow = 0;
  const long long n = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0 || n < 1) return std::nullopt;
  return n;
}

std::optional<double> amount_of(nb::handle value) {
  if (const auto n = count_of(value)) return static_cast<double>(*n);
  if (!PyFloat_CheckExact(value.ptr())) return std::nullopt;
  const double x = PyFloat_AS_DOUBLE(value.ptr());
  if (!std::isfinite(x) || x <= 0) return std::nullopt;
  return x;
}

// Without commas, which the command line takes as the ends of values, and without ends of C strings.
std::optional<std::string> word_of(nb::handle value) {
  if (!PyUnicode_CheckExact(value.ptr())) return std::nullopt;
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  std::string word(text, static_cast<std::size_t>(size));
  if (word.empty() || word.find(',') != std::string::npos || word.find('\0') != std::string::npos)
    return std::nullopt;
  return word;
}

template <class Value, class Read>
bool take(std::optional<Value>& to, nb::handle value, const Read& read) {
  const auto found = read(value);
  if (found) to = *found;
  return found.has_value();
}

bool take_word(std::string& to, nb::handle value) {
  const auto found = word_of(value);
  if (found) to = *found;
  return found.has_value();
}

bool take_words(std::vector<std::string>& to, nb::handle value) {
  if (PyUnicode_CheckExact(value.ptr())) return take_word(to.emplace_back(), value);
  if (!PyList_CheckExact(value.ptr()) && !PyTuple_CheckExact(value.ptr())) return false;
  for (const nb::handle item : value) {
    if (!take_word(to.emplace_back(), item)) return false;
  }
  return true;
}

using Taker = bool (*)(DescribedStep&, nb::handle);

struct Keyword {
  std::string_view name;
  Taker take;
};

// So few that a look at each costs less than a search; a call comes here with cold caches.
std::span<const Keyword> keywords_read_here() {
  static constexpr Keyword kAll[] = {
      {"model", [](DescribedStep& s, nb::handle v) { return take_word(s.request.job.model, v); }},
      {"platform",
       [](DescribedStep& s, nb::handle v) {
         s.platform_is_named = true;
         return take_word(s.request.platform, v);
       }},
      {"gpus", [](DescribedStep& s, nb::handle v) { return take(s.request.job.n_gpus, v, count_of); }},
      {"nodes", [](DescribedStep& s, nb::handle v) { return take(s.nodes, v, count_of); }},
      {"gpus-per-node",
       [](DescribedStep& s, nb::handle v) { return take(s.request.job.gpus_per_node, v, count_of); }},
      {"tp", [](DescribedStep& s, nb::handle v) { return take(s.request.job.settings.tensor, v, count_of); }},
      {"pp",
       [](DescribedStep& s, nb::handle v) { return take(s.request.job.settings.pipeline, v, count_of); }},
      {"cp",
       [](DescribedStep& s, nb::handle v) { return take(s.request.job.settings.context, v, count_of); }},
      {"ep", [](DescribedStep& s, nb::handle v) { return take(s.request.job.settings.expert, v, count_of); }},
      {"mbs", [](DescribedStep& s,
                 nb::handle v) { return take(s.request.job.settings.micro_batch_sequences, v, count_of); }},
      {"gbs", [](DescribedStep& s,
                 nb::handle v) { return take(s.request.job.settings.global_batch_sequences, v, count_of); }},
      {"seq", [](DescribedStep& s,
                 nb::handle v) { return take(s.request.job.settings.seq_len_tokens, v, count_of); }},
      {"dtype",
       [](DescribedStep& s, nb::handle v) {
         static const std::set<std::string_view> known = {"bf16", "fp16", "fp32", "fp8", "fp4"};
         return take_word(s.dtype, v) && known.contains(s.dtype);
       }},
      {"framework", [](DescribedStep& s, nb::handle v) { return take_word(s.framework, v); }},
      {"what-if", [](DescribedStep& s, nb::handle v) { return take_words(s.request.what_if, v); }},
      {"train-tokens",
       [](DescribedStep& s, nb::handle v) { return take(s.request.budget.tokens, v, amount_of); }},
      {"gpu-hour-price",
       [](DescribedStep& s, nb::handle v) {
         return take(s.request.budget.price_per_gpu_hour, v, amount_of);
       }},
      {"carbon-intensity",
       [](DescribedStep& s, nb::handle v) { return take(s.request.budget.carbon_g_per_kWh, v, amount_of); }},
      {"failures", [](DescribedStep& s, nb::handle v) { return take_word(s.request.budget.failures, v); }},
      {"recovery", [](DescribedStep& s, nb::handle v) { return take_words(s.request.budget.recovery, v); }},
      {"gpu-power-watts",
       [](DescribedStep& s, nb::handle v) { return take(s.request.budget.power_per_gpu_W, v, amount_of); }},
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

bool add_megatron_flag(const std::string& name, nb::handle value, std::vector<std::string>& flags) {
  if (value.ptr() == Py_True) {
    flags.push_back("--" + name);
    return true;
  }
  if (const auto n = count_of(value)) {
    flags.push_back("--" + name + "=" + std::to_string(*n));
    return true;
  }
  if (const auto word = word_of(value)) {
    flags.push_back("--" + name + "=" + *word);
    return true;
  }
  return false;
}

}  // namespace

std::optional<DescribedStep> described_step(const nb::dict& keywords) {
  DescribedStep step;
  for (const auto& [key, value] : keywords) {
    if (value.is_none() || value.ptr() == Py_False) continue;
    auto name = word_of(key);
    if (!name) return std::nullopt;
    std::replace(name->begin(), name->end(), '_', '-');
    const std::span<const Keyword> plain = keywords_read_here();
    const auto known = std::find_if(plain.begin(), plain.end(),
                                    [&](const Keyword& keyword) { return keyword.name == *name; });
    if (known != plain.end()) {
      if (!known->take(step, value)) return std::nullopt;
    } else if (is_own_flag(*name) || !add_megatron_flag(*name, value, step.megatron_flags)) {
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
