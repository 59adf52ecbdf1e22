#include "tests/support/dlrm_rank.h"

#include <algorithm>

namespace stepcast::test::generator {

void DlrmRank::rank_tensors() {
  for (const auto& [in, out] : {std::pair{13, 512}, {512, 256}, {256, kEmbeddingDim}})
    bottom_.push_back(tensor({in, out}));
  if (options_.top_blocks > 0) {
    for (int b = 0; b < options_.top_blocks; ++b) {
      top_.push_back(tensor({416, 1024}));
      top_.push_back(tensor({1024, 416}));
    }
    top_.push_back(tensor({416, 1}));
  } else {
    for (const auto& [in, out] : {std::pair{416, 1024}, {1024, 512}, {512, 256}, {256, 1}})
      top_.push_back(tensor({in, out}));
  }
  std::int64_t bottom = 0, top = 0;
  for (const Tensor& t : bottom_) bottom += t.elements();
  for (const Tensor& t : top_) top += t.elements();
  buckets_.push_back(tensor({top}));
  dense_table_ = tensor({kEmbeddingDim * 1000});
  buckets_.push_back(dense_table_);
  buckets_.push_back(tensor({bottom}));
  closes_.assign(top_.size() - 1, std::nullopt);
  closes_.insert(closes_.end(), {0, 1, std::nullopt, std::nullopt, 2});
  if (options_.bucket_bytes > 0) fill_buckets();
  reduced_.resize(buckets_.size());
  if (options_.pipeline == BatchPipeline::ahead) new_batch();  // copied before anything that is written here
  loss_ = tensor({});
}

// Every bucket closes with the gradient that brings it to the size that was asked for.
void DlrmRank::fill_buckets() {
  std::vector<Tensor> gradients{top_.rbegin(), top_.rend()};
  gradients.push_back(dense_table_);
  gradients.insert(gradients.end(), bottom_.rbegin(), bottom_.rend());
  buckets_.clear();
  closes_.clear();
  std::int64_t elements = 0;
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    elements += gradients[g].elements();
    const bool full =
        4.0 * static_cast<double>(elements) >= options_.bucket_bytes || g + 1 == gradients.size();
    closes_.push_back(full ? std::optional{static_cast<int>(buckets_.size())} : std::nullopt);
    if (full) buckets_.push_back(tensor({std::exchange(elements, 0)}));
  }
}

// Leftovers: what the step before still has in the streams when the window opens.
void DlrmRank::before_window() {
  next_sequence_ = 141;
  if (options_.pipeline == BatchPipeline::ahead) {
    copy_batch();
    distribute_sparse(false, kNone);
    lengths_->sequence = 141;
    values_->sequence = 142;
  }
  next_sequence_ = 147;
  const bool late = std::find(options_.late_gpu_ranks.begin(), options_.late_gpu_ranks.end(), rank_) !=
                    options_.late_gpu_ranks.end();
  for (int i = 0; i < 64; ++i) {
    work(8);
    elementwise("at::native::CUDAFunctor_add<float>", late ? 30e6 : 1e6);
  }
  work(60);
  Random skew(options_.seed * 77 + static_cast<std::uint64_t>(rank_));
  push({.kind = Instruction::Kind::work, .us = skew.between(0, options_.start_skew_us)});
}

void DlrmRank::write_job() {
  before_window();
  window_mark_ = mark();
  window_ = true;
  for (int s = 0; s < options_.steps; ++s) step(options_.first_step + s);
  work(30);
  const std::size_t c =
      add_call("cudaDeviceSynchronize",
               {.kind = Instruction::Kind::sync_device, .us = 12, .return_us = cpu_.between(6.5, 7.5)});
  synchronizing_.push_back({c, kNone, item_records_.size()});
  syncs_.push_back({.kind = StreamSync::Kind::context_sync, .call = c});
  work(10);
}

void DlrmRank::step(std::int64_t number) {
  scope(fmt::format("ProfilerStep#{}", number), CpuOp::Kind::step, {}, {}, -1, 18, 20, [&] {
    const bool ahead = options_.pipeline == BatchPipeline::ahead;
    annotation("## zero_grad ##", [&] {
      annotation("Optimizer.zero_grad#Adagrad.zero_grad", [&] {
        for (const Tensor& w : bottom_) {
          const Tensor flat = view(w, {w.elements()});
          op("aten::slice", {w, 0, 0, w.elements(), 1}, {flat}, [&] {
            op("aten::as_strided", {w, 0, 0, 0}, {flat});
          });
          op("aten::view", {flat, 0}, {view(w, w.shape)});
        }
      });
    });
    annotation("## copy_batch_to_gpu ##", [&] { copy_batch(); });
    if (ahead) {
      annotation("## wait_for_batch ##", [&] {
        wait_stream(kComputeStream, kDistributionStream);
        for (int i = 0; i < 4; ++i) op("aten::record_stream", {batches_.front().dense, 0}, {});
      });
    } else {
      annotation("## sparse_data_dist ##", [&] { distribute_sparse(false, kNone); });
    }
    int forward_event = kNone;
    annotation("## forward ##", [&] {
      if (ahead) forward_event = record_event(kComputeStream);
      annotation("DistributedDataParallel.forward", [&] { forward(); });
    });
    if (ahead) annotation("## sparse_data_dist ##", [&] { distribute_sparse(true, forward_event); });
    annotation("## backward ##", [&] { backward(); });
    annotation("## optimizer ##", [&] {
      annotation(
          "Optimizer.step#Adagrad.step", [&] { optimizer(); }, 100, 60);
    });
    if (options_.read_loss) {
      const Tensor host = tensor({}, "float", 4, false);
      op("aten::item", {loss_}, {0.69}, [&] {
        op("aten::_local_scalar_dense", {loss_}, {0.69}, [&] { copy_call(Copy::device_to_pageable, 4); });
      });
      work(25);
    }
    batches_.pop_front();
  });
}

void DlrmRank::copy_batch() {
  annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", [&] {
    for (int i = 0; i < 6; ++i) {
      work(cyclic(options_.loader_us, rank_) / 12);
      const Tensor t = tensor({options_.local_batch}, "int", 4, false);
      op(
          "aten::cat", {std::vector<Tensor>{t, t}, 0}, {t},
          [&] {
            op("aten::narrow", {t, 0, 0, 1}, {view(t, {1})});
          },
          cyclic(options_.loader_us, rank_) / 12, 2);
    }
  });
  std::vector<Tensor> host = {tensor({options_.local_batch, 13}, "float", 4, false),
                              tensor({8 * options_.local_batch}, "int", 4, false),
                              tensor({8 * options_.local_batch}, "int", 4, false),
                              tensor({options_.local_batch}, "float", 4, false)};
  for (const Tensor& t : host) {
    op("aten::pin_memory", {t, 0}, {t}, [&] {
      op("aten::is_pinned", {t, 0}, {}, [&] { call("cudaPointerGetAttributes", 1); });
      op("aten::_pin_memory", {t, 0}, {t}, [&] {
        call("cudaEventQuery", 1.2);
        op("aten::copy_", {t, t, 0}, {t});
      });
    });
  }
  const int before = std::exchange(stream_, kCopyStream);
  const Batch& batch = new_batch();
  copy(Copy::pinned_to_device, host[0], batch.dense);
  copy(Copy::pinned_to_device, host[1], batch.indices);
  copy(Copy::pinned_to_device, host[2], tensor({8 * options_.local_batch}, "int"));
  copy(Copy::pinned_to_device, host[3], batch.labels);
  stream_ = before;
  work(15);
}

void DlrmRank::scan(int blocks) {
  kernel("void cub::DeviceScanInitKernel<cub::ScanTileState<int, true> >(cub::ScanTileState<int, true>, int)",
         2.2, 1);
  call("cudaPeekAtLastError", 0.3);
  call("cudaDeviceGetAttribute", 0.3);
  kernel(
      "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*, int*, cub::ScanTileState<int, "
      "true>, cub::Sum, "
      "cub::NullType, int>(int*, int*, cub::ScanTileState<int, true>, int, cub::Sum, cub::NullType, int)",
      4.5, blocks);
}

// The features' lengths and values go to the ranks that hold the tables. The sizes go first, and the CPU has
// to know them.
void DlrmRank::distribute_sparse(bool waits_for_forward, int forward_event) {
  const int before = std::exchange(stream_, kDistributionStream);
  const double ranks = options_.ranks;
  const Tensor indices = batches_[waits_for_forward ? 1 : 0].indices;
  work(15);
  wait_stream(kDistributionStream, kCopyStream);
  for (int i = 0; i < 3; ++i) op("aten::record_stream", {indices, 0}, {});
  if (waits_for_forward) wait_event(kDistributionStream, forward_event, WaitPattern::other_stream);
  work(40);
  const Tensor permuted = tensor(indices.shape, "int");
  op("fbgemm::permute_2D_sparse_data", {indices, indices}, {permuted}, [&] {
    kernel("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)", 4.5,
           16);
    scan(8);
    kernel(
        "void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>(int, int, int, int "
        "const*, decltype(nullptr) "
        "const*, int const*, int const*, int const*, int*, decltype(nullptr)*)",
        9, 200);
  });
  const Tensor host_sizes = tensor({2 * options_.ranks}, "long int", 8, false);
  const Tensor sizes_in = tensor({2 * options_.ranks}, "long int", 8),
               sizes_out = tensor({2 * options_.ranks}, "long int", 8);
  copy(Copy::pageable_to_device, host_sizes, sizes_in);
  annotation("## all2all_data:kjt splits ##", [&] {
    op("aten::cat", {std::vector<Tensor>{sizes_in, sizes_in}, 0}, {sizes_in}, [&] {
      kernel(
          "void at::native::(anonymous namespace)::CatArrayBatchedCopy<long, unsigned int, 2, 128, 1>(long*, "
          "at::native::(anonymous "
          "namespace)::CatArrInputTensorMetadata<long, unsigned int, 128, 1>, int)",
          3.5, 8);
    });
    sizes_ = collective(CollectiveOp::all_to_all, sizes_in, sizes_out, {}, {}, 2 * ranks * 8);
  });
  annotation("## KJTListSplitsAwaitable wait() ##", [&] {
    annotation("## SplitsAllToAllAwaitable wait() ##", [&] {
      wait_for(*sizes_);
      copy(Copy::device_to_pageable, sizes_out, host_sizes);
    });
    const auto split = [&](std::int64_t per_rank) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(options_.ranks), per_rank);
    };
    const std::int64_t mine = cyclic(options_.tables, rank_);
    std::vector<std::int64_t> lengths_in;
    std::int64_t total_tables = 0;
    for (int r = 0; r < options_.ranks; ++r) {
      lengths_in.push_back(cyclic(options_.tables, r) * options_.local_batch);
      total_tables += cyclic(options_.tables, r);
    }
    const Tensor lengths_sent = tensor({total_tables * options_.local_batch}, "int");
    const Tensor lengths_got = tensor({mine * options_.local_batch * options_.ranks}, "int");
    annotation("## all2all_data:kjt lengths ##", [&] {
      lengths_ =
          collective(CollectiveOp::all_to_all, lengths_sent, lengths_got, lengths_in,
                     split(mine * options_.local_batch), 4.0 * static_cast<double>(lengths_sent.elements()));
    });
    std::vector<std::int64_t> values_in;
    std::int64_t sent = 0;
    for (int r = 0; r < options_.ranks; ++r) {
      values_in.push_back(std::int64_t{cyclic(options_.tables, r)} * options_.local_batch *
                          cyclic(options_.pooling, r));
      sent += values_in.back();
    }
    const std::int64_t from_each = mine * options_.local_batch * cyclic(options_.pooling, rank_);
    const Tensor values_sent = tensor({sent}, "int");
    received_ = tensor({from_each * options_.ranks}, "int");
    annotation("## all2all_data:kjt values ##", [&] {
      values_ = collective(CollectiveOp::all_to_all, values_sent, received_, values_in, split(from_each),
                           4.0 * static_cast<double>(sent));
    });
  });
  stream_ = before;
}

// Waits for the distributed features and brings them into the order of the tables.
void DlrmRank::use_sparse() {
  const Work lengths = *lengths_, values = *values_;
  const int before = std::exchange(stream_, kDistributionStream);
  annotation("## wait_sparse_data_dist ##", [&] {
    annotation("## KJTAllToAllTensorsAwaitable wait() ##", [&] {
      wait_for(lengths);
      wait_for(values);
      annotation("## all2all_data:recat_values ##", [&] {
        const Tensor sorted = tensor(received_.shape, "int");
        op("fbgemm::permute_2D_sparse_data", {received_, view(received_, received_.shape)}, {sorted}, [&] {
          kernel("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)", 5,
                 16);
          scan(8);
          op("aten::zero_", {sorted}, {sorted}, [&] { fill("int"); });
          kernel(
              "void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>(int, int, int, "
              "int const*, decltype("
              "nullptr) const*, int const*, int const*, int const*, int*, decltype(nullptr)*)",
              4 + 8.0 * static_cast<double>(received_.elements()) / 500e3, 400);
        });
        const Tensor sum = tensor({2}, "long int", 8);
        op("aten::sum", {sorted, 0}, {sum}, [&] {
          kernel(
              "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<long, "
              "at::native::func_wrapper_t<long, at::native::"
              "sum_functor<long, long, long> >, unsigned int, long, 4> >(int)",
              7, 80);
        });
        copy(Copy::device_to_pageable, sum, tensor({2}, "long int", 8, false));
      });
    });
  });
  stream_ = before;
  wait_stream(kComputeStream, kDistributionStream);
  for (int i = 0; i < 4; ++i) op("aten::record_stream", {received_, 0}, {});
}

}  // namespace stepcast::test::generator
