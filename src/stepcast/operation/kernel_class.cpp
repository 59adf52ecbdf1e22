#include "stepcast/operation/kernel_class.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/names.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

constexpr auto kKernelClassNames =
    names<KernelClass::other>({"none", "gemm", "attention", "embedding", "expert_routing", "normalization",
                               "elementwise", "reduction", "memory", "communication", "other"});

// Patterns of one class.
struct Patterns {
  KernelClass kernel_class;
  std::string_view parts;  // lower case, at least two characters each, separated by blanks
};

// The patterns of tables/kernel_classes.csv for names of kernels (`of` "kernel"), or of operators
// ("operator"), which are only used where the name of the kernel matches nothing. The first pattern within a
// name decides, so special patterns come before general ones: "fbgemm" before "gemm", a copy functor before
// the element-wise kernel that contains it.
Result<std::vector<Patterns>> read_patterns(std::string_view of) {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("kernel_classes.csv"), "kernel_classes.csv"));
  std::vector<Patterns> patterns;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return patterns;
    const std::optional<KernelClass> kernel_class = kKernelClassNames.find(rows.cell("class"));
    if (!kernel_class) return rows.error("class").expected("a class of kernel_class.h");
    if (rows.cell("of") == of) patterns.push_back({*kernel_class, rows.cell("parts")});
  }
}

// Whether a name begins like "ncclKernel_...", "void ncclDevKernel..." or "rcclGenericKernel". A later
// occurrence may be only a template argument of another kernel.
bool begins_like_nccl(std::string_view name) {
  if (name.starts_with("void "sv)) name.remove_prefix(5);
  return name.starts_with("nccl"sv) || name.starts_with("rccl"sv) || name.starts_with("msccl"sv);
}

// Finds the first pattern of a list that a text contains, in one pass over the text: kernel names have
// hundreds of characters, and there are many patterns.
class PatternSearch {
 public:
  explicit PatternSearch(const std::vector<Patterns>& rows) {
    for (const auto& [kernel_class, parts] : rows) {
      for (std::size_t at = 0, end = 0; end < parts.size(); at = end + 1) {
        end = std::min(parts.find(' ', at), parts.size());
        const std::string_view part = parts.substr(at, end - at);
        by_first_[static_cast<unsigned char>(part.front())].push_back(patterns_.size());
        begins_.set(pair(part[0], part[1]));
        patterns_.push_back({part, kernel_class});
      }
    }
  }
  // The class of the first matching pattern of the list; none if nothing matches.
  [[nodiscard]] std::optional<KernelClass> first_in(std::string_view text) const {
    std::size_t best = patterns_.size();
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (!begins_.test(pair(text[i], text[i + 1]))) continue;
      const std::string_view rest = text.substr(i);
      for (const std::size_t p : by_first_[static_cast<unsigned char>(text[i])]) {
        if (p >= best) break;
        if (rest.starts_with(patterns_[p].first)) best = p;
      }
    }
    if (best == patterns_.size()) return std::nullopt;
    return patterns_[best].second;
  }

 private:
  static std::size_t pair(char first, char second) {
    return static_cast<std::size_t>(static_cast<unsigned char>(first)) << 8U |
           static_cast<unsigned char>(second);
  }

  std::vector<std::pair<std::string_view, KernelClass>> patterns_;
  std::array<std::vector<std::size_t>, 256> by_first_;  // indices of patterns by first character, ascending
  std::bitset<std::size_t{1} << 16U> begins_;           // first two characters of all patterns
};

}  // namespace

std::string_view to_string(KernelClass kernel_class) { return kKernelClassNames[kernel_class]; }

KernelClass classify_kernel(std::string_view kernel_name, std::string_view framework_op) {
  const std::string name = lower(kernel_name);
  if (begins_like_nccl(name)) return KernelClass::communication;
  static const PatternSearch kernel_patterns{as_shipped(read_patterns("kernel"))};
  if (const auto found = kernel_patterns.first_in(name)) return *found;
  static const PatternSearch op_patterns{as_shipped(read_patterns("operator"))};
  return op_patterns.first_in(lower(framework_op)).value_or(KernelClass::other);
}

MemcpyKind memcpy_kind(std::string_view event_name) {
  const std::string name = lower(event_name);
  const auto has = [&name](std::string_view part) { return name.find(part) != std::string::npos; };
  if (!has("memcpy") && !has("copy")) return MemcpyKind::none;
  if (has("htod") || has("hosttodevice")) return MemcpyKind::host_to_device;
  if (has("dtoh") || has("devicetohost")) return MemcpyKind::device_to_host;
  if (has("dtod") || has("devicetodevice")) return MemcpyKind::device_to_device;
  if (has("htoh") || has("hosttohost")) return MemcpyKind::host_to_host;
  if (has("ptop") || has("peer")) return MemcpyKind::peer;
  return MemcpyKind::none;
}

}  // namespace stepcast
