#include "stepcast/cost/interference.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

ModelRecord record(std::string_view name, JsonValue parameters) {
  ModelRecord m;
  m.name = name;
  m.kind = "overlap_slowdown";
  m.parameters = std::move(parameters);
  m.provenance.source = FigureSource::fitted;
  return m;
}

TEST(Interference, ReadsFactorsOfThePlatform) {
  Platform p;
  JsonValue gemm = JsonValue::object();
  gemm.add("class", JsonValue{"gemm"});
  gemm.add("slowdown_p50", JsonValue{0.02});
  gemm.add("slowdown_p90", JsonValue{0.13});
  p.set(record("overlap_slowdown/gemm", gemm));
  JsonValue gamma = JsonValue::object();
  gamma.add("kernel", JsonValue{"GammaBeta"});
  gamma.add("slowdown_p50", JsonValue{3.0});
  p.set(record("overlap_slowdown/gamma", gamma));
  const Interference interference{p};
  const SlowdownFactor f = interference.beside_communication(KernelClass::gemm);
  EXPECT_DOUBLE_EQ(f.median, 1.02);
  EXPECT_DOUBLE_EQ(f.p90, 1.13);
  EXPECT_EQ(f.source, EstimateSource::fitted);
  // Half of it overlapped: half of the loss.
  EXPECT_DOUBLE_EQ(f.over(0.5).median, 1.01);
  EXPECT_DOUBLE_EQ(interference.beside_communication(KernelClass::gemm, "xGammaBetaBackward").median, 4);
  EXPECT_EQ(interference.beside_communication(KernelClass::attention).source, EstimateSource::assumed);
}

TEST(Interference, LinksAreSharedOnlyWhenFull) {
  EXPECT_DOUBLE_EQ(Interference::sharing_a_link(0.4, 0.5).median, 1);
  EXPECT_DOUBLE_EQ(Interference::sharing_a_link(1, 1).median, 2);
}

}  // namespace
}  // namespace stepcast
