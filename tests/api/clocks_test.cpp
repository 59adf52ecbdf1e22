// Replays of ranks whose hosts' clocks are apart.
#include <charconv>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"

#include "tests/support/data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::clocks_test {
namespace {

// Every time stamp of a trace later by whole microseconds, as the trace gives them.
std::string moved(std::string_view text, std::int64_t by_us) {
  constexpr std::string_view kKey = "\"ts\": ";
  std::string out;
  for (std::size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey)) {
    std::int64_t ts = 0;
    const char* const begin = text.data() + at + kKey.size();
    const char* const end = std::from_chars(begin, text.data() + text.size(), ts).ptr;
    out += text.substr(0, at + kKey.size());
    out += fmt::format("{}", ts + by_us);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return out + std::string{text};
}

StepCulprits culprits_of(const std::filesystem::path& folder) {
  ReplayRequest request;
  request.places = {folder};
  const Result<Replayed> replayed = Session{}.replay(request);
  EXPECT_TRUE(replayed.ok()) << replayed.error().message();
  return replayed.ok() ? replayed->analysis->culprits : StepCulprits{};
}

// The first of eight ranks that others wait for stays the same, and so does its share of the waiting.
TEST(Clocks, OfHostsAreFoundByTheEndsOfTheirCollectives) {
  SKIP_WITHOUT_DATA();
  const std::filesystem::path recorded = *test::measured_data() / "traces" / "dlrm8";
  const StepCulprits as_recorded = culprits_of(recorded);
  const RankCulprits* const worst = as_recorded.worst();
  ASSERT_NE(worst, nullptr);
  const double share = worst->caused_wait_us / as_recorded.all_waiting_us();
  EXPECT_GT(share, 0.7);
  std::mt19937_64 random{5};
  constexpr std::int64_t kMostApartUs[] = {10, 50, 200, 1000};
  for (int draw = 0; draw < 8; ++draw) {
    const std::int64_t most_us = kMostApartUs[draw % 4];
    SCOPED_TRACE(fmt::format("draw {}: clocks differ by up to {} us", draw, most_us));
    const test::TemporaryFolder folder;
    for (int rank = 0; rank < 8; ++rank) {
      const auto text = read_file(recorded / fmt::format("kineto_rank{}.json.gz", rank));
      ASSERT_TRUE(text.ok()) << text.error().message();
      std::ofstream{folder.path() / fmt::format("kineto_rank{}.json", rank)}
          << moved(*text, std::uniform_int_distribution<std::int64_t>{0, most_us}(random));
    }
    const StepCulprits culprits = culprits_of(folder.path());
    EXPECT_EQ(culprits.collectives, as_recorded.collectives);
    EXPECT_LT(culprits.tie_us, 10);
    const RankCulprits* const found = culprits.worst();
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->rank_class, worst->rank_class);
    EXPECT_NEAR(found->caused_wait_us / culprits.all_waiting_us(), share, 0.03);
  }
}

}  // namespace
}  // namespace stepcast::clocks_test
