// Kernel measurements that follow a law, for tests that want to know what is right.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

namespace stepcast::test {

// A device in the form of a platform file, for which no model ships.
inline constexpr const char* kMadePlatform = R"({
  "stepcast_platform": 1, "name": "made-1",
  "device": {"name": "Made-1", "aliases": ["made one"], "vendor": "Nobody", "architecture": "made",
    "peak_fp16_TFLOPs": 100, "peak_bf16_TFLOPs": 100, "peak_fp32_TFLOPs": 10, "vector_fp32_TFLOPs": 10, "vector_fp16_TFLOPs": 20,
    "memory_bandwidth_GBps": 1000, "memory_GiB": 32, "sm_count": 64, "clock_MHz": 1500, "l2_MiB": 16,
    "launch_overhead_us": 4, "kernel_floor_us": 2}
})";

// 45 % of the peak, and 11 us on top.
inline double made_gemm_us(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 11 + 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 45e6;
}

// 60 % of the bandwidth and 7 us on top; four bytes an element.
inline double made_norm_us(std::int64_t rows, std::int64_t cols) {
  return 7 + 4 * static_cast<double>(rows) * static_cast<double>(cols) / 600e3;
}

// Rows of both with 1 % noise, in the project's own schema: 162 each, or 45 each, which are fitted much
// faster.
inline std::string made_kernels_csv(bool few = false) {
  std::string text =
      "gpu,op,direction,dtype,m,n,k,rows,cols,hidden_size,sequence_length_tokens,time_us,time_us_p10,"
      "time_us_p90,n,software\n";
  std::mt19937_64 random{7};
  const auto noisy = [&](double us) {
    return us * (1 + 0.02 * (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5));
  };
  for (std::int64_t d = 512; d <= 4096; d += few ? 896 : 448) {
    for (const std::int64_t length : {512, 1024, 3072, 1536, 2048, 4096}) {
      if (few && (length == 1536 || length == 2048 || length == 4096)) continue;
      for (const std::int64_t batch : {1, 2, 4}) {
        const std::int64_t m = batch * length;
        text += fmt::format("Made-1,gemm,forward,fp16,{},{},{},,,{},{},{:.3f},,,,made\n", m, d, d, d, length,
                            noisy(made_gemm_us(m, d, d)));
        text += fmt::format("Made-1,rms_norm,forward,fp16,,,,{},{},{},{},{:.3f},,,,made\n", m, d, d, length,
                            noisy(made_norm_us(m, d)));
      }
    }
  }
  return text;
}

}  // namespace stepcast::test
