// Members of a RunForecast (report/fields/fields.h), for a forecast and for the options of a plan.
#pragma once

#include "stepcast/report/fields/fields.h"
#include "stepcast/run/run_forecast.h"

namespace stepcast::detail {

void fields(auto& a, Is<RunLoss> auto& l) {
  a("cause", l.cause, "of interruptions");
  a("interruptions", l.interruptions, "in the whole run");
  a("mean_time_h", l.mean_time_h, "of the job, from one to the next");
  a("mean_time_p10_h", l.mean_time_p10_h, "as the log, or other clusters, allow");
  a("mean_time_p90_h", l.mean_time_p90_h, "");
  a("down_percent", l.down_percent, "of the time: found, restarted, read again");
  a("again_percent", l.again_percent, "of the time: work that no checkpoint held, done again");
}

void fields(auto& a, Is<RunScale> auto& s) {
  a("n_gpus", s.n_gpus, "each of which does as much as now");
  a("effective_share_percent", s.effective_share_percent, "on this number");
  a("days", s.days, "of the same training");
}

void fields(auto& a, Is<RunForecast> auto& r) {
  a("failures", r.failures, "where the rates come from");
  a("effective_share_percent", r.effective_share_percent, "of the time that GPUs are held is training kept");
  a("effective_share_p10_percent", r.effective_share_p10_percent, "in the long run, by rates and downtimes");
  a("effective_share_p90_percent", r.effective_share_p90_percent, "");
  a("days", r.days, "with all losses");
  a("days_p10", r.days_p10, "by rates, downtimes, the step, and chance");
  a("days_p90", r.days_p90, "");
  a("days_without_losses", r.days_without_losses, "steps times step time");
  a("interruptions", r.interruptions, "in the whole run");
  a("mean_time_to_interruption_h", r.mean_time_to_interruption_h, "of the job, by any cause");
  a("checkpoint_mode", r.checkpoint_mode, "sync, async or memory");
  a("checkpoint_GB", r.checkpoint_GB, "weights, master weights and states of the optimizer, once");
  a("checkpoint_interval_min", r.checkpoint_interval_min, "of training: as given, or the best");
  a("checkpoint_stops_s", r.checkpoint_stops_s, "that one stops training for");
  a("checkpoint_safe_after_s", r.checkpoint_safe_after_s, "then");
  a("checkpoint_percent", r.checkpoint_percent, "of the time: stopped for checkpoints that are kept");
  a("waiting_percent", r.waiting_percent, "of the time: for nodes in repair, or with fewer replicas");
  a("held_gpus", r.held_gpus, "with those of spare nodes: what GPU-hours count");
  a("losses", r.losses, "by cause");
  a("scale", r.scale, "the same on more and fewer GPUs");
  a("most_useful_gpus", r.most_useful_gpus, "more of them train no more in a day");
}

}  // namespace stepcast::detail
