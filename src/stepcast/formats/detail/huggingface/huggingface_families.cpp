// Key lists, and reading functions that several readers of config.json share.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/formats/detail/huggingface/huggingface_readers.h"

namespace stepcast::detail {
namespace {

using KeyList = std::pair<std::string_view, std::string_view>;

// Reads huggingface_keys.csv, with the columns list and keys (separated by blanks).
Result<std::vector<KeyList>> read_lists() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("huggingface_keys.csv"), "huggingface_keys.csv"));
  std::vector<KeyList> lists;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return lists;
    lists.emplace_back(rows.cell("list"), rows.cell("keys"));
  }
}

}  // namespace

// The list must exist; names of lists are constants in the code.
std::string_view huggingface_keys(std::string_view list) {
  static const std::vector<KeyList> kLists = as_shipped(read_lists());
  return std::ranges::find(kLists, list, &KeyList::first)->second;
}

// xIELU and all variants of GELU cost the same as GELU here.
Status read_activation(ObjectReader& keys, std::string_view key, Activation& out) {
  std::string text;
  STEPCAST_TRY(keys.optional(key, text));
  if (text.empty()) return Ok{};
  constexpr struct {
    std::string_view name;
    Activation activation;
  } kNames[] = {{"gelu", Activation::gelu},      {"gelu_new", Activation::gelu},
                {"gelu_fast", Activation::gelu}, {"gelu_pytorch_tanh", Activation::gelu},
                {"relu", Activation::relu},      {"relu2", Activation::squared_relu},
                {"xielu", Activation::gelu},     {"silu", Activation::silu},
                {"swish", Activation::silu}};
  for (const auto& known : kNames) {
    if (known.name != text) continue;
    out = known.activation;
    return Ok{};
  }
  return keys.wrong(key, text, "gelu, relu, relu2 or silu");
}

Status refuse_if_true(ObjectReader& keys, std::string_view key, std::string_view why) {
  bool on = false;
  STEPCAST_TRY(keys.optional(key, on));
  if (on) return keys.error(key, std::string{why}).found("true").expected("false");
  return Ok{};
}
Status refuse_if_false(ObjectReader& keys, std::string_view key, std::string_view why) {
  bool on = true;
  STEPCAST_TRY(keys.optional(key, on));
  if (!on) return keys.error(key, std::string{why}).found("false").expected("true");
  return Ok{};
}

}  // namespace stepcast::detail
