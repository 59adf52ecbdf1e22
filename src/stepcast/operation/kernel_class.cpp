#include "stepcast/operation/kernel_class.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/names.h"
#include "stepcast/base/text.h"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

struct Patterns {
  KernelClass kernel_class;
  std::string_view parts;  // lower case, of two characters and more, with blanks between them
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
constexpr Patterns kKernelPatterns[] = {
    // Custom collectives that do not carry NCCL's name.
    {kComm,
     "cross_device_reduce one_shot_all_reduce two_shot_all_reduce multimem_all"
     " nvshmem deep_ep:: dpsk::ep:: mscclpp"},
    {kAttention,
     "flash_fwd flash_bwd flash_attn flashattn flash:: fmha attention attn_fwd"
     " attn_bwd mha_"},
    // Copies done by kernels; rocclr is the AMD runtime's copy engine fallback.
    {kMemory, "catarraybatchedcopy rocclr_copy rocclr_fill memcpy memset"},
    // Of Megatron Core and Transformer Engine.
    {kRouting, "moe_permute moe_unpermute sort_chunks_by_map"},
    {kEmbedding,
     "fbgemm embedding bounds_check_indices linearize_index find_long_segments"
     " permute_pooled_embs jagged krn_partial compute_grad_weight sum_and_scatter"
     " indexselect indexfunc index_kernel index_put index_copy index_fill"
     " index_select indexing_backward index_elementwise vectorized_gather"
     " scatter_gather scatter_fill"},
    {kNorm,
     "softmax layer_norm layernorm rms_norm rmsnorm batch_norm batchnorm group_norm"
     " groupnorm instance_norm gammabeta rowwisemoments computeinternalgradients"
     " bn_fw bn_bw ln_fwd ln_bwd _norm_"},
    // Layout changes around convolutions.
    {kMemory,
     "nchwtonhwc nhwctonchw transpose tensor_transform nchw2nhwc batched_transpose"
     " im2col col2im"},
    {kElementwise, "scalepackedtensor elemwisernn"},
    {kMemory, "addpadding"},
    {kElementwise, "op_tensor add_tensor_kernel"},
    // cijk_: Tensile, the kernels of rocBLAS and hipBLASLt
    // fft1d: convolution in the frequency domain
    // nvjet: cuBLAS on Hopper and later
    {kGemm,
     "gemm gemv cijk_ cutlass xmma winograd convolve conv2d conv_depthwise depthwise"
     " dgrad wgrad fprop cudnn::cnn cudnn::detail scudnn h884cudnn s884cudnn"
     " h1688cudnn s1688cudnn cask_cudnn splitkreduce epilogue::impl cublas fft1d"
     " fft2d flip_filter miopen gridwise_ naive_conv kernel_grouped_conv sp3asmconv"
     " triton_mm triton_tem persistrnn cudnn::rnn nvjet"},
    {kMemory, "direct_copy_kernel copy_kernel copy_device_to_device fillfunctor fill_kernel"},
    {KernelClass::other, "tensor_kernel_scan"},
    {kReduction, "triton_red triton_per"},
    {kElementwise, "triton_poi triton_for"},
    {kReduction,
     "reduce_kernel devicereduce pool nll_loss nllloss lpnorm cunn_classnll"
     " reduce_1block"},
    {kElementwise,
     "multi_tensor_apply adam elementwise dropout pointwise activation upsample"
     " rotary silu gelu triu_tril foreach"},
    {kReduction, "topk"},
};

// Used only where the kernel's name tells nothing.
constexpr Patterns kOpPatterns[] = {
    {kAttention, "scaled_dot_product attention"},
    {kEmbedding, "embedding index gather scatter"},
    {kNorm, "softmax norm"},
    {kGemm, "conv mm matmul linear"},
    {kMemory, "copy_ cat fill_ zero_"},
    {kReduction, "pool sum mean max min"},
    {kElementwise, "add mul div sub relu dropout _foreach"},
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
  explicit PatternSearch(std::span<const Patterns> rows) {
    for (const auto& [kernel_class, parts] : rows) {
      for (std::size_t at = 0, end = 0; end < parts.size(); at = end + 1) {
        end = std::min(parts.find(' ', at), parts.size());
        const std::string_view part = parts.substr(at, end - at);
        by_first_[static_cast<unsigned char>(part.front())].push_back(patterns_.size());
        begins_.set(pair(part[0], part[1]));
        patterns_.push_back({part, kernel_class});
      }
    }
  }
  // Of the first one; nothing where there is none.
  [[nodiscard]] std::optional<KernelClass> first_in(std::string_view text) const {
    std::size_t best = patterns_.size();
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (!begins_.test(pair(text[i], text[i + 1]))) continue;
      const std::string_view rest = text.substr(i);
      for (const std::size_t p : by_first_[static_cast<unsigned char>(text[i])]) {
        if (p >= best) break;
        if (rest.starts_with(patterns_[p].first)) best = p;
      }
    }
    if (best == patterns_.size()) return std::nullopt;
    return patterns_[best].second;
  }

 private:
  static std::size_t pair(char first, char second) {
    return static_cast<std::size_t>(static_cast<unsigned char>(first)) << 8U |
           static_cast<unsigned char>(second);
  }

  std::vector<std::pair<std::string_view, KernelClass>> patterns_;
  std::array<std::vector<std::size_t>, 256> by_first_;  // ascending
  std::bitset<std::size_t{1} << 16U> begins_;           // by the first two characters
};

constexpr auto kKernelClassNames =
    names<KernelClass::other>({"none", "gemm", "attention", "embedding", "expert_routing", "normalization",
                               "elementwise", "reduction", "memory", "communication", "other"});

}  // namespace

std::string_view to_string(KernelClass kernel_class) { return kKernelClassNames[kernel_class]; }

KernelClass classify_kernel(std::string_view kernel_name, std::string_view framework_op) {
  const std::string name = lower(kernel_name);
  if (begins_like_nccl(name)) return KernelClass::communication;
  static const PatternSearch kernel_patterns{kKernelPatterns};
  if (const auto found = kernel_patterns.first_in(name)) return *found;
  static const PatternSearch op_patterns{kOpPatterns};
  return op_patterns.first_in(lower(framework_op)).value_or(KernelClass::other);
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
