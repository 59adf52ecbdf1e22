// Curves of collectives that follow a law, for tests that want to know what is right.
#pragma once

#include <cmath>
#include <cstdint>

#include "stepcast/cost/collective_curve.h"

namespace stepcast::test {

// startup + factor x m / GBps.
inline CollectiveCurve line(CollectiveOp op, std::uint32_t n_nodes, std::uint32_t per_node, double startup_us,
                            double GBps) {
  CollectiveCurve record;
  record.collective = op;
  record.n_nodes = n_nodes;
  record.gpus_per_node = per_node;
  record.n_ranks = n_nodes * per_node;
  StartupForm form;
  form.ln_startup_us = std::log(startup_us);
  form.ln_max_GBps = std::log(GBps);
  CurveFit& fit = record.fit.edit();
  fit.improved = form.record();
  fit.residuals = {{"all", 8, 0x1p32, -0.02, 0, 0.02, 30}};
  fit.provenance.source = FigureSource::fitted;
  fit.provenance.range = {{"message_bytes_min", 8}, {"message_bytes_max", 0x1p32}};
  return record;
}

}  // namespace stepcast::test
