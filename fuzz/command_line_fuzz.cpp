// Command lines of all verbs, in this process: each byte chooses a word of a table. An exit code of verbs.h, nothing on
// standard output with exit codes 1 and 2 (but of `inspect`), no crash; libFuzzer's own limits watch time and memory
// (-timeout=10 -rss_limit_mb=1024). Run it in an empty folder: verbs write where they are told.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "command_line.h"
#include "verbs.h"

namespace {

using std::string_view_literals::operator""sv;

void require(bool condition) {
  if (!condition) std::abort();
}

// Verbs that finish quickly on what there is here.
constexpr std::array kVerbs{"predict"sv,   "predict"sv, "predict"sv,  "models"sv,    "platforms"sv,
                            "replay"sv,    "inspect"sv, "validate"sv, "version"sv,   "completion"sv,
                            "reference"sv, "help"sv,    "predit"sv,   "calibrate"sv, "--help"sv,
                            "-V"sv,        ""sv,        "--json"sv};
constexpr std::array kWords{
    "--model"sv, "--platform"sv, "--gpus"sv, "--nodes"sv, "--gpus-per-node"sv, "--tp"sv, "--pp"sv, "--cp"sv,
    "--ep"sv, "--mbs"sv, "--gbs"sv, "--seq"sv, "--dtype"sv, "--framework"sv, "--command-line"sv,
    "--torchtitan"sv, "--deepspeed"sv, "--what-if"sv, "--train-tokens"sv, "--train-samples"sv,
    "--gpu-hour-price"sv, "--explain"sv, "--published"sv, "--json"sv, "--require-fit"sv, "--timeline"sv,
    "--help"sv, "--trace"sv, "--zero-stage"sv, "--sequence-parallel"sv, "--use-distributed-optimizer"sv,
    "--recompute-granularity"sv, "--num-layers"sv, "--hidden-size"sv, "--num-attention-heads"sv,
    "--vocab-size"sv, "--num-experts"sv, "--bf16"sv, "--fp8-format"sv,
    "--num-layers-per-virtual-pipeline-stage"sv, "--data"sv, "--rows"sv, "--protocol"sv, "--step"sv,
    "--ranks"sv, "--names"sv, "-o"sv, "--date"sv, "--min-sizes"sv, "--swiglu"sv, "--lora-rank"sv,
    "--optimizer-cpu-offload"sv,
    // values
    "llama-3-8b"sv, "gpt2"sv, "mixtral-8x7b"sv, "deepseek-v3"sv, "bert-large"sv, "llama-3.1-405b"sv,
    "dgx-h100"sv, "h100"sv, "t4"sv, "gb200-nvl72"sv, "hpc-4xmi250x"sv, "unstated-8gpu"sv, "0"sv, "1"sv, "2"sv,
    "3"sv, "4"sv, "8"sv, "16"sv, "64"sv, "72"sv, "512"sv, "4096"sv, "8k"sv, "131072"sv, "15T"sv, "1e3"sv,
    "010"sv, "-1"sv, "1.5"sv, "inf"sv, "nan"sv, "1e400"sv, "99999999999999999999"sv, ""sv, "full"sv,
    "selective"sv, "bf16"sv, "fp8"sv, "fp16"sv, "fsdp"sv, "nemo"sv, "deepspeed"sv, "torchtitan"sv,
    "nvlink=2x"sv, "gemm=0x"sv, "/nonexistent"sv, "."sv, "out.json"sv, "/dev/null"sv, "collectives"sv,
    "kernels"sv, "iterations"sv, "bash"sv, "zsh"sv, "presets"sv, "\x1b[31m"sv, "=;'\""sv,
    "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings "
    "1024 "
    "--vocab-size 50257 --micro-batch-size 1 --global-batch-size 8 --bf16"sv,
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers $N"sv, "2024-13"sv, "e4m3"sv};

// What is printed goes into a file without a name; its length says whether anything was.
long length_and_clear(int file) {
  const long length = ::lseek(file, 0, SEEK_END);
  require(::ftruncate(file, 0) == 0 && ::lseek(file, 0, SEEK_SET) == 0);
  return length;
}

int captured_output() {
  static const int kFile = [] {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / "stepcast_fuzz_XXXXXX";
    std::string name = folder.string();
    require(::mkdtemp(name.data()) != nullptr);
    std::filesystem::current_path(name);
    const int file = ::open("printed", O_RDWR | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0);
    return file;
  }();
  return kFile;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostWords = 24;
  const int printed = captured_output();
  std::vector<std::string> words{"stepcast"};
  if (size > 0) words.emplace_back(kVerbs[data[0] % kVerbs.size()]);
  for (std::size_t i = 1; i < size && words.size() < kMostWords; ++i) {
    words.emplace_back(kWords[data[i] % kWords.size()]);
  }
  // What to change of a step is found by some twenty predictions and a search of layouts, minutes of them under sanitizers.
  const bool is_predicted = words.size() > 1 && words[1] == "predict";
  if (is_predicted && std::find(words.begin(), words.end(), "--trace") == words.end())
    words.emplace_back("--advice=off");
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const int code = stepcast::cli::run_command_line(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  const long length = length_and_clear(printed);
  require(code >= 0 && code <= stepcast::cli::kDoesNotFit);
  // `inspect` shows the files that it can read, and then says what is wrong with the others.
  const bool shows_some = words.size() > 1 && words[1] == "inspect";
  if ((code == stepcast::cli::kInternalError || code == stepcast::cli::kBadInput) && !shows_some) {
    require(length == 0);
  }
  return 0;
}
