// Text of a profiler trace of any size, with the event mix, names and layout of a recorded training job:
// operators with shapes on two threads, launches, kernels with long template names, flows, memory events,
// Python functions.
//
//   LargeTrace trace(1);
//   std::string text = trace.header();
//   while (...) text += trace.step();          // about 2 MB each
//   text += trace.footer();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace stepcast::bench {

class LargeTrace {
 public:
  explicit LargeTrace(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

  std::string header() const {
    return R"J({
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85049802752,
      "computeMajor": 8, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 108
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1711964646000000000,
  "traceEvents": [)J";
  }

  // One training step: the autograd thread's operators, the main thread's, then what both launched.
  std::string step() {
    std::string text;
    const double start = clock_;
    annotation(text, fmt::format("ProfilerStep#{}", step_++), start, 300000);
    const std::uint64_t first = correlation_;
    for (int i = 0; i < kOpsPerThread; ++i) op(text, kAutogradThread, start + 150000 + i * 120.0);
    for (int i = 0; i < kOpsPerThread; ++i) op(text, kMainThread, start + i * 120.0);
    for (std::uint64_t c = first; c < correlation_; ++c)
      launch(text, c, start + 60.0 * static_cast<double>(c - first));
    clock_ += 300100;
    return text;
  }

  std::string footer() const {
    return R"J(
  {
    "name": "thread_name", "ph": "M", "ts": 4458676416431.397, "pid": 2910249, "tid": 2910249,
    "args": {
      "name": "thread 2910249 (python3.10)"
    }
  }
  ],
  "traceName": "/tmp/trace.json"
})J";
  }

 private:
  static constexpr int kOpsPerThread = 1200;
  static constexpr int kMainThread = 2910249;
  static constexpr int kAutogradThread = 2919752;

  std::uint64_t random(std::uint64_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 11) % n;
  }

  void annotation(std::string& text, std::string_view name, double ts, double dur) {
    text += fmt::format(
        R"(
  {{
    "ph": "X", "cat": "user_annotation", "name": "{}", "pid": 2910249, "tid": 2910249,
    "ts": {:.3f}, "dur": {:.3f},
    "args": {{
      "External id": {},"Record function id": {}, "Ev Idx": {}
    }}
  }},)",
        name, ts, dur, id_, id_, id_);
    ++id_;
  }

  void op(std::string& text, int thread, double ts) {
    constexpr std::string_view kOps[] = {"aten::linear",
                                         "aten::addmm",
                                         "aten::mm",
                                         "aten::add_",
                                         "aten::view",
                                         "aten::t",
                                         "aten::native_layer_norm",
                                         "aten::empty",
                                         "aten::copy_",
                                         "aten::cudnn_convolution",
                                         "aten::softmax",
                                         "autograd::engine::evaluate_function: AddmmBackward0",
                                         "torch::autograd::AccumulateGrad",
                                         "aten::_to_copy"};
    for (int level = 0; level < 3; ++level) {
      const auto rows = 1ULL << random(12);
      const auto columns = 1ULL << random(12);
      text += fmt::format(
          R"(
  {{
    "ph": "X", "cat": "cpu_op", "name": "{}", "pid": 2910249, "tid": {},
    "ts": {:.3f}, "dur": {:.3f},
    "args": {{
      "External id": {},"Record function id": {}, "Sequence number": {}, "Fwd thread id": 0, "Ev Idx": {}, "Input Dims": [[{}, {}], [{}], [], []], "Input type": ["float", "float", "Scalar", ""]
    }}
  }},)",
          kOps[random(std::size(kOps))], thread, ts + level * 3,
          100.0 - level * 20 + 0.001 * static_cast<double>(random(900)), id_, id_, id_ / 2, id_, rows,
          columns, columns);
      ++id_;
    }
    if (random(4) == 0) {
      text += fmt::format(
          R"(
  {{
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": 2910249, "tid": {},
    "ts": {:.3f},
    "args": {{
      "Total Reserved": {}, "Total Allocated": {}, "Bytes": 512, "Addr": 140382148398488, "Device Id": 0, "Device Type": 1
    }}
  }},)",
          thread, ts + 12, random(1ULL << 36), random(1ULL << 36));
    }
    if (random(2) == 0) {
      text += fmt::format(
          R"(
  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py({}): _call_impl", "pid": 2910249, "tid": {},
    "ts": {:.3f}, "dur": 90.125,
    "args": {{
      "Python parent id": {}, "Python id": {}, "Ev Idx": {}
    }}
  }},)",
          random(2000), thread, ts, id_, id_ + 1, id_);
    }
    correlation_ += 1;
  }

  void launch(std::string& text, std::uint64_t correlation, double ts) {
    constexpr std::string_view kAdd =
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3> >"
        "(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)";
    constexpr std::string_view kGemm = "ampere_sgemm_128x64_tn";
    constexpr std::string_view kCopy =
        "void at::native::elementwise_kernel<128, 2, "
        "at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda"
        "(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#7}::operator()() "
        "const::{lambda(float)#1}>"
        "(at::TensorIteratorBase&, "
        "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
        "const::{lambda()#7}::operator()() const::{lambda(float)#1} const&)::{lambda(int)#1}>(int, "
        "at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda>)";
    constexpr std::string_view kCutlass =
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>"
        "(cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4::Params)";
    constexpr std::string_view kSum =
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
        "at::native::func_wrapper_t<float, "
        "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, "
        "float)#1}>, "
        "unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
        "at::native::sum_functor>>)";
    constexpr std::string_view kLayerNorm =
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, "
        "float const*, float "
        "const*, float const*, float*, float*, float*)";
    constexpr std::string_view kKernels[] = {kAdd, kGemm, kCopy, kCutlass, kSum, kLayerNorm};
    const int thread = random(2) == 0 ? kMainThread : kAutogradThread;
    const std::uint64_t external = random(id_);
    text += fmt::format(
        R"(
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 2910249, "tid": {0},
    "ts": {1:.3f}, "dur": 6.{2},
    "args": {{
      "External id": {3}, "cbid": 211, "correlation": {4}
    }}
  }},
  {{
    "ph": "s", "id": {4}, "pid": 2910249, "tid": {0}, "ts": {1:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},)",
        thread, ts, random(900) + 100, external, correlation);
    text += fmt::format(
        R"(
  {{
    "ph": "X", "cat": "kernel", "name": "{0}", "pid": 0, "tid": 7,
    "ts": {1:.3f}, "dur": {2}.{3},
    "args": {{
      "External id": {4},
      "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": {5},
      "registers per thread": 40, "shared memory": 400,
      "blocks per SM": 4.740741,
      "warps per SM": 75.851852,
      "grid": [{6}, 1, 1],
      "block": [512, 1, 1],
      "est. achieved occupancy %": 75
    }}
  }},
  {{
    "ph": "f", "id": {5}, "pid": 0, "tid": 7, "ts": {1:.3f},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},)",
        kKernels[random(std::size(kKernels))], ts + 9.5, 1 + random(50), random(900) + 100, external,
        correlation, 1 + random(4096));
  }

  std::uint64_t state_;
  std::uint64_t id_ = 1;
  std::uint64_t correlation_ = 1;
  int step_ = 5;
  double clock_ = 4458676416431.397;
};

}  // namespace stepcast::bench
