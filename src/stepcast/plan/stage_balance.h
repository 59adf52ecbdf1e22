// How layers are dealt out to pipeline stages so that the slowest stage is as fast as can be, with the embedding in front
// of the first, and further predicted tokens and the loss behind the last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast {

// Layers of every chunk, in the order of the model. `layer_us`: forward and backward of each layer for one micro-batch;
// `front_us` and `back_us` stand before the first and behind the last layer. By dynamic programming over all contiguous
// partitions: the least time of the slowest chunk and, of several, the least sum of squares. Chunks at either end may be
// empty, those between have a layer at least. Empty if there are fewer layers than that.
[[nodiscard]] std::vector<std::int64_t> balanced_stages(std::span<const double> layer_us, double front_us,
                                                        double back_us, std::size_t n_chunks);

}  // namespace stepcast
