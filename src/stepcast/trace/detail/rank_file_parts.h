// What a rank file holds, in the order in which it stands there: rank_file.cpp goes through it with a writer, with a reader,
// and with what looks for the names in use and the unit of times.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

// How the rows of a column follow each other.
enum class Column : std::uint8_t { plain, ascending };

template <class Io>
void rows_of(Io& io, std::vector<CpuOp>& ops) {
  io.length(ops);
  io.column(ops, &CpuOp::start, Column::ascending);
  io.column(ops, &CpuOp::duration);
  io.column(ops, &CpuOp::name);
  io.column(ops, &CpuOp::thread);
  io.by_name(ops, &CpuOp::input_shapes);
  io.by_name(ops, &CpuOp::input_types);
  io.by_name(ops, &CpuOp::input_values);
  io.column(ops, &CpuOp::external_id, Column::ascending);
  io.column(ops, &CpuOp::order, &CpuOp::external_id);
  io.column(ops, &CpuOp::sequence_number, Column::ascending);
  io.column(ops, &CpuOp::collective);
  io.column(ops, &CpuOp::kind);
}

template <class Io>
void rows_of(Io& io, std::vector<RuntimeCall>& calls) {
  io.length(calls);
  io.column(calls, &RuntimeCall::start, Column::ascending);
  io.column(calls, &RuntimeCall::duration);
  io.column(calls, &RuntimeCall::name);
  io.column(calls, &RuntimeCall::thread);
  io.column(calls, &RuntimeCall::correlation, Column::ascending);
  io.column(calls, &RuntimeCall::external_id, &RuntimeCall::correlation);
}

template <class Io>
void rows_of(Io& io, std::vector<GpuOp>& ops) {
  io.length(ops);
  io.column(ops, &GpuOp::start, Column::ascending);
  io.column(ops, &GpuOp::duration);
  io.column(ops, &GpuOp::name);
  io.column(ops, &GpuOp::device);
  io.column(ops, &GpuOp::stream);
  io.column(ops, &GpuOp::correlation, Column::ascending);
  io.column(ops, &GpuOp::external_id, &GpuOp::correlation);
  io.column(ops, &GpuOp::bytes);
  io.few(ops, &GpuOp::blocks_per_sm);
  io.few(ops, &GpuOp::blocks);
  io.column(ops, &GpuOp::collective);
  io.column(ops, &GpuOp::kind);
}

template <class Io>
void rows_of(Io& io, std::vector<StreamSync>& syncs) {
  io.length(syncs);
  io.column(syncs, &StreamSync::start, Column::ascending);
  io.column(syncs, &StreamSync::duration);
  io.column(syncs, &StreamSync::correlation, Column::ascending);
  io.column(syncs, &StreamSync::stream);
  io.column(syncs, &StreamSync::wait_on_stream);
  io.column(syncs, &StreamSync::wait_on_event_record_correlation, Column::ascending);
  io.column(syncs, &StreamSync::kind);
}

template <class Io>
void rows_of(Io& io, std::vector<AllocatorState>& states) {
  io.length(states);
  io.column(states, &AllocatorState::start, Column::ascending);
  io.column(states, &AllocatorState::device);
  io.column(states, &AllocatorState::allocated_bytes, Column::ascending);
  io.column(states, &AllocatorState::reserved_bytes, Column::ascending);
}

template <class Io>
void rows_of(Io& io, std::vector<CollectiveInfo>& infos) {
  io.length(infos);
  io.column(infos, &CollectiveInfo::name);
  io.column(infos, &CollectiveInfo::op);
  io.column(infos, &CollectiveInfo::dtype);
  io.column(infos, &CollectiveInfo::in_elements);
  io.column(infos, &CollectiveInfo::out_elements);
  io.column(infos, &CollectiveInfo::group_size);
  io.column(infos, &CollectiveInfo::process_group);
  io.column(infos, &CollectiveInfo::sequence, Column::ascending);
  io.column(infos, &CollectiveInfo::comms_id);
  for (CollectiveInfo& info : infos) {
    io.numbers(info.group_ranks);
    io.numbers(info.in_split);
    io.numbers(info.out_split);
  }
}

template <class Io>
void rows_of(Io& io, std::vector<EtNode>& nodes) {
  io.length(nodes);
  io.column(nodes, &EtNode::id, Column::ascending);
  io.column(nodes, &EtNode::parent, Column::ascending);
  io.column(nodes, &EtNode::order, Column::ascending);
  io.column(nodes, &EtNode::sequence_number, Column::ascending);
  io.column(nodes, &EtNode::forward_parent, Column::ascending);
  io.column(nodes, &EtNode::thread);
  io.column(nodes, &EtNode::forward_thread);
  io.column(nodes, &EtNode::name);
  io.by_name(nodes, &EtNode::input_shapes);
  io.by_name(nodes, &EtNode::input_types);
  io.by_name(nodes, &EtNode::output_shapes);
  io.by_name(nodes, &EtNode::output_types);
  io.by_name(nodes, &EtNode::values);
  io.column(nodes, &EtNode::first_input, Column::ascending);
  io.column(nodes, &EtNode::first_output, Column::ascending);
  io.column(nodes, &EtNode::end_output, Column::ascending);
  io.column(nodes, &EtNode::collective);
}

template <class Io>
void rows_of(Io& io, std::vector<TensorUse>& tensors) {
  io.length(tensors);
  io.column(tensors, &TensorUse::tensor, Column::ascending);
  io.column(tensors, &TensorUse::storage, Column::ascending);
  io.column(tensors, &TensorUse::offset);
  io.column(tensors, &TensorUse::elements);
  io.column(tensors, &TensorUse::element_bytes);
  io.column(tensors, &TensorUse::on_gpu);
}

template <class Io>
void rows_of(Io& io, std::vector<EtCollective>& collectives) {
  io.length(collectives);
  io.column(collectives, &EtCollective::op);
  io.column(collectives, &EtCollective::is_wait);
  io.column(collectives, &EtCollective::sequence, Column::ascending);
  io.column(collectives, &EtCollective::elements_in);
  io.column(collectives, &EtCollective::elements_out);
  io.column(collectives, &EtCollective::dtype);
  io.column(collectives, &EtCollective::group_size);
  io.column(collectives, &EtCollective::process_group);
  for (EtCollective& c : collectives) {
    io.numbers(c.in_split);
    io.numbers(c.out_split);
  }
}

template <class Io>
void parts_of(Io& io, RecordedRank& rank) {
  io.unit();
  io.text(rank.schema);
  io.optional(rank.rank);
  io.optional(rank.world_size);
  io.length(rank.devices);
  for (DeviceProperties& d : rank.devices) {
    io.number(d.id);
    io.text(d.name);
    io.number(d.memory_bytes);
    io.number(d.sm_count);
    io.number(d.max_threads_per_sm);
  }
  io.length(rank.threads);
  for (RecordedThread& t : rank.threads) {
    io.number(t.pid);
    io.number(t.tid);
    io.text(t.name);
  }
  io.names(rank.names);
  rows_of(io, rank.cpu_ops);
  rows_of(io, rank.runtime_calls);
  rows_of(io, rank.gpu_ops);
  rows_of(io, rank.stream_syncs);
  rows_of(io, rank.allocator_states);
  rows_of(io, rank.collective_infos);
  io.number(rank.event_count);
  io.counts(rank.skipped);
}

template <class Io>
void parts_of(Io& io, ExecutionTrace& trace) {
  io.text(trace.schema);
  io.optional(trace.rank);
  io.names(trace.names);
  rows_of(io, trace.nodes);
  rows_of(io, trace.tensors);
  rows_of(io, trace.collectives);
  io.counts(trace.skipped);
}

}  // namespace stepcast::detail
