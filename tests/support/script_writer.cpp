#include "tests/support/script_writer.h"

#include <algorithm>
#include <stdexcept>

namespace stepcast::test::generator {
namespace {

int dense_stream(int number) {
  for (int i = 0; i < static_cast<int>(std::size(kStreams)); ++i) {
    if (kStreams[i] == number) return i;
  }
  throw std::logic_error("generator: unknown stream");
}

// A bandwidth and a latency that a ring over NVLink might have: enough to give collectives of different
// length.
double transfer_us(CollectiveOp op, double bytes, int ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return op == CollectiveOp::all_reduce ? 14 + 2 * share * bytes / 60e3 : 9 + share * bytes / 45e3;
}

}  // namespace

ScriptWriter::ScriptWriter(const GeneratorOptions& options, int rank, Shared& shared)
    : options_(options),
      rank_(rank),
      shared_(shared),
      cpu_(options.seed * 1000 + static_cast<std::uint64_t>(rank)),
      gpu_(options.seed * 1000 + 500 + static_cast<std::uint64_t>(rank)) {
  script_.threads.resize(2);
  script_.stream_count = static_cast<int>(std::size(kStreams));
  thread_node() = next_id_++;
}

void ScriptWriter::finish() {
  script_.flag_count = flags_;
  script_.event_count = events_;
}

Values ScriptWriter::table_arguments(std::int64_t tables, const Tensor& indices, const Tensor& offsets) {
  constexpr std::int64_t kRows = 10'000;
  return {tensor({tables * kRows * kEmbeddingDim}),
          tensor({tables}, "long int", 8),
          tensor({tables + 1}, "int"),
          tables * kEmbeddingDim,
          kEmbeddingDim,
          tensor({tables + 1}, "long int", 8),
          20,
          indices,
          offsets,
          0};
}

int ScriptWriter::add_item(Item item, ItemRecord record) {
  item.stream = dense_stream(record.stream);
  script_.items.push_back(item);
  item_records_.push_back(std::move(record));
  return static_cast<int>(script_.items.size()) - 1;
}

std::size_t ScriptWriter::add_call(std::string name, Instruction instruction, bool visible) {
  calls_.push_back({std::move(name), thread_, push(instruction), next_correlation_++,
                    open_ops().empty() ? -1 : open_ops().back(), visible && window_});
  if (instruction.item != kNone)
    item_records_[static_cast<std::size_t>(instruction.item)].call = calls_.size() - 1;
  return calls_.size() - 1;
}

void ScriptWriter::kernel(std::string name, double us, double blocks) {
  const bool large = blocks >= 8 * kMultiprocessors;
  const int item =
      add_item({.kind = ItemKind::kernel,
                .duration_us = gpu_us(us),
                .delay_us = gpu_.between(1.6, 2.6),
                .fills_device = large && options_.large_kernels_fill_device},
               {.name = std::move(name), .stream = stream_, .blocks = static_cast<std::int32_t>(blocks)});
  work(1.5);
  call("cudaLaunchKernel", 4.8, item);
}

void ScriptWriter::elementwise(const char* name, double bytes) {
  kernel(fmt::format(
             "void at::native::vectorized_elementwise_kernel<4, {}, at::detail::Array<char*, 3> >(int, {}, "
             "at::detail::Array<char*, 3>)",
             name, name),
         2.2 + bytes / 720e3, std::ceil(bytes / 6144));
}

void ScriptWriter::fill(const char* type) {
  const Tensor filled = tensor({1}, type);
  op("aten::fill_", {filled, 0}, {filled}, [&] {
    kernel(fmt::format("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<{0}>, "
                       "at::detail::Array<char*, 1> "
                       ">(int, at::native::FillFunctor<{0}>, at::detail::Array<char*, 1>)",
                       type),
           2.2, 4);
  });
}

void ScriptWriter::copy(Copy kind, const Tensor& from, const Tensor& to) {
  const auto bytes = from.elements() * from.element_bytes;
  op("aten::to", {from, 0, 0, 0}, {to}, [&] {
    op("aten::_to_copy", {from, 0, 0}, {to}, [&] {
      op("aten::empty_strided", {Value(from.shape), Value(std::vector<std::int64_t>{1})}, {to});
      op("aten::copy_", {to, from, 0}, {to}, [&] { copy_call(kind, bytes); });
    });
  });
}

void ScriptWriter::copy_call(Copy kind, std::int64_t bytes) {
  const char* name = kind == Copy::pinned_to_device     ? "Memcpy HtoD (Pinned -> Device)"
                     : kind == Copy::pageable_to_device ? "Memcpy HtoD (Pageable -> Device)"
                                                        : "Memcpy DtoH (Device -> Pageable)";
  const bool blocking = kind == Copy::device_to_pageable;
  const int item = add_item({.kind = ItemKind::copy,
                             .duration_us = gpu_us(1.2 + static_cast<double>(bytes) / 10e3),
                             .delay_us = blocking ? gpu_.between(11, 13) : gpu_.between(2.6, 3.4),
                             .delay_from_start = blocking},
                            {.name = name, .stream = stream_, .kind = GpuOp::Kind::memcpy, .bytes = bytes});
  if (blocking) {
    const std::size_t c = add_call(
        "cudaMemcpyAsync",
        {.kind = Instruction::Kind::sync_item, .us = 8, .return_us = cpu_.between(6.1, 6.9), .item = item});
    synchronizing_.push_back({c, stream_, item_records_.size()});
  } else {
    call("cudaMemcpyAsync", kind == Copy::pinned_to_device ? 5 : 6.5, item);
  }
  if (kind == Copy::pinned_to_device) return;
  work(0.8);
  const std::size_t c = add_call("cudaStreamSynchronize", {.kind = Instruction::Kind::sync_stream,
                                                           .us = 2,
                                                           .return_us = cpu_.between(4.6, 5.4),
                                                           .stream = dense_stream(stream_)});
  synchronizing_.push_back({c, stream_, item_records_.size()});
  syncs_.push_back({.kind = StreamSync::Kind::stream_sync, .call = c, .stream = stream_});
}

std::pair<int, std::size_t> ScriptWriter::record_event_call(int stream) {
  const int event = events_++;
  const int item =
      add_item({.kind = ItemKind::event_record, .event = event, .delay_us = 0.5}, {.stream = stream});
  const std::size_t c = call("cudaEventRecord", 0.9, item, options_.event_records != EventRecords::hidden);
  event_origin_.push_back({stream, c});
  return {event, c};
}

void ScriptWriter::wait_event(int stream, int event, WaitPattern pattern) {
  const int item = add_item({.kind = ItemKind::event_wait, .event = event, .delay_us = 0.5},
                            {.stream = stream, .pattern = pattern, .no_effect = event == kNone});
  const std::size_t c = call("cudaStreamWaitEvent", 0.9, item);
  SyncRecord sync{.kind = StreamSync::Kind::stream_wait_event, .call = c, .stream = stream};
  if (event == kNone) {
    sync.wait_on_stream = kNcclInternalStream;
  } else {
    const auto& [origin, record_call] = event_origin_[static_cast<std::size_t>(event)];
    sync.wait_on_stream = origin;
    if (calls_[record_call].visible) sync.record_correlation = calls_[record_call].correlation;
  }
  syncs_.push_back(sync);
}

void ScriptWriter::wait_for(const Work& w) {
  op(
      "record_param_comms",
      {w.sequence, 0, 0, "wait", std::vector<std::int64_t>{}, std::vector<std::int64_t>{}}, {},
      [&] {
        if (options_.collective_metadata && window_)
          ops_.back().collective = collective_info("wait", CollectiveOp::unknown, w.sequence, {}, {}, {}, {});
        wait_event(stream_, w.event, WaitPattern::collective_result);
      },
      1, 1);
}

void ScriptWriter::add_node(const std::string& name, std::int64_t id, std::int64_t order, CpuOp::Kind kind,
                            std::int64_t sequence, const Values& in, const Values& out) {
  const auto column = [](const Values& values, auto&& field) {
    std::vector<std::string> parts;
    for (const Value& v : values) parts.push_back(field(v));
    return fmt::format("[{}]", fmt::join(parts, ","));
  };
  const auto texts = [](const Value& v) { return v.text; };
  const auto shapes = [](const Value& v) { return v.shape; };
  const auto types = [](const Value& v) { return fmt::format("\"{}\"", v.type); };
  const std::int64_t parent = parents().empty() ? thread_node() : parents().back();
  if (!nodes_.empty()) nodes_ += ",\n";
  nodes_ += fmt::format(
      R"({{"name":"{}","id":{},"rf_id":{},"parent":{},"fw_parent":0,"seq_id":{},"scope":{},"tid":{},"fw_tid":{},"op_schema":"",)"
      R"("inputs":{},"input_shapes":{},"input_types":{},"outputs":{},"output_shapes":{},"output_types":{}}})",
      name, id, order, parent, sequence, kind == CpuOp::Kind::op ? 0 : 7, thread_ + 1,
      thread_ == kAutograd && sequence >= 0 ? 1 : 0, column(in, texts), column(in, shapes), column(in, types),
      column(out, texts), column(out, shapes), column(out, types));
}

std::int32_t ScriptWriter::collective_info(const char* name, CollectiveOp op_kind, std::int64_t sequence,
                                           std::optional<Tensor> in, std::optional<Tensor> out,
                                           const std::vector<std::int64_t>& in_split,
                                           const std::vector<std::int64_t>& out_split) {
  CollectiveInfo info;
  info.name = names_.intern(name);
  info.op = op_kind;
  info.sequence = sequence;
  info.group_size = options_.ranks;
  info.process_group = names_.intern("0");
  for (int r = 0; r < options_.ranks; ++r) info.group_ranks.push_back(r);
  if (in) {
    info.dtype = parse_dtype(in->type);
    info.in_elements = in->elements();
    info.out_elements = out->elements();
  }
  info.in_split = in_split;
  info.out_split = out_split;
  collective_infos_.push_back(std::move(info));
  return static_cast<std::int32_t>(collective_infos_.size()) - 1;
}

Work ScriptWriter::collective(CollectiveOp op_kind, const Tensor& in, const Tensor& out,
                              const std::vector<std::int64_t>& in_split,
                              const std::vector<std::int64_t>& out_split, double largest_bytes) {
  const bool reduce = op_kind == CollectiveOp::all_reduce;
  const char* name = reduce ? "allreduce" : in_split.empty() ? "all_to_all" : "all_to_allv";
  Work result{.sequence = next_sequence_++};
  const std::size_t index = next_collective_++;
  if (index == shared_.machine.size()) {  // the first rank decides for all
    const double us = transfer_us(op_kind, largest_bytes, options_.ranks);
    shared_.machine.push_back({us, options_.ranks});
    shared_.truth.push_back({.sequence = result.sequence,
                             .op = op_kind,
                             .transfer_us = us,
                             .bytes = largest_bytes,
                             .gpu_ops = {},
                             .arrival_us = {}});
  }
  const Value pointer(std::int64_t{94594108284448} +
                      rank_ * 4096);  // a process group's address: differs per rank
  const Values described =
      reduce ? Values{std::vector<Tensor>{in}, result.sequence, pointer, rank_, name, in_split, out_split}
             : Values{in, result.sequence, pointer, rank_, name, in_split, out_split};
  const Values produced = reduce ? Values{std::vector<Tensor>{out}} : Values{out};
  op(
      reduce ? "c10d::allreduce_" : "c10d::alltoall_base_",
      reduce ? Values{std::vector<Tensor>{in}} : Values{out, in}, produced,
      [&] {
        op(
            "record_param_comms", described, produced,
            [&] {
              std::int32_t info = -1;
              if (options_.collective_metadata && window_) {
                info = collective_info(name, op_kind, result.sequence, in, out, in_split, out_split);
                ops_.back().collective = info;
              }
              call("cudaStreamIsCapturing", 0.7);
              work(5);
              wait_event(kCommStream, record_event(stream_), WaitPattern::communication_after_compute);
              work(2);
              scope(
                  reduce ? "nccl:all_reduce" : "nccl:all_to_all", CpuOp::Kind::annotation, {in}, {}, -1, 7, 3,
                  [&] {
                    call("INVALID", 0.3);
                    work(7);
                    wait_event(kCommStream, kNone, WaitPattern::communication_after_compute);
                    work(3);
                    const int item = add_item(
                        {.kind = ItemKind::kernel,
                         .duration_us = gpu_.between(0, 1.2),
                         .collective = static_cast<int>(index),
                         .delay_us = gpu_.between(1.6, 2.6)},
                        {.name =
                             reduce
                                 ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                                 : "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                         .stream = kCommStream,
                         .blocks = reduce ? 12 : 8,
                         .collective = info,
                         .group = static_cast<int>(index)});
                    call("cudaLaunchKernelExC", 7.5, item);
                    work(0.8);
                    wait_event(kCommStream, kNone, WaitPattern::communication_after_compute);
                    work(8);
                  });
              std::tie(result.event, result.record_call) = record_event_call(kCommStream);
              work(3);
              wait_event(kCommStream, kNone, WaitPattern::communication_after_compute);  // the future's
              work(2);
            },
            2, 2);
      },
      4, 1.5);
  return result;
}

}  // namespace stepcast::test::generator
