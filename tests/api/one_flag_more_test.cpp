// Pairs of questions that differ by one flag: what is not said is searched given what is said, so that no second flag makes
// an answer absurd. The flag that makes a layout whole ends the search, which a note says, and how to have it again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/formats/layout_choice.h"

#include "tests/support/rounds.h"

namespace stepcast::one_flag_more_test {
namespace {

using Set = std::function<void(JobSettings&)>;

struct Flag {
  std::string name;
  Set set;
  bool of_layout = true;  // a choice that the search would make
};

template <class Field, class Value>
Flag flag(std::string name, Field field, Value value, bool of_layout = true) {
  return {std::move(name), [=](JobSettings& s) { s.*field = value; }, of_layout};
}

std::vector<Flag> flags() {
  using S = JobSettings;
  return {flag("tp 1", &S::tensor, 1),
          flag("tp 2", &S::tensor, 2),
          flag("tp 4", &S::tensor, 4),
          flag("pp 1", &S::pipeline, 1),
          flag("pp 2", &S::pipeline, 2),
          flag("cp 2", &S::context, 2),
          flag("mbs 1", &S::micro_batch_sequences, 1),
          flag("mbs 2", &S::micro_batch_sequences, 2),
          flag("recompute none", &S::recompute, Recompute::none),
          flag("recompute full", &S::recompute, Recompute::full),
          flag("distributed optimizer", &S::distributed_optimizer, true),
          flag("sharding zero3", &S::sharding, Sharding::zero3),
          flag("sequence parallel", &S::sequence_parallel, true),
          flag("offload", &S::optimizer_offload, true, false),
          flag("gbs 256", &S::global_batch_sequences, 256, false),
          flag("seq 4096", &S::seq_len_tokens, 4096, false)};
}

// By a few parts in a hundred the plainest of those that cannot be told from the fastest is chosen.
constexpr double kTold = 1.05;

struct Answer {
  double step_ms = 0, promised_ms = 0, batch = 0;
  bool fits = false, on_host = false;
  std::vector<std::string> notes;
};

Result<Answer> ask(const Session& session, const PredictRequest& request) {
  PredictRequest alone = request;
  alone.only_critical = true;
  STEPCAST_ASSIGN(const Forecast f, session.predict(alone));
  Answer answer{f.step_time_ms, f.promised_ms(), 0, f.fits(), false, f.notes};
  for (const std::string& note : f.notes)
    answer.on_host = answer.on_host || note.starts_with("optimizer on the host");
  for (const Setting& setting : f.layout)
    if (setting.name == "global_batch_sequences") answer.batch = std::get<double>(setting.value);
  return answer;
}

// Whether a member is said in both, with another value or the same.
bool says_again(const JobSettings& said, const JobSettings& more) {
  bool again = false;
  setting_groups::kAll.each([&](auto member) { again = again || ((said.*member) && (more.*member)); });
  return again;
}

TEST(OneFlagMore, NeverMakesAnAnswerAbsurd) {
  const int n_pairs = test::rounds(16, 500);
  std::mt19937 random{50};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<Flag> every = flags();
  const Session session;
  constexpr const char* kModels[] = {"llama-3-8b", "gpt2-xl", "qwen3-8b", "mixtral-8x7b", "llama-3-70b"};
  int answered = 0;
  for (int i = 0; i < n_pairs; ++i) {
    const std::int64_t n_gpus = std::int64_t{8} << below(4);
    PredictRequest before{.job = {.model = kModels[below(std::size(kModels))], .n_gpus = n_gpus},
                          .platform = below(2) == 0 ? "dgx-h100" : "dgx-a100"};
    std::string words = before.job.model + " on " + std::to_string(n_gpus) + " " + before.platform;
    // One in four becomes whole by the flag that is added.
    std::vector<Flag> drawn;
    const auto draw = [&](std::size_t from, std::size_t to) {
      drawn.push_back(every[from + below(to - from)]);
    };
    if (below(4) == 0) {
      draw(0, 3);
      draw(3, 5);
      draw(6, 8);
      draw(14, 15);
      std::ranges::shuffle(drawn, random);
    } else {
      for (std::size_t n = below(3) + 1; n > 0; --n) draw(0, every.size());
    }
    PredictRequest after = before;
    const Flag added = drawn.back();
    for (const Flag& one : drawn) {
      one.set(after.job.settings);
      if (&one != &drawn.back()) {
        one.set(before.job.settings);
        words += ", " + one.name;
      }
    }
    JobSettings alone;
    added.set(alone);
    if (says_again(before.job.settings, alone)) continue;
    SCOPED_TRACE(words + " + " + added.name);
    const Result<Answer> without = ask(session, before);
    Result<Answer> with = ask(session, after);
    if (!without || !with) continue;  // a flag that contradicts another, or that the model cannot have
    ++answered;
    if (says_whole_layout(after.job.settings)) {
      PredictRequest searched = after;
      searched.open_layout = OpenLayout::fastest;
      const Result<Answer> all = ask(session, searched);
      ASSERT_TRUE(all.ok()) << all.error().message();
      EXPECT_EQ(all->batch, with->batch);
      if (with->fits) {
        EXPECT_GT(with->step_ms * kTold, all->step_ms);
        EXPECT_TRUE(all->fits);
      }
      EXPECT_THAT(with->notes, ::testing::Contains(::testing::HasSubstr("--layout fastest searches them")));
      *with = *all;
      if (says_whole_layout(before.job.settings)) continue;
    }
    if (!after.job.settings.global_batch_sequences && !after.job.settings.seq_len_tokens) {
      EXPECT_EQ(with->batch, without->batch);
    }
    if (!added.of_layout) continue;
    // A choice that is made leaves fewer. What does not fit is not searched by its time, and an optimizer on the host is
    // only tried where nothing else fits.
    if (with->fits && with->on_host == without->on_host) {
      EXPECT_GT(with->step_ms * kTold, without->step_ms);
      EXPECT_TRUE(without->fits);
      EXPECT_NEAR(with->promised_ms / with->step_ms, without->promised_ms / without->step_ms, 1e-9);
    }
  }
  EXPECT_GT(answered, n_pairs / 3);
}

}  // namespace
}  // namespace stepcast::one_flag_more_test
