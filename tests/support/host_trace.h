// A step of one thread whose five overheads can be read off, for tests of what is made of them.
//
//   us    0    20                              60 67  70                   130 140        150        200
//   step  |----|aten::addmm--------------------|--|view|copy_--------------|---|aten::item|----------|
//              20      30     35       44 48        70  80   85       120      144 146
//              T2      launch T5       launch T3    copy T5  synchronize       synchronize
//
// The copy runs until 118, so the first synchronisation waits; the second returns after 2 us.
#pragma once

#include "stepcast/trace/recorded_rank.h"

#include "tests/support/trace_builder.h"

namespace stepcast::test {

inline RecordedRank host_trace() {
  TraceBuilder t;
  const int main = t.thread(1);
  t.step(main, 1, 0, 200).annotation(main, "## forward ##", 5, 185);
  t.op(main, "aten::addmm", 20, 40).op(main, "aten::expand", 22, 4).op(main, "aten::fill_", 40, 12);
  t.launch(main, 30, 5, 7, "gemm", 37, 10).launch(main, 44, 4, 7, "fill", 50, 5);
  t.op(main, "aten::view", 67, 3);
  t.op(main, "aten::copy_", 70, 60);
  t.memcpy(t.call(main, "cudaMemcpyAsync", 70, 10), 7, "Memcpy DtoH (Device -> Pinned)", 82, 36);
  t.call(main, "cudaStreamSynchronize", 85, 35);
  t.op(main, "aten::item", 140, 10);
  t.call(main, "cudaStreamSynchronize", 144, 2);
  return t.build();
}

}  // namespace stepcast::test
