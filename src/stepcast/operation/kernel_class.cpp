#include "stepcast/operation/kernel_class.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

struct Pattern {
  std::string_view part;  // lower case
  KernelClass kernel_class;
};

constexpr KernelClass kComm = KernelClass::communication;
constexpr KernelClass kGemm = KernelClass::gemm;
constexpr KernelClass kAttention = KernelClass::attention;
constexpr KernelClass kEmbedding = KernelClass::embedding;
constexpr KernelClass kRouting = KernelClass::expert_routing;
constexpr KernelClass kNorm = KernelClass::normalization;
constexpr KernelClass kElementwise = KernelClass::elementwise;
constexpr KernelClass kReduction = KernelClass::reduction;
constexpr KernelClass kMemory = KernelClass::memory;

// The first pattern that is part of a kernel's name decides. The order therefore goes from the special to the
// general: "fbgemm" before "gemm", a copy functor before the element-wise kernel that runs it.
constexpr Pattern kKernelPatterns[] = {
    // Custom collectives that do not carry NCCL's name.
    {"cross_device_reduce", kComm},
    {"one_shot_all_reduce", kComm},
    {"two_shot_all_reduce", kComm},
    {"multimem_all", kComm},
    {"nvshmem", kComm},
    {"deep_ep::", kComm},
    {"dpsk::ep::", kComm},
    {"mscclpp", kComm},

    {"flash_fwd", kAttention},
    {"flash_bwd", kAttention},
    {"flash_attn", kAttention},
    {"flashattn", kAttention},
    {"flash::", kAttention},
    {"fmha", kAttention},
    {"attention", kAttention},
    {"attn_fwd", kAttention},
    {"attn_bwd", kAttention},
    {"mha_", kAttention},

    // Copies done by kernels; rocclr is the AMD runtime's copy engine fallback.
    {"catarraybatchedcopy", kMemory},
    {"rocclr_copy", kMemory},
    {"rocclr_fill", kMemory},
    {"memcpy", kMemory},
    {"memset", kMemory},

    // Of Megatron Core and Transformer Engine.
    {"moe_permute", kRouting},
    {"moe_unpermute", kRouting},
    {"sort_chunks_by_map", kRouting},

    {"fbgemm", kEmbedding},
    {"embedding", kEmbedding},
    {"bounds_check_indices", kEmbedding},
    {"linearize_index", kEmbedding},
    {"find_long_segments", kEmbedding},
    {"permute_pooled_embs", kEmbedding},
    {"jagged", kEmbedding},
    {"krn_partial", kEmbedding},
    {"compute_grad_weight", kEmbedding},
    {"sum_and_scatter", kEmbedding},
    {"indexselect", kEmbedding},
    {"indexfunc", kEmbedding},
    {"index_kernel", kEmbedding},
    {"index_put", kEmbedding},
    {"index_copy", kEmbedding},
    {"index_fill", kEmbedding},
    {"index_select", kEmbedding},
    {"indexing_backward", kEmbedding},
    {"index_elementwise", kEmbedding},
    {"vectorized_gather", kEmbedding},
    {"scatter_gather", kEmbedding},
    {"scatter_fill", kEmbedding},

    {"softmax", kNorm},
    {"layer_norm", kNorm},
    {"layernorm", kNorm},
    {"rms_norm", kNorm},
    {"rmsnorm", kNorm},
    {"batch_norm", kNorm},
    {"batchnorm", kNorm},
    {"group_norm", kNorm},
    {"groupnorm", kNorm},
    {"instance_norm", kNorm},
    {"gammabeta", kNorm},
    {"rowwisemoments", kNorm},
    {"computeinternalgradients", kNorm},
    {"bn_fw", kNorm},
    {"bn_bw", kNorm},
    {"ln_fwd", kNorm},
    {"ln_bwd", kNorm},
    {"_norm_", kNorm},

    // Layout changes around convolutions.
    {"nchwtonhwc", kMemory},
    {"nhwctonchw", kMemory},
    {"transpose", kMemory},
    {"tensor_transform", kMemory},
    {"nchw2nhwc", kMemory},
    {"batched_transpose", kMemory},
    {"im2col", kMemory},
    {"col2im", kMemory},

    {"scalepackedtensor", kElementwise},
    {"elemwisernn", kElementwise},
    {"addpadding", kMemory},
    {"op_tensor", kElementwise},
    {"add_tensor_kernel", kElementwise},

    {"gemm", kGemm},
    {"gemv", kGemm},
    {"cijk_", kGemm},  // Tensile, the kernels of rocBLAS and hipBLASLt
    {"cutlass", kGemm},
    {"xmma", kGemm},
    {"winograd", kGemm},
    {"convolve", kGemm},
    {"conv2d", kGemm},
    {"conv_depthwise", kGemm},
    {"depthwise", kGemm},
    {"dgrad", kGemm},
    {"wgrad", kGemm},
    {"fprop", kGemm},
    {"cudnn::cnn", kGemm},
    {"cudnn::detail", kGemm},
    {"scudnn", kGemm},
    {"h884cudnn", kGemm},
    {"s884cudnn", kGemm},
    {"h1688cudnn", kGemm},
    {"s1688cudnn", kGemm},
    {"cask_cudnn", kGemm},
    {"splitkreduce", kGemm},
    {"epilogue::impl", kGemm},
    {"cublas", kGemm},
    {"fft1d", kGemm},  // convolution in the frequency domain
    {"fft2d", kGemm},
    {"flip_filter", kGemm},
    {"miopen", kGemm},
    {"gridwise_", kGemm},
    {"naive_conv", kGemm},
    {"kernel_grouped_conv", kGemm},
    {"sp3asmconv", kGemm},
    {"triton_mm", kGemm},
    {"triton_tem", kGemm},
    {"persistrnn", kGemm},
    {"cudnn::rnn", kGemm},
    {"nvjet", kGemm},  // cuBLAS on Hopper and later

    {"direct_copy_kernel", kMemory},
    {"copy_kernel", kMemory},
    {"copy_device_to_device", kMemory},
    {"fillfunctor", kMemory},
    {"fill_kernel", kMemory},
    {"tensor_kernel_scan", KernelClass::other},

    {"triton_red", kReduction},
    {"triton_per", kReduction},
    {"triton_poi", kElementwise},
    {"triton_for", kElementwise},
    {"reduce_kernel", kReduction},
    {"devicereduce", kReduction},
    {"pool", kReduction},
    {"nll_loss", kReduction},
    {"nllloss", kReduction},
    {"lpnorm", kReduction},
    {"cunn_classnll", kReduction},
    {"reduce_1block", kReduction},
    {"multi_tensor_apply", kElementwise},
    {"adam", kElementwise},
    {"elementwise", kElementwise},
    {"dropout", kElementwise},
    {"pointwise", kElementwise},
    {"activation", kElementwise},
    {"upsample", kElementwise},
    {"rotary", kElementwise},
    {"silu", kElementwise},
    {"gelu", kElementwise},
    {"triu_tril", kElementwise},
    {"foreach", kElementwise},
    {"topk", kReduction},
};

// Used only where the kernel's name tells nothing.
constexpr Pattern kOpPatterns[] = {
    {"scaled_dot_product", kAttention},
    {"attention", kAttention},
    {"embedding", kEmbedding},
    {"index", kEmbedding},
    {"gather", kEmbedding},
    {"scatter", kEmbedding},
    {"softmax", kNorm},
    {"norm", kNorm},
    {"conv", kGemm},
    {"mm", kGemm},
    {"matmul", kGemm},
    {"linear", kGemm},
    {"copy_", kMemory},
    {"cat", kMemory},
    {"fill_", kMemory},
    {"zero_", kMemory},
    {"pool", kReduction},
    {"sum", kReduction},
    {"mean", kReduction},
    {"max", kReduction},
    {"min", kReduction},
    {"add", kElementwise},
    {"mul", kElementwise},
    {"div", kElementwise},
    {"sub", kElementwise},
    {"relu", kElementwise},
    {"dropout", kElementwise},
    {"_foreach", kElementwise},
};

// "ncclKernel_...", "void ncclDevKernel...", "rcclGenericKernel": the name must begin with it, so that a
// class that merely has such an argument is none.
bool begins_like_nccl(std::string_view name) {
  if (name.starts_with("void "sv)) name.remove_prefix(5);
  return name.starts_with("nccl"sv) || name.starts_with("rccl"sv) || name.starts_with("msccl"sv);
}

// Finds the first pattern of a list that a text contains, in one pass over the text: names of kernels have hundreds
// of characters, and there are many patterns.
class PatternSearch {
 public:
  explicit PatternSearch(std::span<const Pattern> patterns) : patterns_(patterns) {
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      by_first_[static_cast<unsigned char>(patterns[p].part.front())].push_back(p);
      begins_.set(pair(patterns[p].part[0], patterns[p].part[1]));
    }
  }
  [[nodiscard]] const Pattern* first_in(std::string_view text) const {
    std::size_t best = patterns_.size();
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (!begins_.test(pair(text[i], text[i + 1]))) continue;
      const std::string_view rest = text.substr(i);
      for (const std::size_t p : by_first_[static_cast<unsigned char>(text[i])]) {
        if (p >= best) break;
        if (rest.starts_with(patterns_[p].part)) best = p;
      }
    }
    return best < patterns_.size() ? &patterns_[best] : nullptr;
  }

 private:
  static std::size_t pair(char first, char second) {
    return static_cast<std::size_t>(static_cast<unsigned char>(first)) << 8U |
           static_cast<unsigned char>(second);
  }

  std::span<const Pattern> patterns_;                   // of two characters and more
  std::array<std::vector<std::size_t>, 256> by_first_;  // ascending
  std::bitset<std::size_t{1} << 16U> begins_;           // by the first two characters
};

constexpr auto kKernelClassNames = names<KernelClass>({{KernelClass::none, "none"},
                                                       {KernelClass::gemm, "gemm"},
                                                       {KernelClass::attention, "attention"},
                                                       {KernelClass::embedding, "embedding"},
                                                       {KernelClass::expert_routing, "expert_routing"},
                                                       {KernelClass::normalization, "normalization"},
                                                       {KernelClass::elementwise, "elementwise"},
                                                       {KernelClass::reduction, "reduction"},
                                                       {KernelClass::memory, "memory"},
                                                       {KernelClass::communication, "communication"},
                                                       {KernelClass::other, "other"}});

}  // namespace

std::string_view to_string(KernelClass kernel_class) { return kKernelClassNames[kernel_class]; }

KernelClass classify_kernel(std::string_view kernel_name, std::string_view framework_op) {
  const std::string name = lower(kernel_name);
  if (begins_like_nccl(name)) return KernelClass::communication;
  static const PatternSearch kernel_patterns{kKernelPatterns};
  if (const Pattern* found = kernel_patterns.first_in(name)) return found->kernel_class;
  if (!framework_op.empty()) {
    const std::string op = lower(framework_op);
    for (const Pattern& pattern : kOpPatterns)
      if (op.find(pattern.part) != std::string::npos) return pattern.kernel_class;
  }
  return KernelClass::other;
}

bool is_communication_kernel(std::string_view kernel_name) {
  return classify_kernel(kernel_name) == KernelClass::communication;
}

MemcpyKind memcpy_kind(std::string_view event_name) {
  const std::string name = lower(event_name);
  const auto has = [&name](std::string_view part) { return name.find(part) != std::string::npos; };
  if (!has("memcpy") && !has("copy")) return MemcpyKind::none;
  if (has("htod") || has("hosttodevice")) return MemcpyKind::host_to_device;
  if (has("dtoh") || has("devicetohost")) return MemcpyKind::device_to_host;
  if (has("dtod") || has("devicetodevice")) return MemcpyKind::device_to_device;
  if (has("htoh") || has("hosttohost")) return MemcpyKind::host_to_host;
  if (has("ptop") || has("peer")) return MemcpyKind::peer;
  return MemcpyKind::none;
}

}  // namespace stepcast
