#include "lab/published_labels.h"

#include <algorithm>
#include <array>

namespace stepcast {

bool is_published_label(std::string_view name) {
  static constexpr std::array<std::string_view, 15> kLabels = {"##",
                                                               "__",
                                                               "module::",
                                                               "DLRM ",
                                                               "DistributedDataParallel",
                                                               "Profiler",
                                                               "forward",
                                                               "backward",
                                                               "Optimizer.step",
                                                               "Optimizer.zero_grad",
                                                               "c10d::",
                                                               "split_with_sizes",
                                                               "chunk",
                                                               "All2All_Pooled_",
                                                               "enumerate(DataLoader)"};
  return std::ranges::any_of(kLabels, [&](auto label) { return name.starts_with(label); });
}

}  // namespace stepcast
