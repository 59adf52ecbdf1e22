#include "stepcast/describe/dlrm_presets.h"

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

using Rows = std::array<std::int64_t, 26>;
using Hots = std::array<int, 26>;

// Rows of the 26 categorical features of Criteo's click logs, as each implementation hashes or limits them.
constexpr Rows kMlperfV1{39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                         38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                         14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};
constexpr Rows kMlperfDcnv2{40000000, 39060,    17295,    7424,     20265,  3,     7122, 1543, 63,
                            40000000, 3067956,  405282,   10,       2209,   11938, 155,  4,    976,
                            14,       40000000, 40000000, 40000000, 590152, 12973, 108,  36};
constexpr Hots kMlperfDcnv2Hots{3, 2, 1, 2, 6, 1, 1,  1,   1,  7,  3, 8, 1,
                                6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1};
constexpr Rows kNvidiaSmall{7912889, 33823,   17139,   7339,    20046,  4,     7105, 1382, 63,
                            5554114, 582469,  245828,  11,      2209,   10667, 104,  4,    968,
                            15,      8165896, 2675940, 7156453, 302516, 12022, 97,   35};
constexpr Rows kNvidiaLarge{45833188, 36747, 1572176,  345139, 11,       2209,     11268,  128,     4,
                            975,      15,    48937457, 17246,  11316796, 40094537, 452104, 12607,   105,
                            36,       7414,  20244,    4,      7115,     1442,     63,     29275261};
constexpr Rows kNvidiaExtraLarge{
    227605432, 39061,     3067956, 405283, 11,  2209, 11939, 155,   4, 977,  15,   292775614, 17296,
    40790948,  187188510, 590152,  12974,  109, 37,   7425,  20266, 4, 7123, 1544, 64,        130229467};
constexpr Rows kTorchrec{45833188, 36746,    17245,    7413,     20243,  3,     7114, 1441, 62,
                         29275261, 1572176,  345138,   10,       2209,   11267, 128,  4,    974,
                         14,       48937457, 11316796, 40094537, 452104, 12606, 104,  35};

// Popularity of Criteo's values: assumed, Zipf's law.
constexpr double kCriteoSkew = 1.0;

Dlrm criteo(std::string name, const Rows& rows, const Hots* hots = nullptr, double skew = kCriteoSkew) {
  Dlrm model;
  model.name = std::move(name);
  model.dense_features = 13;
  model.bottom_mlp = {512, 256, 128};
  model.top_mlp = {1024, 1024, 512, 256, 1};
  for (std::size_t t = 0; t < rows.size(); ++t) {
    EmbeddingTable table;
    table.name = fmt::format("cat_{}", t);
    table.rows = rows[t];
    table.dim = 128;
    table.pooling = hots != nullptr ? (*hots)[t] : 1;
    table.skew = skew;
    model.tables.push_back(std::move(table));
  }
  return model;
}

Dlrm equal_tables(std::string name, std::vector<std::int64_t> bottom, std::vector<std::int64_t> top,
                  std::int64_t dense, int n_tables, std::int64_t rows, std::int64_t dim, double pooling) {
  Dlrm model;
  model.name = std::move(name);
  model.dense_features = dense;
  model.bottom_mlp = std::move(bottom);
  model.top_mlp = std::move(top);
  for (int t = 0; t < n_tables; ++t) {
    EmbeddingTable table;
    table.name = fmt::format("table_{}", t);
    table.rows = rows;
    table.dim = dim;
    table.pooling = pooling;
    table.skew = 0;  // the benchmark draws indices uniformly
    model.tables.push_back(std::move(table));
  }
  return model;
}

Dlrm dcnv2() {
  // Drawn uniformly per hot index.
  Dlrm model = criteo("dlrm-dcnv2-mlperf", kMlperfDcnv2, &kMlperfDcnv2Hots, 0);
  model.interaction = Interaction::cross;
  return model;
}

}  // namespace

std::vector<std::string> dlrm_preset_names() {
  return {"dlrm-mlperf-v1",          "dlrm-dcnv2-mlperf", "dlrm-nvidia-small", "dlrm-nvidia-large",
          "dlrm-nvidia-extra-large", "dlrm-torchrec",     "dlrm-default",      "dlrm-ddp",
          "dlrm-multi-gpu"};
}

std::optional<Dlrm> dlrm_preset(std::string_view name) {
  if (name == "dlrm-mlperf-v1") return criteo("dlrm-mlperf-v1", kMlperfV1);
  if (name == "dlrm-dcnv2-mlperf") return dcnv2();
  if (name == "dlrm-nvidia-small") return criteo("dlrm-nvidia-small", kNvidiaSmall);
  if (name == "dlrm-nvidia-large") return criteo("dlrm-nvidia-large", kNvidiaLarge);
  if (name == "dlrm-nvidia-extra-large") return criteo("dlrm-nvidia-extra-large", kNvidiaExtraLarge);
  if (name == "dlrm-torchrec") return criteo("dlrm-torchrec", kTorchrec);
  if (name == "dlrm-default")
    return equal_tables("dlrm-default", {512, 64}, {1024, 1024, 1024, 1}, 512, 8, 1'000'000, 64, 100);
  if (name == "dlrm-ddp")
    return equal_tables("dlrm-ddp", {128, 128, 128}, {512, 512, 512, 256, 1}, 128, 8, 80'000, 128, 100);
  if (name == "dlrm-multi-gpu") {
    Dlrm model;
    model.name = "dlrm-multi-gpu";
    model.dense_features = 512;
    model.bottom_mlp = {1024, 256, 128};
    model.top_mlp = {1024, 512, 256, 1};
    model.interaction = Interaction::concatenate;
    return model;
  }
  return std::nullopt;
}

}  // namespace stepcast
