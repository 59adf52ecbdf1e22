#include "stepcast/describe/detail/moe_layer_pattern.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

Error bad_pattern(std::string_view flag, std::string_view found, std::string_view expected) {
  return Error::at("", std::string{flag})
      .found(fmt::format("`{}`", found.substr(0, 60)))
      .expected(std::string{expected});
}

// "[0,1]*3" as layers with (1) and without (0) experts, added to `pattern`.
bool add_pattern_term(std::string_view term, std::vector<bool>& pattern, std::size_t most) {
  const std::size_t close = term.find(']');
  if (!term.starts_with('[') || close == std::string_view::npos) return false;
  std::vector<bool> once;
  bool expects_digit = true;
  for (const char c : term.substr(1, close - 1)) {
    if (c == ' ') continue;
    if (expects_digit != (c == '0' || c == '1') || (!expects_digit && c != ',')) return false;
    if (expects_digit) once.push_back(c == '1');
    expects_digit = !expects_digit;
  }
  std::string_view rest = term.substr(close + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  std::size_t times = 1;
  if (!rest.empty()) {
    if (!rest.starts_with('*')) return false;
    rest.remove_prefix(1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), times);
    if (read.ec != std::errc{} || read.ptr != rest.data() + rest.size()) return false;
  }
  for (std::size_t i = 0; i < times && !once.empty(); ++i) {
    if (pattern.size() + once.size() > most) return false;
    pattern.insert(pattern.end(), once.begin(), once.end());
  }
  return true;
}

}  // namespace

Result<std::vector<bool>> read_layer_list(std::string_view flag, std::string_view text,
                                          std::int64_t n_layers) {
  const std::string_view whole = text;
  while (text.starts_with('(') || text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(')') || text.ends_with(' ')) text.remove_suffix(1);
  std::vector<bool> pattern;
  const auto most = static_cast<std::size_t>(n_layers);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    if (!add_pattern_term(text.substr(0, end), pattern, most)) {
      return bad_pattern(flag, whole,
                         fmt::format("a list of {} zeros and ones, such as [0]*3+[1]*58", n_layers));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (pattern.size() != most) {
    return bad_pattern(flag, whole,
                       fmt::format("an entry for each of {} layers, not {}", n_layers, pattern.size()));
  }
  return pattern;
}

Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers, MixtureOfExperts& moe) {
  constexpr std::string_view kFlag = "--moe-layer-freq";
  const std::string_view whole = text;
  if (text.empty()) return Ok{};
  if (text.find('[') == std::string_view::npos) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), moe.moe_every_n_layers);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || moe.moe_every_n_layers < 1) {
      return bad_pattern(kFlag, whole, "a whole number or a list such as [0]*3+[1]*58");
    }
    // Megatron gives experts to the first of every n layers, not the last; as many if n divides the layers.
    if (n_layers % moe.moe_every_n_layers != 0) {
      return bad_pattern(kFlag, whole, fmt::format("a divisor of {} layers", n_layers));
    }
    return Ok{};
  }
  STEPCAST_ASSIGN(const std::vector<bool> pattern, read_layer_list(kFlag, text, n_layers));
  std::int64_t leading = 0;
  while (leading < n_layers && !pattern[static_cast<std::size_t>(leading)]) ++leading;
  // Every layer behind the dense ones, or the last of every n from the start.
  for (const auto& [dense, every] :
       {std::pair{leading, std::int64_t{1}}, std::pair{std::int64_t{0}, leading + 1}}) {
    bool fits = true;
    for (std::int64_t layer = 0; layer < n_layers && fits; ++layer) {
      fits = pattern[static_cast<std::size_t>(layer)] == (layer >= dense && (layer - dense + 1) % every == 0);
    }
    if (!fits) continue;
    moe.first_dense_layers = dense;
    moe.moe_every_n_layers = every;
    return Ok{};
  }
  return bad_pattern(kFlag, whole,
                     "dense layers in front of layers with experts, or the last of every n with experts");
}

}  // namespace stepcast::detail
