#include "stepcast/logs/detail/foreign_files.h"

#include <algorithm>
#include <vector>

#include "stepcast/logs/detail/log_text.h"
#include "stepcast/logs/detail/settings_blocks.h"

namespace stepcast::detail {
namespace {

struct Mark {
  std::string_view text, what;
};

constexpr Mark kMagics[] = {
    {"SQLite format 3", "a database of SQLite (an export of Nsight Systems, say)"},
    {"PK\x03\x04", "an archive (zip: a checkpoint of PyTorch or an .npz file, say)"},
    {"\x7f"
     "ELF",
     "a program"},
    {"\x89PNG", "a picture (PNG)"},
    {"\xff\xd8\xff", "a picture (JPEG)"},
    {"%PDF", "a PDF document"},
    {"\xff\xfe", "text in UTF-16, as PowerShell writes it: iconv -f UTF-16 -t UTF-8"},
    {"PAR1", "a table in Parquet"},
    {"\x93NUMPY", "an array of NumPy"},
    {"\x89HDF", "data in HDF5"},
    {"\x28\xb5\x2f\xfd", "data compressed by zstd: unpack it first"},
    {"\xfd"
     "7zXZ",
     "data compressed by xz: unpack it first"},
    {"BZh", "data compressed by bzip2: unpack it first"},
    {"\x80\x02", "a pickle of Python (a checkpoint of PyTorch, say)"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
    {"GGUF", "weights in GGUF"},
    {"ARROW1", "a table in Arrow"},
    {":W&B", "a run file of Weights & Biases: export its history as CSV"},
};

// The first of the list that a text holds names it.
constexpr Mark kTexts[] = {
    {"version https://git-lfs", "a pointer of git-lfs, not the file"},
    {"<!DOCTYPE", "a page (HTML)"},
    {"<html", "a page (HTML)"},
    {"NVIDIA-SMI", "the output of nvidia-smi"},
    {"utilization.gpu [%]", "readings of nvidia-smi"},
    {"# gpu ", "readings of nvidia-smi (dmon)"},
    {"#Entity", "readings of DCGM"},
    {"rocm-smi", "the output of rocm-smi"},
    {"# nThread", "the output of nccl-tests: `stepcast calibrate collectives` reads it"},
    {"# Collective test starting", "the output of rccl-tests: `stepcast calibrate collectives` reads it"},
    {"algbw", "the output of nccl-tests: `stepcast calibrate collectives` reads it"},
    {"BW average[", "the output of perftest (bandwidth of InfiniBand)"},
    {"Generating '/tmp/nsys-report", "messages of Nsight Systems"},
    {"CUDA Kernel Statistics", "a report of Nsight Systems"},
    {"cuda_gpu_kern_sum", "a report of Nsight Systems"},
    {"Avg prompt throughput", "the log of a server of models (vLLM): no training"},
    {"Decode batch. #running-req", "the log of a server of models (SGLang): no training"},
    {"[TRT-LLM]", "the log of TensorRT-LLM: no training"},
    {"text_generation_", "the log of a server of models (TGI): no training"},
    {"GRPCInferenceService", "the log of a server of models (Triton): no training"},
    {"llama_model_loader", "the log of llama.cpp: no training"},
    {"Uvicorn running on", "the log of a server"},
    {"lm_eval", "the log of an evaluation (lm-evaluation-harness)"},
    {"Requirement already satisfied", "the log of an installation (pip)"},
    {"Collecting package metadata", "the log of an installation (conda)"},
    {" : FROM ", "the log of building a container"},
    {"#0 building with", "the log of building a container"},
    {"[ 50%] Building ", "the log of a build"},
    {"ninja: ", "the log of a build"},
    {"diff --git", "a patch"},
    {"apiVersion:", "a manifest of Kubernetes"},
    {"NVRM: Xid", "the log of a system, with an error of a GPU (Xid)"},
    {"kernel: ", "the log of a system"},
    {"JobID", "a list of jobs (sacct): `stepcast predict --failures` reads logs of failures"},
    {"NODELIST", "a list of nodes (sinfo, squeue)"},
    {"NCCL WARN", "messages of NCCL"},
    {"torch.cuda.OutOfMemoryError", "a run that died before its first step: out of memory"},
    {"torch.OutOfMemoryError", "a run that died before its first step: out of memory"},
    {"CUDA out of memory", "a run that died before its first step: out of memory"},
    {"Traceback (most recent call last)", "a run that died before its first step (a Python traceback)"},
    {"Fatal Python error", "a run that died before its first step (Python itself)"},
    {"Segmentation fault", "a run that died before its first step (a segmentation fault)"},
    {"slurmstepd: error", "a run that Slurm ended before its first step"},
    {"NCCL INFO", "messages of NCCL"},
    {"\n```", "a document (Markdown)"},
    {"#!/", "a script: `--command-line` reads it"},
    {"#SBATCH", "a script: `--command-line` reads it"},
    {"torchrun ", "a script: `--command-line` reads it"},
    {"import torch", "a program in Python"},
    {"'loss':", "a log that tells losses and no times (lines of Hugging Face's Trainer without its bars)"},
    {"{\"loss\":", "a log that tells losses and no times"},
};

// So many of the first lines are those of a document in YAML.
bool looks_like_yaml(std::string_view text) {
  int yaml = 0, others = 0;
  std::vector<std::string_view> keys;
  while (!text.empty() && yaml + others < 12) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!trimmed(line).empty()) ++(is_yaml_line(line) || line == "---" ? yaml : others);
    // A key twice on one level is none of a document.
    const std::string_view key = line.substr(0, line.find(':'));
    if (!key.empty() && key.front() != ' ' && key.front() != '-' && key.front() != '#') {
      if (std::ranges::find(keys, key) != keys.end()) return false;
      keys.push_back(key);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return yaml >= 3 && others == 0;
}

}  // namespace

std::string_view name_of_binary(std::string_view beginning) {
  for (const Mark& magic : kMagics)
    if (beginning.starts_with(magic.text)) return magic.what;
  constexpr std::size_t kTar = 257;
  if (beginning.size() > kTar && beginning.substr(kTar).starts_with("ustar")) return "an archive (tar)";
  if (beginning.size() > 9 && beginning[8] == '{' && beginning[9] == '"') return "weights in safetensors";
  return "binary data";
}

std::string_view name_of_text(std::string_view beginning) {
  for (const Mark& mark : kTexts)
    if (beginning.find(mark.text) != std::string_view::npos) return mark.what;
  const std::string_view text = trimmed(beginning);
  if (text.starts_with('{') || text.starts_with("[{") || text.starts_with("[\n")) return "JSON";
  if (looks_like_yaml(beginning)) return "a document in YAML: `--config` reads those of frameworks";
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.find(',') != std::string_view::npos && line.find(": ") == std::string_view::npos &&
      line.find(" ") > line.find(','))
    return "a table (CSV) without columns of steps and their times";
  return {};
}

}  // namespace stepcast::detail
