// Forward, backward and optimizer of the recommendation model.
#include <algorithm>

#include "tests/support/dlrm_rank.h"

namespace stepcast::test::generator {

// What the backward of a layer of the top counts down to: loss, then of every layer ReLU, product, weight.
std::int64_t DlrmRank::sequence_of_top(std::size_t layer) const {
  const auto behind = static_cast<std::int64_t>(top_.size() - 1 - layer);
  return backward_sequence_ - 2 - 3 * behind;
}

void DlrmRank::linear_forward(const Tensor& input, const Tensor& weight, const Tensor& output, bool relu,
                              std::int64_t sequence) {
  forward_sequence_ = sequence;
  const std::int64_t in = weight.shape[0], out = weight.shape[1];
  // A layer keeps its weight as [out, in] and multiplies with the transposed.
  const Tensor stored = view(weight, {out, in}), transposed = view(weight, {in, out}),
               bias = view(weight, {out});
  op(
      "aten::linear", {input, stored, bias}, {output},
      [&] {
        op("aten::t", {stored}, {transposed}, [&] { op("aten::transpose", {stored, 0, 1}, {transposed}); });
        op(
            "aten::addmm", {bias, input, transposed, 1, 1}, {output},
            [&] {
              op("aten::expand", {bias, 0, 0}, {view(weight, {out})});
              gemm(out == 1 ? "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, "
                              "cublasGemvTensorStridedBatched<float const> >(int)"
                            : "volta_sgemm_128x64_tn",
                   static_cast<double>(options_.local_batch), static_cast<double>(out),
                   static_cast<double>(in));
            },
            14, 3);
      },
      2, 6);
  if (relu && sequence >= 0) ++forward_sequence_;
  if (relu) {
    op(
        "aten::relu", {output}, {output},
        [&] {
          op(
              "aten::clamp_min", {output, 0}, {output},
              [&] {
                elementwise("at::native::(anonymous namespace)::launch_clamp_scalar",
                            8.0 * static_cast<double>(output.elements()));
              },
              5, 1.5);
        },
        2, 7);
  }
  forward_sequence_ = -1;
}

void DlrmRank::forward() {
  Tensor x = batches_.front().dense;
  for (const Tensor& w : bottom_) {
    const Tensor y = tensor({options_.local_batch, w.shape[1]});
    linear_forward(x, w, y, true);
    x = y;
  }
  use_sparse();

  const std::int64_t tables = cyclic(options_.tables, rank_);
  const std::int64_t samples = std::int64_t{options_.local_batch} * options_.ranks;
  const double lookups = static_cast<double>(samples * tables * cyclic(options_.pooling, rank_));
  const Tensor pooled = tensor({samples, tables * kEmbeddingDim});
  op("aten::to", {received_, 4}, {received_}, [&] {
    op("aten::copy_", {received_, received_}, {received_},
       [&] { elementwise("at::native::direct_copy_kernel_cuda", 12 * lookups); });
  });
  op("fbgemm::asynchronous_complete_cumsum", {received_}, {tensor({samples * tables + 1}, "int")}, [&] {
    op("aten::zero_", {received_}, {received_}, [&] { fill("int"); });
    scan(32);
  });
  op("fbgemm::bounds_check_indices", {received_, received_}, {}, [&] {
    kernel(
        "void bounds_check_indices_kernel<long>(at::GenericPackedTensorAccessor<long, 1ul, "
        "at::RestrictPtrTraits, int>, long)",
        6, 256);
  });
  work(40);
  op(
      "fbgemm::split_embedding_codegen_lookup_adagrad_function",
      table_arguments(tables, received_, tensor({samples * tables + 1}, "long int", 8)), {pooled},
      [&] {
        kernel(
            "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, false, long, 1ul, "
            "16ul>(at::"
            "GenericPackedTensorAccessor<float, 1ul, at::RestrictPtrTraits, long>, long)",
            5 + lookups * kEmbeddingDim * 4 / 430e3, static_cast<double>(samples * tables) / 4);
      },
      14, 6);
  work(50);

  std::vector<std::int64_t> sent, got;
  std::int64_t total = 0;
  for (int r = 0; r < options_.ranks; ++r) {
    sent.push_back(options_.local_batch * tables * kEmbeddingDim);
    got.push_back(std::int64_t{options_.local_batch} * cyclic(options_.tables, r) * kEmbeddingDim);
    total += got.back();
  }
  double most = 0;
  for (int r = 0; r < options_.ranks; ++r) {
    most = std::max(most, 4.0 * static_cast<double>(samples) * cyclic(options_.tables, r) * kEmbeddingDim);
  }
  const Tensor output = tensor({total});
  op(
      "All2All_Pooled_Req", {pooled}, {output},
      [&] {
        annotation("## alltoall_fwd_single ##", [&] {
          pooled_ = collective(CollectiveOp::all_to_all, view(pooled, {samples * tables * kEmbeddingDim}),
                               output, sent, got, most);
        });
      },
      20, 15);
  work(60);
  const Tensor small = tensor({options_.local_batch, kEmbeddingDim});
  op(
      "fbgemm::dense_embedding_codegen_lookup_function",
      table_arguments(1, batches_.front().indices, tensor({options_.local_batch + 1}, "long int", 8)),
      {small},
      [&] {
        kernel(
            "void dense_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 1ul, "
            "16ul>(at::"
            "GenericPackedTensorAccessor<float, 1ul, at::RestrictPtrTraits, long>, long)",
            24, 512);
      },
      12, 5);
  work(60);
  const Tensor concatenated = tensor({options_.local_batch, total / options_.local_batch});
  annotation("## EmbeddingBagCollectionAwaitable wait() ##", [&] {
    op(
        "All2All_Pooled_Wait", {output}, {concatenated},
        [&] {
          wait_for(*pooled_);
          std::vector<Tensor> parts;
          std::int64_t offset = 0;
          for (std::int64_t n : got) {
            parts.push_back(view(output, {n}, offset));
            offset += n;
          }
          op("aten::split_with_sizes", {output, Value(got)}, {Value(parts)});
          op(
              "aten::cat", {Value(parts), 1}, {concatenated},
              [&] {
                kernel(
                    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, "
                    "64>(float*, int)",
                    3 + 8.0 * static_cast<double>(total) / 650e3, 512);
              },
              6, 2);
        },
        14, 10);
  });
  const Tensor interaction = tensor({options_.local_batch, 416});
  const std::int64_t features = total / options_.local_batch / kEmbeddingDim;
  op(
      "aten::bmm",
      {view(concatenated, {options_.local_batch, features, kEmbeddingDim}),
       view(concatenated, {options_.local_batch, kEmbeddingDim, features})},
      {view(interaction, {options_.local_batch, features, features})},
      [&] { gemm("volta_sgemm_128x32_tn", options_.local_batch, 27, 27 * 64); }, 14, 4);
  const Tensor index_host = tensor({351}, "long int", 8, false), index = tensor({351}, "long int", 8);
  op("aten::index", {interaction, index_host}, {interaction}, [&] {
    copy(Copy::pageable_to_device, index_host, index);
    kernel(
        "void at::native::index_elementwise_kernel<128, 4, "
        "at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::"
        "OpaqueType<4> > > >(int)",
        11, 320);
  });
  x = tensor({options_.local_batch, 416});
  op("aten::cat", {std::vector<Tensor>{interaction, small}, 1}, {x}, [&] {
    kernel(
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, "
        "int)",
        8, 256);
  });
  for (std::size_t i = 0; i < top_.size(); ++i) {
    const Tensor y = tensor({options_.local_batch, top_[i].shape[1]});
    linear_forward(x, top_[i], y, i + 1 < top_.size(), options_.top_blocks > 0 ? sequence_of_top(i) : -1);
    x = y;
  }
  op("aten::binary_cross_entropy_with_logits", {x, batches_.front().labels}, {loss_}, [&] {
    for (const char* name : {"at::native::neg_kernel_cuda", "at::native::exp_kernel_cuda",
                             "at::native::CUDAFunctor_add<float>", "at::native::log_kernel_cuda"}) {
      op(name[12] == 'n'   ? "aten::neg"
         : name[12] == 'e' ? "aten::exp_"
         : name[12] == 'l' ? "aten::log_"
                           : "aten::add_",
         {x}, {x}, [&] { elementwise(name, 8.0 * options_.local_batch); });
    }
    op("aten::mean", {x}, {loss_}, [&] {
      kernel(
          "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
          "float>, unsigned int, float, "
          "4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned int, float, 4>)",
          7, 1);
    });
  });
}

void DlrmRank::accumulate(const Tensor& parameter) {
  const std::optional<int> bucket = closes_[next_gradient_++ % closes_.size()];
  --backward_sequence_;
  op(
      "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {}, {},
      [&] {
        op("torch::autograd::AccumulateGrad", {parameter}, {},
           [&] { op("aten::detach", {parameter}, {parameter}); });
        op("aten::mul", {parameter, 0.25}, {parameter}, [&] {
          elementwise(
              "at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> "
              ">",
              8.0 * static_cast<double>(parameter.elements()));
        });
        if (bucket) {
          const Tensor& b = buckets_[static_cast<std::size_t>(*bucket)];
          reduced_[static_cast<std::size_t>(*bucket)] =
              collective(CollectiveOp::all_reduce, b, b, {}, {}, 4.0 * static_cast<double>(b.elements()));
        }
      },
      2, 4);
  work(4);
}

void DlrmRank::linear_backward(const Tensor& weight, double batch, bool relu) {
  const std::int64_t samples = options_.local_batch, inputs = weight.shape[0], outputs = weight.shape[1];
  const double in = static_cast<double>(inputs), out = static_cast<double>(outputs);
  // In the storage of the weight, which is what the optimizer waits for.
  const Tensor gradient = view(weight, {samples, outputs});
  if (relu) {
    backward_of("ReluBackward0", [&] {
      op(
          "aten::threshold_backward", {gradient, gradient, 0}, {gradient},
          [&] {
            elementwise(
                "at::native::BinaryFunctor<float, float, float, at::native::(anonymous "
                "namespace)::threshold_kernel_impl<float> >",
                12 * batch * out);
          },
          6, 2);
    });
  }
  backward_of("AddmmBackward0", [&] {
    const Tensor stored = view(weight, {outputs, inputs}), transposed = view(weight, {inputs, outputs});
    op("aten::t", {transposed}, {stored}, [&] { op("aten::transpose", {transposed, 0, 1}, {stored}); });
    op(
        "aten::mm", {gradient, stored}, {view(weight, {samples, inputs})},
        [&] { gemm("volta_sgemm_128x64_nn", batch, in, out); }, 11, 2);
    op(
        "aten::mm", {view(weight, {outputs, samples}), view(weight, {samples, inputs})}, {stored},
        [&] { gemm("volta_sgemm_128x32_nt", in, out, batch); }, 11, 2);
    op(
        "aten::sum", {gradient, std::vector<std::int64_t>{0}}, {view(weight, {outputs})},
        [&] {
          kernel(
              "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, "
              "at::native::func_wrapper_t<float, at::native::"
              "sum_functor<float, float, float> >, unsigned int, float, 4> >(int)",
              5 + 4 * batch * out / 700e3, 32);
        },
        9, 2);
  });
}

void DlrmRank::backward() {
  op(
      "aten::sum", {loss_}, {loss_},
      [&] {
        kernel(
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
            "at::native::func_wrapper_t<float, at::native::sum_functor<"
            "float, float, float> >, unsigned int, float, 4> >(int)",
            7, 1);
      },
      12, 4);
  op("aten::ones_like", {loss_}, {loss_}, [&] { fill("float"); });
  work(15);
  const int begun = flags_++, cpu_gradient = flags_++, done = flags_++;
  push({.kind = Instruction::Kind::raise, .flag = begun});

  thread_ = kAutograd;
  push({.kind = Instruction::Kind::await, .us = cpu_.between(95, 180), .flag = begun});
  const double batch = options_.local_batch;
  backward_of("BinaryCrossEntropyWithLogitsBackward0", [&] {
    for (const char* name : {"aten::sigmoid", "aten::sub_", "aten::mul_", "aten::div_"}) {
      op(name, {loss_}, {loss_}, [&] { elementwise("at::native::sigmoid_kernel_cuda", 12 * batch); });
    }
  });
  if (options_.recompute_top) {
    backward_of("CheckpointFunctionBackward", [&] {
      Tensor x = tensor({options_.local_batch, top_.front().shape[0]});
      for (std::size_t i = 0; i < top_.size(); ++i) {
        const Tensor y = tensor({options_.local_batch, top_[i].shape[1]});
        linear_forward(x, top_[i], y, i + 1 < top_.size());
        x = y;
      }
    });
  }
  for (std::size_t i = top_.size(); i-- > 0;) {
    if (options_.recompute_blocks && i % 2 == 1) {  // the last layer of a block
      op("autograd::engine::evaluate_function: CheckpointFunctionBackward", {}, {}, [&] {
        const Tensor middle = tensor({options_.local_batch, top_[i - 1].shape[1]}),
                     input = tensor({options_.local_batch, top_[i - 1].shape[0]});
        linear_forward(input, top_[i - 1], middle, true);
        linear_forward(middle, top_[i], tensor({options_.local_batch, top_[i].shape[1]}), true);
      });
    }
    linear_backward(top_[i], batch, i + 1 < top_.size());
    accumulate(top_[i]);
  }
  backward_of("IndexBackward0", [&] {
    const Tensor host = tensor({351}, "long int", 8, false);
    op("aten::new_zeros", {loss_}, {loss_},
       [&] { op("aten::zero_", {loss_}, {loss_}, [&] { fill("float"); }); });
    op("aten::_index_put_impl_", {loss_, host}, {loss_}, [&] {
      copy(Copy::pageable_to_device, host, tensor({351}, "long int", 8));
      kernel(
          "void "
          "at_cuda_detail::cub::DeviceRadixSortSingleTileKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<"
          "long, at::cuda::cub::"
          "detail::OpaqueType<8>, int>::Policy800, false, long, int>(int)",
          16, 1);
      kernel(
          "void (anonymous namespace)::indexing_backward_kernel<float, 4>(long*, long*, float*, float*, "
          "long, long, long, long, bool)",
          14, 352);
    });
  });
  const std::int64_t samples_of_rank = options_.local_batch;
  std::int64_t features = 0;
  for (int r = 0; r < options_.ranks; ++r) features += cyclic(options_.tables, r);
  backward_of("BmmBackward0", [&] {
    for (int i = 0; i < 2; ++i) {
      op(
          "aten::bmm",
          {view(loss_, {samples_of_rank, features, features}),
           view(loss_, {samples_of_rank, features, kEmbeddingDim})},
          {view(loss_, {samples_of_rank, features, kEmbeddingDim})},
          [&] { gemm("volta_sgemm_128x32_nn", batch, 27, 27 * 64); }, 12, 3);
    }
  });

  const std::int64_t tables = cyclic(options_.tables, rank_);
  const std::int64_t samples = std::int64_t{options_.local_batch} * options_.ranks;
  const double lookups = static_cast<double>(samples * tables * cyclic(options_.pooling, rank_));
  std::vector<std::int64_t> sent, got;
  std::int64_t total = 0;
  double most = 0;
  for (int r = 0; r < options_.ranks; ++r) {
    sent.push_back(std::int64_t{options_.local_batch} * cyclic(options_.tables, r) * kEmbeddingDim);
    got.push_back(options_.local_batch * tables * kEmbeddingDim);
    total += sent.back();
    most = std::max(most, 4.0 * static_cast<double>(samples) * cyclic(options_.tables, r) * kEmbeddingDim);
  }
  const Tensor gradient = tensor({total}), gradient_got = tensor({samples * tables * kEmbeddingDim});
  backward_of("All2All_Pooled_WaitBackward", [&] {
    for (int r = 0; r < options_.ranks; ++r) {
      const Tensor part = tensor({sent[static_cast<std::size_t>(r)]});
      op("aten::contiguous", {part, 0}, {part}, [&] {
        op("aten::copy_", {part, part}, {part}, [&] {
          elementwise("at::native::direct_copy_kernel_cuda", 8.0 * static_cast<double>(part.elements()));
        });
      });
    }
    op("aten::cat", {gradient, 0}, {gradient}, [&] {
      kernel(
          "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, "
          "1>(float*, int)",
          3 + 8.0 * static_cast<double>(total) / 650e3, 512);
    });
    annotation("## alltoall_bwd_single ##", [&] {
      pooled_gradient_ = collective(CollectiveOp::all_to_all, gradient, gradient_got, sent, got, most);
    });
  });
  backward_of("torch::autograd::CppNode<SplitLookupFunction_Dense_Op>", [&] {
    op("aten::zeros", {0}, {loss_}, [&] { fill("float"); });
    kernel(
        "void split_embedding_backward_codegen_dense_unweighted_kernel_warp_per_row_1<float, float, float, "
        "1ul, 16>(int)",
        60, 500);
  });
  accumulate(dense_table_);
  backward_of("All2All_Pooled_ReqBackward", [&] {
    wait_for(*pooled_gradient_);
    const Tensor scaled = view(gradient_got, {samples, tables * kEmbeddingDim});
    op("aten::view", {gradient_got, 0}, {scaled});
    op("aten::div_", {scaled, 4.0}, {scaled}, [&] {
      elementwise(
          "at::native::BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >",
          8.0 * static_cast<double>(gradient_got.elements()));
    });
  });
  backward_of("torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>", [&] {
    kernel(
        "void linearize_index_kernel<long>(at::GenericPackedTensorAccessor<long, 1ul, at::RestrictPtrTraits, "
        "int>, long)",
        4 + 12 * lookups / 600e3, 512);
    kernel(
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, "
        "false, long, int, int>(long "
        "const*, long*, int const*, int*, int, int, int)",
        8 + 60 * lookups / 600e3, 600);
    op("aten::zeros_like", {loss_}, {loss_},
       [&] { op("aten::zero_", {loss_}, {loss_}, [&] { fill("float"); }); });
    kernel(
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*, "
        "cub::ConstantInputIterator<int, int>, int*, int*, "
        "cub::Equality, cub::Sum, int>::PtxReduceByKeyPolicy, long*>(long*)",
        5 + 16 * lookups / 600e3, 256);
    scan(64);
    kernel(
        "split_embedding_backward_codegen_adagrad_unweighted_find_long_segments(at::"
        "GenericPackedTensorAccessor<int, 1ul, at::"
        "RestrictPtrTraits, int>, int)",
        6, 64);
    kernel(
        "void split_embedding_backward_codegen_adagrad_unweighted_kernel_warp_per_row_1<float, float, float, "
        "1ul, 16>(at::"
        "GenericPackedTensorAccessor<float, 2ul, at::RestrictPtrTraits, long>, long)",
        10 + lookups * kEmbeddingDim * 4 / 300e3, static_cast<double>(samples * tables) / 2);
  });
  push({.kind = Instruction::Kind::raise, .flag = cpu_gradient});
  for (std::size_t i = bottom_.size(); i-- > 0;) {
    linear_backward(bottom_[i], batch, true);
    accumulate(bottom_[i]);
  }
  for (const auto& work_done : reduced_) {
    wait_event(kComputeStream, work_done->event, WaitPattern::gradients_reduced);
    for (int i = 0; i < 3; ++i) {
      op(
          "aten::select", {loss_, 0, i}, {loss_},
          [&] {
            op(
                "aten::as_strided", {loss_, 0}, {loss_}, [] {}, 0.6, 0);
          },
          0.9, 0.2);
      op(
          "aten::item", {loss_}, {1},
          [&] {
            op(
                "aten::_local_scalar_dense", {loss_}, {1}, [] {}, 0.5, 0);
          },
          0.5, 0.2);
    }
  }
  push({.kind = Instruction::Kind::raise, .flag = done});
  thread_ = kMain;

  push({.kind = Instruction::Kind::await, .us = cpu_.between(8, 40), .flag = cpu_gradient});
  op(
      "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {}, {},
      [&] { op("torch::autograd::AccumulateGrad", {batches_.front().labels}, {}); }, 6, 3);
  push({.kind = Instruction::Kind::await, .us = cpu_.between(38, 49), .flag = done});
}

void DlrmRank::optimizer() {
  const auto update = [&](const Tensor& p) {
    op("aten::add_", {p, 1}, {p}, [&] { op("aten::item", {p}, {1}); });
    const double bytes = 4.0 * static_cast<double>(p.elements());
    op("aten::addcmul_", {p, p, p}, {p}, [&] { elementwise("at::native::addcmul_cuda_kernel", 4 * bytes); });
    op("aten::sqrt", {p}, {p}, [&] { elementwise("at::native::sqrt_kernel_cuda", 2 * bytes); });
    op("aten::add_", {p, 1e-8}, {p},
       [&] { elementwise("at::native::CUDAFunctorOnSelf_add<float>", 2 * bytes); });
    op("aten::addcdiv_", {p, p, p}, {p}, [&] { elementwise("at::native::addcdiv_cuda_kernel", 4 * bytes); });
    work(4);
  };
  for (const Tensor& p : bottom_) update(p);
  for (const Tensor& p : top_) update(p);
}

}  // namespace stepcast::test::generator
