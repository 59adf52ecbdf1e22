#include "stepcast/plan/stage_balance.h"

#include <algorithm>
#include <limits>

namespace stepcast {

std::vector<std::int64_t> balanced_stages(std::span<const double> layer_us, double front_us, double back_us,
                                          std::size_t n_chunks) {
  const std::size_t n = layer_us.size();
  if (n_chunks < 2 || n + 2 < n_chunks) return {};
  std::vector<double> before(n + 1, 0);  // of the layers in front
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + layer_us[i];

  struct Best {
    double slowest = std::numeric_limits<double>::infinity(), squares = 0;
    std::size_t from = 0;  // first layer of the last chunk
  };
  // best[c][i]: the first i layers on the first c + 1 chunks.
  std::vector<std::vector<Best>> best(n_chunks, std::vector<Best>(n + 1));
  for (std::size_t i = 0; i <= n; ++i) {
    const double load = front_us + before[i];
    best[0][i] = {load, load * load, 0};
  }
  for (std::size_t c = 1; c < n_chunks; ++c) {
    const bool is_last = c + 1 == n_chunks;
    for (std::size_t i = is_last ? n : 0; i <= n; ++i) {
      Best& here = best[c][i];
      const std::size_t end = is_last ? i + 1 : i;  // a chunk between the ends has a layer
      // From the back: once the chunk alone is slower than the best, longer ones are, too.
      for (std::size_t j = end; j-- > 0;) {
        const double load = before[i] - before[j] + (is_last ? back_us : 0);
        if (load > here.slowest) break;
        const Best& front = best[c - 1][j];
        const double slowest = std::max(front.slowest, load), squares = front.squares + load * load;
        if (slowest < here.slowest || (slowest == here.slowest && squares < here.squares))
          here = {slowest, squares, j};
      }
    }
  }
  if (best[n_chunks - 1][n].slowest == std::numeric_limits<double>::infinity()) return {};
  std::vector<std::int64_t> layers(n_chunks, 0);
  std::size_t end = n;
  for (std::size_t c = n_chunks; c-- > 0;) {
    const std::size_t from = best[c][end].from;
    layers[c] = static_cast<std::int64_t>(end - from);
    end = from;
  }
  return layers;
}

}  // namespace stepcast
