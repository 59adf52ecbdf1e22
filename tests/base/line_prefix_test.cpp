#include "stepcast/base/line_prefix.h"

#include <string>

#include <gtest/gtest.h>

namespace stepcast::line_prefix_test {
namespace {

struct Prefixed {
  const char* line;
  const char* text;
  int rank;  // -1: none
};

TEST(LinePrefix, IsTakenOff) {
  constexpr Prefixed kLines[] = {
      {"[rank12]: a", "a", 12},
      {"[default3]:a", "a", 3},
      {" 7: a", "a", 7},
      {"[1,5]<stdout>:a", "a", 5},
      {"[prterun-node1-77@1,6]<stdout>: a", "a", 6},
      {"[1,mpirank:4,algo-1]<stdout>:a", "a", 4},
      {"[2] a", "a", 2},
      {"[2]<stderr>: a", "a", 2},
      {"[worker-5] a", "a", 5},
      {"[pod/train-7d9c8b5f6-x7z2k/pytorch] a", "a", -1},
      {"(TaskRunner pid=12) a", "a", -1},
      {"(Worker_1 pid=12, ip=10.0.0.1) a", "a", -1},
      {"[pod/train-worker-3/pytorch] a", "a", 3},
      {"2026-01-02T03:04:05.123456789Z a", "a", -1},
      {"2026-01-02T03:04:05.123456789Z stdout F a", "a", -1},
      {"2026-01-02T03:04:05+00:00 a", "a", -1},
      {"2026-01-02T03:04:05+0000 node1 python[12]: a", "a", -1},
      {"Jan 02 03:04:05 node1 python[12]: a", "a", -1},
      {"Jan  2 03:04:05 a", "a", -1},
      {"worker-1  | a", "a", 1},
      {"worker-2: a", "a", 2},
      {"10.0.0.3: a", "a", 3},
      {"node04: a", "a", 4},
      {"3: [rank1]:a", "a", 1},
      {"2026-01-02T03:04:05Z [pod/train-2/c] [default1]:a", "a", 1},
      {"\x1b[33m0: \x1b[31ma\x1b[0m", "a", 0},
  };
  for (const Prefixed& one : kLines) {
    std::string buffer;
    const PlainLine plain = plain_line(one.line, buffer);
    EXPECT_EQ(plain.text, one.text) << one.line;
    EXPECT_EQ(plain.rank.value_or(-1), one.rank) << one.line;
  }
}

// What programs write themselves stays: times of day, tables, YAML, CSV, names of frameworks.
TEST(LinePrefix, LeavesTheRest) {
  for (const char* line : {"12:30:01 a", "[2025-05-27 15:23:07] a", "[", "",
                           "[titan] 2025-06-09 10:11:12,123 - root - INFO - step: 1", "adam_beta2: 0.95",
                           "mxfp8: true", "1|5|Loss: 1.2:  1%|", "2025-03-01T10:00:00,1,2.0", "[batch=3/20]:",
                           "           8             2     float     sum      -1    30.50    0.00",
                           "Epoch 0: 10%|", "step: 20  loss: 1", "2021-01-02 03:04:05 | INFO | train_inner",
                           "[INFO|DP=0|PP=0|TP=0|host-1]: iteration: 5"}) {
    std::string buffer;
    EXPECT_EQ(plain_line(line, buffer).text, line);
  }
}

TEST(LinePrefix, LeavesOutColours) {
  std::string buffer;
  EXPECT_EQ(plain_line("\x1b[31mstep: 20  \x1b[38;2;180;60;0mloss\x1b[0m", buffer).text, "step: 20  loss");
  EXPECT_EQ(plain_line("[31mstep: 20[39m", buffer).text, "step: 20");  // the escape was lost on the way
  EXPECT_EQ(plain_line("2026-01-02T03:04:05Z a", buffer).prefix, "2026-01-02T03:04:05Z ");
}

}  // namespace
}  // namespace stepcast::line_prefix_test
