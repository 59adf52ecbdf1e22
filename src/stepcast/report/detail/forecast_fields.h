// Every type of a Forecast, member by member (report/fields/fields.h).
#pragma once

#include "stepcast/analyze/forecast.h"
#include "stepcast/report/detail/run_fields.h"
#include "stepcast/report/forecast_json.h"

namespace stepcast {

namespace detail {

void fields(auto& a, Is<ForecastStream> auto& s) {
  a("name", s.name, "as the trace or the description calls it");
  a("tasks", s.tasks, "tasks that touch the window");
  a("parts_ms", s.parts_ms,
    "embedding, gemm, attention, memory (kernels and copies), other, communication_transfer, "
    "communication_waiting, idle: they sum to the window");
  a("kernels_ms", s.kernels_ms, "computation by class of kernel");
  a("transfer_ms", s.transfer_ms, "collectives, without waiting for other ranks");
  a("exposed_comm_ms", s.exposed_comm_ms, "of it while no stream of the rank computes");
  a("memcpy_ms", s.memcpy_ms, "copies and fills");
  a("exposed_memcpy_ms", s.exposed_memcpy_ms, "of it while no stream of the rank computes");
  a("idle_ms", s.idle_ms, "by cause; other_rank and pipeline are waiting inside transfers");
}

void fields(auto& a, Is<ForecastThread> auto& t) {
  a("name", t.name, "as the trace calls it");
  a("busy_ms", t.busy_ms, "own work");
  a("idle_ms", t.idle_ms, "by cause: gpu, other_thread, rest");
  a("busy_by_op_ms", t.busy_by_op_ms,
    "by outermost framework op or annotation, longest first; the empty key is outside any");
}

void fields(auto& a, Is<ForecastClass> auto& c) {
  a("name", c.name, "rank N, pipeline stage N");
  a("rank", c.rank, "number of the rank, where the class is one recorded rank");
  a("n_ranks", c.n_ranks, "ranks that do the same");
  a("window_ms", c.window_ms, "the step of these ranks: sum of the four parts that follow");
  a("start_offset_ms", c.start_offset_ms, "how much later they began than the first rank");
  a("computation_ms", c.computation_ms, "some stream runs a kernel that is not communication");
  a("computation_by_class_ms", c.computation_by_class_ms,
    "computation_ms by class of kernel; kernels that run at the same time share that time");
  a("exposed_comm_ms", c.exposed_comm_ms, "nothing computes, and a collective transfers");
  a("exposed_comm_by_group_ms", c.exposed_comm_by_group_ms,
    "exposed_comm_ms by group of ranks; transfers at the same time share that time");
  a("exposed_memcpy_ms", c.exposed_memcpy_ms, "nothing computes or transfers, and a copy or fill runs");
  a("idle_ms", c.idle_ms,
    "by cause: cpu (not launched yet), other_stream, other_rank (a collective waits for a rank), pipeline "
    "(nothing has arrived from another stage), between_steps, rest");
  a("gpu_active_ms", c.gpu_active_ms, "computation, transfer or copy on any stream");
  a("transfer_ms", c.transfer_ms, "union of all transfers");
  a("overlap_ms", c.overlap_ms, "of it under computation");
  a("collective_wait_ms", c.collective_wait_ms, "union of all waiting in collectives, hidden or not");
  a("kernels_ms", c.kernels_ms, "computation by class, summed over streams");
  a("baseline_ms", c.baseline_ms, "published baseline: the busiest stream, no CPU, no waiting");
  a("streams", c.streams, "GPU streams");
  a("threads", c.threads, "CPU threads");
}

void fields(auto& a, Is<ForecastMember> auto& m) {
  a("rank_class", m.rank_class, "position in rank_classes");
  a("arrival_us", m.arrival_us, "on the clock of the timeline");
  a("wait_us", m.wait_us, "for the last member it depends on");
  a("transfer_us", m.transfer_us, "from then on");
  a("exposed_us", m.exposed_us, "of it while no stream of the rank computes");
}

void fields(auto& a, Is<ForecastCollective> auto& c) {
  a("name", c.name, "with ordinal the key of the collective");
  a("ordinal", c.ordinal, "which of that name, in the order of the first arrivals");
  a("operation", c.operation, "all_reduce, all_to_all, send_receive, ...");
  a("group", c.group, "label of the group of ranks");
  a("message_bytes", c.message_bytes, "as nccl-tests counts; null: not known");
  a("came_last", c.came_last, "position in rank_classes; the first of several");
  a("transfer_us", c.transfer_us, "shortest of the members'");
  a("total_wait_us", c.total_wait_us, "over members");
  a("longest_wait_us", c.longest_wait_us, "of the members");
  a("members", c.members, "who takes part");
}

void fields(auto& a, Is<ForecastShare> auto& s) {
  a("what", s.what, "class, rank, or framework op and task");
  a("time_ms", s.time_ms, "on the path");
  a("steps", s.steps, "of the path");
}

void fields(auto& a, Is<ForecastPathStep> auto& s) {
  a("rank_class", s.rank_class, "position in rank_classes");
  a("what", s.what, "as in by_name");
  a("start_ms", s.start_ms, "on the clock of the timeline");
  a("time_ms", s.time_ms, "length");
}

void fields(auto& a, Is<ForecastPath> auto& p) {
  a("length_ms", p.length_ms, "from the earliest start of a rank to the end of the step");
  a("ends_on", p.ends_on, "position in rank_classes");
  a("n_steps", p.n_steps, "tasks and delays");
  a("by_class", p.by_class, "complete, longest first");
  a("by_rank", p.by_rank, "complete, longest first");
  a("by_name", p.by_name, "the longest");
  a("steps", p.steps, "in the order of time, where asked for");
}

void fields(auto& a, Is<ForecastUnmodelled> auto& w) {
  a("name", w.name, "of the operation");
  a("n", w.n, "tasks");
  a("time_ms", w.time_ms, "that the forecast counts for them");
}

void fields(auto& a, Is<ForecastCoverage> auto& c) {
  a("measured", c.measured, "share of the time");
  a("fitted", c.fitted, "share of the time");
  a("analytic", c.analytic, "share of the time");
  a("assumed", c.assumed, "share of the time");
  a("unmodelled", c.unmodelled, "work without a model, most time first");
}

void fields(auto& a, Is<ForecastStageMemory> auto& m) {
  a("weights_GiB", m.weights_GiB, "in the type of the computation, and fp32 copies");
  a("gradients_GiB", m.gradients_GiB, "");
  a("optimizer_GiB", m.optimizer_GiB, "moments");
  a("activations_GiB", m.activations_GiB, "kept for the backward passes under way");
  a("working_GiB", m.working_GiB, "of one layer or the head while it runs");
  a("communication_GiB", m.communication_GiB, "buffers of the collective library");
  a("reserve_GiB", m.reserve_GiB, "context of the device, and what the allocator cannot use");
  a("total_GiB", m.total_GiB, "sum of these");
  a("dispatched_GiB", m.dispatched_GiB, "of the activations: tokens at their experts");
  a("verdict", m.verdict, "fits, tight, does not fit: this stage; empty: of recorded steps");
  a("allocated_GiB", m.allocated_GiB,
    "of the total, the highest that PyTorch's allocator reports as allocated: Megatron-LM's "
    "mem-max-allocated-bytes; null: of recorded steps");
  a("reserved_GiB", m.reserved_GiB, "the same as reserved: TorchTitan's max_reserved");
  a("worst_imbalance_GiB", m.worst_imbalance_GiB,
    "in all, if all tokens of an expert-parallel group went to one rank; null: tokens are dropped, or no "
    "experts");
}

void fields(auto& a, Is<ForecastMemory> auto& m) {
  a("verdict", m.verdict, "fits, tight, does not fit");
  a("peak_memory_GiB", m.peak_memory_GiB, "of the fullest stage");
  a("available_GiB", m.available_GiB, "of the device");
  a("margin_GiB", m.margin_GiB, "negative: so much too little");
  a("worst_stage", m.worst_stage, "the fullest stage");
  a("stages", m.stages, "of the pipeline");
  a("worst_imbalance", m.worst_imbalance,
    "visits over the mean of a rank that all tokens of its group go to");
  a("fits_to_imbalance", m.fits_to_imbalance, "of the busiest rank, with which every stage fits; 0: none");
}

void fields(auto& a, Is<ForecastExpertLoad> auto& l) {
  a("load", l.load, "as it was asked for");
  a("busiest_over_mean", l.busiest_over_mean, "visits of the rank that all wait for");
  a("balanced_step_ms", l.balanced_step_ms, "the step with balanced experts");
  a("cost_ms", l.cost_ms, "the step less that");
}

void fields(auto& a, Is<ForecastThroughput> auto& t) {
  a("samples_per_step", t.samples_per_step, "null: not known");
  a("tokens_per_step", t.tokens_per_step, "null: not known");
  a("model_flops", t.model_flops,
    "of forward and backward on all GPUs, without the masked half of causal attention");
  a("hardware_flops", t.hardware_flops, "with what recomputation repeats");
  a("peak_tflops_per_gpu", t.peak_tflops_per_gpu, "dense, in the type of the products");
  a("samples_per_s", t.samples_per_s, "");
  a("tokens_per_s", t.tokens_per_s, "");
  a("tokens_per_s_per_gpu", t.tokens_per_s_per_gpu, "");
  a("tflops_per_gpu", t.tflops_per_gpu, "of the model");
  a("hardware_tflops_per_gpu", t.hardware_tflops_per_gpu, "of what runs");
  a("mfu", t.mfu, "model FLOPs over the peak, a fraction");
  a("hfu", t.hfu, "hardware FLOPs over the peak, a fraction");
}

void fields(auto& a, Is<RegularStop> auto& s) {
  a("name", s.name, "evaluation or checkpoint");
  a("every_steps", s.every_steps, "steps from one to the next");
  a("s", s.s, "that training stands still");
}

void fields(auto& a, Is<ForecastTraining> auto& t) {
  a("samples", t.samples, "as asked");
  a("tokens", t.tokens, "as asked");
  a("iterations", t.iterations, "as asked, or what the samples or tokens need");
  a("time_s", t.time_s, "at this step time");
  a("gpu_hours", t.gpu_hours, "of all GPUs");
  a("price", t.price, "in the currency of the price that was given");
  a("energy_MWh", t.energy_MWh, "at the power that was given, or that of the nodes and switches");
  a("co2_t", t.co2_t, "tonnes, at the carbon intensity that was given");
  a("stops", t.stops,
    "evaluation and checkpoints between steps, where the job or its interruptions say how often");
  a("step_p50_ms", t.step_p50_ms, "from the start of a step to that of the next one: the typical one");
  a("step_p90_ms", t.step_p90_ms,
    "one step in ten is longer: jitter, pauses of hosts that all wait for, stops");
  a("step_p99_ms", t.step_p99_ms, "one step in a hundred is longer");
  a("run", t.run, "with interruptions: time_s, gpu_hours and what they cost are with its losses");
}

void fields(auto& a, Is<ForecastPower> auto& p) {
  a("node_W", p.node_W, "a node, mean over the step");
  a("node_p10_W", p.node_p10_W, "");
  a("node_p90_W", p.node_p90_W, "");
  a("gpu_W", p.gpu_W, "a GPU, mean over the step");
  a("waiting_share", p.waiting_share, "of the step: idle, or exposed transfers between nodes");
  a("cluster_W", p.cluster_W, "all nodes, and the switches between them");
  a("joules_per_token", p.joules_per_token, "of the cluster");
  a("limit_W", p.limit_W, "power limit of each GPU, where one was given");
}

void fields(auto& a, Is<ForecastSharedKind> auto& k) {
  a("group", k.group, "kind of the groups");
  a("alone", k.alone, "times as long as the adapters alone make it: its own load and that of other jobs");
  a("slowdown", k.slowdown, "together with other groups of the job");
}

void fields(auto& a, Is<ForecastTier> auto& t) {
  a("nodes", t.nodes, "below one switch");
  a("oversubscription", t.oversubscription, "what the nodes can send over what can leave them");
  a("load", t.load, "that the kind of groups which asks most asks of the uplinks; above 1 it waits");
}

void fields(auto& a, Is<ForecastNetwork> auto& n) {
  a("background_load", n.background_load, "of other jobs, as a share of what uplinks pass");
  a("tiers", n.tiers, "of switches, from the nodes upwards");
  a("kinds", n.kinds, "groups over several nodes");
  a("sweeps", n.sweeps, "of the schedule, until it agreed with the rates");
  a("residual", n.residual, "by which slowdowns still changed in the last sweep");
}

void fields(auto& a, Is<ForecastPool> auto& p) {
  a("platform", p.platform, "name");
  a("gpu", p.gpu, "name of the device");
  a("zone", p.zone, "where it stands; empty: not said");
  a("n_gpus", p.n_gpus, "GPUs of the pool");
  a("holds", p.holds, "stages or replicas");
  a("layers", p.layers, "of each of its stages");
  a("micro_batches", p.micro_batches, "of each of its replicas");
  a("busy_share", p.busy_share, "of the step, in which it does not wait for the other pools");
  a("peak_memory_GiB", p.peak_memory_GiB, "of a GPU");
  a("available_GiB", p.available_GiB, "of a GPU");
  a("price_per_gpu_hour", p.price_per_gpu_hour, "of its zone");
}

void fields(auto& a, Is<ForecastPoolLayout> auto& l) {
  a("layout", l.layout, "degrees, micro-batch, recomputation");
  a("flags", l.flags, "of Megatron-LM that say it");
  a("over", l.over, "what the pools share out: stages or replicas");
  a("shares", l.shares, "of each pool: layers of its stages, or micro-batches of each of its replicas");
  a("step_time_ms", l.step_time_ms, "");
  a("step_time_p10_ms", l.step_time_p10_ms, "");
  a("step_time_p90_ms", l.step_time_p90_ms, "");
  a("tokens_per_s", l.tokens_per_s, "of all pools");
  a("spare_GiB", l.spare_GiB, "that the tightest GPU leaves; below 0: does not fit");
}

void fields(auto& a, Is<ForecastItem> auto& i) {
  a("name", i.name, "what it is in the layer");
  a("what", i.what, "operation with its shapes, or transfer with its group");
  a("n", i.n, "repetitions; times are those of all of them");
  a("start_us", i.start_us, "from that of the list");
  a("time_us", i.time_us, "with the work that overlaps it");
  a("alone_us", i.alone_us, "without overlapping work");
  a("alone_p10_us", i.alone_p10_us, "");
  a("alone_p90_us", i.alone_p90_us, "");
  a("hidden_us", i.hidden_us, "of a transfer: behind computation");
  a("exposed_us", i.exposed_us, "of a transfer: waited for");
  a("flops", i.flops, "of one repetition");
  a("bytes", i.bytes, "of one repetition: read and written, or the message");
  a("overlapped", i.overlapped, "a transfer that overlaps the next operation");
  a("source", i.source, "what its time rests on");
  a("record", i.record, "kernel model that answered");
}

void fields(auto& a, Is<ForecastItemList> auto& l) {
  a("name", l.name, "layer, forward; head, backward; ...");
  a("gpu_us", l.gpu_us, "sum of what nothing hides");
  a("host_us", l.host_us, "what launching takes beyond that");
  a("items", l.items, "in the order in which they run");
}

void fields(auto& a, Is<ForecastPublished> auto& p) {
  a("step_time_ms", p.step_time_ms, "as published, from the same prices");
  a("longest_forward_ms", p.longest_forward_ms, "of the stages, with transfers");
  a("longest_backward_ms", p.longest_backward_ms, "of the stages, with transfers");
  a("passes_ms", p.passes_ms, "of all micro-batches");
  a("all_reduce_ms", p.all_reduce_ms, "gradients of the first stage");
  a("update_ms", p.update_ms, "optimizer and all-gather");
}

void fields(auto& a, Is<ForecastQuantiles> auto& q) {
  a("n", q.n, "times");
  a("mean_ms", q.mean_ms, "");
  a("p50_ms", q.p50_ms, "by the nearest rank");
  a("p90_ms", q.p90_ms, "");
  a("p99_ms", q.p99_ms, "");
  a("max_ms", q.max_ms, "");
}

void fields(auto& a, Is<ForecastSeriesStep> auto& s) {
  a("step", s.step, "number of the recorded step");
  a("step_time_ms", s.step_time_ms, "longest of all ranks");
  a("measured_ms", s.measured_ms, "longest of all ranks; 0: not known");
  a("left_out", s.left_out, "why the statistics leave it out; empty: they do not");
}

void fields(auto& a, Is<ForecastSeriesRank> auto& r) {
  a("rank", r.rank, "number of the rank");
  a("step", r.step, "over the steps that count");
  a("measured", r.measured, "over the steps that count; n is 0 where nothing is known");
  a("host_ms", r.host_ms, "CPU time of a step, mean");
  a("gpu_ms", r.gpu_ms, "kernels, copies and fills of a step, mean");
  a("data_skew_ms", r.data_skew_ms, "so much more than the mean rank because its operators have more work");
  a("hardware_ms", r.hardware_ms, "so much more than the mean rank because the same work takes longer");
}

void fields(auto& a, Is<ForecastSpreadShare> auto& s) {
  a("what", s.what, "host, gpu, network, pcie, other_rank, rest: what the rank does or waits for");
  a("over_steps", s.over_steps, "share of the variance of a rank's step over the steps");
  a("over_ranks", s.over_ranks, "share of the variance of the ranks' mean steps");
}

void fields(auto& a, Is<ForecastSeries> auto& s) {
  a("steps", s.steps, "in their order");
  a("step", s.step, "longest of all ranks, over the steps that count");
  a("measured", s.measured, "the same as recorded");
  a("ranks", s.ranks, "in the order of rank_classes");
  a("deviation_over_steps_ms", s.deviation_over_steps_ms, "standard deviation of a rank's step");
  a("deviation_over_ranks_ms", s.deviation_over_ranks_ms, "standard deviation of the ranks' mean steps");
  a("spread", s.spread, "what the variances come from; shares sum to 1");
}

void fields(auto& a, Is<ForecastTailCause> auto& c) {
  a("rank", c.rank, "number of the rank; null: no single one");
  a("what", c.what, "host, gpu, network; none: nothing slow is on the critical path");
  a("scenarios", c.scenarios, "slow ones in which nothing lengthens the critical path more");
  a("share", c.share, "of the slow scenarios");
  a("mean_excess_ms", c.mean_excess_ms, "on the critical path, against the mean factors");
}

void fields(auto& a, Is<ForecastScenarios> auto& s) {
  a("seed", s.seed, "the same seed draws the same scenarios");
  a("drawn_from", s.drawn_from, "what factors on the times of ranks were drawn from");
  a("step", s.step, "longest of all ranks");
  a("ranks", s.ranks, "in the order of rank_classes");
  a("tail_from_ms", s.tail_from_ms, "slow are scenarios from here on");
  a("n_tail", s.n_tail, "slow scenarios");
  a("tail", s.tail, "what makes them slow, most scenarios first");
}

void fields(auto& a, Is<Forecast> auto& f) {
  a("kind", f.kind,
    "transformer, trace, dlrm: predictions; replay: recorded work with simulated waiting; measurement: as "
    "recorded");
  a("model", f.model, "name of the model");
  a("traces", f.traces, "the traces that were read");
  a("parameters", f.parameters, "of the model");
  a("step", f.step, "number of the recorded step");
  a("platform", f.platform, "name of the platform");
  a("gpu", f.gpu, "name of the device");
  a("n_gpus", f.n_gpus, "GPUs in all");
  a("layout", f.layout, "settings by name: degrees, batches, sharding, recomputation, ...");
  a("step_time_ms", f.step_time_ms, "the step: the longest of all ranks");
  a("step_time_p10_ms", f.step_time_p10_ms, "80 of 100 measurements should lie between p10 and p90");
  a("step_time_p90_ms", f.step_time_p90_ms, "");
  a("source", f.source, "what most of it rests on");
  a("throughput", f.throughput, "work per time");
  a("critical_class", f.critical_class, "position in rank_classes: the last to end, of several the busiest");
  a("rank_classes", f.classes, "ranks that do the same, and where their step goes");
  a("n_collectives", f.n_collectives, "of the step, listed or not");
  a("collectives", f.collectives, "by first arrival; of many, those that cost most");
  a("critical_path", f.critical_path, "what the end of the step hangs on");
  a("coverage", f.coverage, "what the predicted time of the work rests on");
  a("memory", f.memory, "of one GPU, where known");
  a("expert_load", f.expert_load, "what uneven experts cost, where a load was asked for");
  a("power", f.power, "what nodes and GPUs draw, where the platform is known");
  a("network", f.network, "links between nodes that others pass, too, where the platform states them");
  a("pools", f.pools, "of GPUs, where the job has several");
  a("pool_layouts", f.pool_layouts, "that `plan` tried on several pools, the best first");
  a("training", f.training, "a whole training at this step time, where asked for");
  a("explained", f.explained, "operations of a layer as they were priced, where asked for");
  a("published", f.published, "composed as the published method does, where asked for");
  a("series", f.series, "several recorded steps, where asked for");
  a("scenarios", f.scenarios, "straggler scenarios, where asked for");
  a("notes", f.notes, "what was assumed, what is not modelled");
}

}  // namespace detail
}  // namespace stepcast
