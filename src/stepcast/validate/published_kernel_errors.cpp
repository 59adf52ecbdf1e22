#include "stepcast/validate/published_kernel_errors.h"

#include <algorithm>
#include <array>

#include "stepcast/platform/platform.h"

namespace stepcast {
namespace {

// Percent; 0: none. From the files A100.csv and GH200.csv of the research code of Zhang et al. (2025,
// github.com/DebarghaG/estimate-train-time 1ac4d5e, MIT), column Best_error.
struct Published {
  std::string_view label;
  double a100_forward, a100_backward, gh200_forward, gh200_backward;
};
constexpr Published kPublished[] = {
    {"RMSlayernorm", 3.85, 3.00, 3.87, 3.49},
    {"RoPE", 3.57, 3.63, 4.33, 6.22},
    {"ScaledUpperTriangMaskedSoftmax", 4.83, 5.14, 3.52, 3.18},
    {"baddbmm", 6.84, 4.94, 2.65, 2.33},
    {"bmm", 4.60, 6.76, 2.04, 3.24},
    {"embedding", 4.48, 4.36, 1.61, 1.41},
    {"fillmask", 1.22, 1.02, 0.94, 0.61},
    {"firstStage_optimizer", 6.11, 0, 6693.08, 0},
    {"flash_atten", 11.87, 10.57, 6.68, 7.12},
    {"gelu", 2.55, 2.68, 2.37, 2.66},
    {"lastStage_optimizer", 3.66, 0, 3.71, 0},
    {"layernorm", 7.38, 6.88, 3.15, 4.52},
    {"linear1", 5.61, 4.96, 4.27, 3.52},
    {"linear2", 5.96, 3.89, 3.88, 4.20},
    {"linear3", 5.67, 4.35, 4.65, 5.69},
    {"linear4", 5.32, 4.71, 4.41, 3.98},
    {"linear_final", 5.04, 4.61, 2.54, 3.12},
    {"middleStage_optimizer", 4.43, 0, 3.94, 0},
    {"parallel_cross_entropy_128", 9.92, 9.75, 12.76, 11.38},
    {"res_add", 3.34, 3.34, 3.67, 3.67},
    {"softmax", 8.34, 5.19, 4.93, 5.13},
};

const Published* find(std::string_view label) {
  const auto* const found = std::find_if(std::begin(kPublished), std::end(kPublished),
                                         [&](const Published& p) { return p.label == label; });
  return found == std::end(kPublished) ? nullptr : found;
}

}  // namespace

std::optional<double> published_kernel_error_percent(std::string_view gpu, std::string_view operator_label,
                                                     Direction direction) {
  const Published* const p = find(operator_label);
  if (p == nullptr) return std::nullopt;
  const bool a100 = same_name(gpu, "A100-SXM4-80GB"), gh200 = same_name(gpu, "GH200-120GB");
  if (!a100 && !gh200) return std::nullopt;
  const bool forward = direction == Direction::forward;
  const double percent = a100 ? (forward ? p->a100_forward : p->a100_backward)
                              : (forward ? p->gh200_forward : p->gh200_backward);
  if (percent <= 0) return std::nullopt;
  return percent;
}

bool is_published_operator(std::string_view operator_label) { return find(operator_label) != nullptr; }

}  // namespace stepcast
