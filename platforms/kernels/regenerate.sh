#!/bin/sh
# Fits the kernel models of the shipped devices again: platforms/kernels/NAME.json, which platforms/NAME.json extends.
# Needs the measured data (docs/kernels.md) and a built `stepcast` with XGBoost. Takes minutes.
#
#   STEPCAST_DATA=/path/to/data STEPCAST=build/release/stepcast platforms/kernels/regenerate.sh [NAME...]
#
# Experts come out byte for byte, and the -pytorch records but 29 that ship as they were fitted before processes over sizes and
# trees that learn slowly were tried. The others ship as they were fitted before further features of products, convolutions and
# attention were known and before records of few shapes had Gaussian processes; some of them before
# records said their regime, which tells tables by type, whose device stands in for its relatives, from the rest (A100-SXM4
# has other attention in bf16, A100-PCIe-80GB the generic model, adapted, for batched products).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${STEPCAST_DATA:?the folder with kernels/*.csv}/kernels
stepcast=${STEPCAST:-stepcast}
wanted=" $* "
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

# fit NAME DOCUMENT SOFTWARE FILE...: the rows of these files that were measured on the device of platforms/NAME.json
fit() {
  name=$1 document=$2 software=$3
  shift 3
  case $wanted in *" $name "* | "  ") ;; *) return 0 ;; esac
  files=
  for file in "$@"; do
    # FILE:TYPE is the rows of one type.
    case $file in
    *:*)
      part=$scratch/${file##*:}_$(basename "${file%%:*}" .gz)
      gzip -dc "$data/${file%%:*}" | awk -F, -v type="${file##*:}" 'NR == 1 || $2 == type' >"$part"
      files="$files $part"
      ;;
    *) files="$files $data/$file" ;;
    esac
  done
  # shellcheck disable=SC2086  # the names have no blanks
  "$stepcast" calibrate kernels $files --platform "$name" --models-only --name "$name-kernels" \
    --document "$document" --software "$software" -o "$here/$name.json"
}

ett='github.com/DebarghaG/estimate-train-time 1ac4d5e (MIT), operators'
aic='github.com/ai-dynamo/aiconfigurator 095f58a (Apache-2.0), GEMM and attention'
neusight='github.com/sitar-lab/NeuSight 6945927 (MIT), training set'
modern='github.com/ai-dynamo/aiconfigurator 095f58a (Apache-2.0), GEMM and attention by type'
simumax='github.com/MooreThreads/SimuMax 4dcaae5 (Apache-2.0), A100-PCIe efficiencies'

fit a100-sxm4-80gb "$ett; $aic" 'PyTorch profiler; SGLang 0.5.10' \
  operators_fwd_bwd_a100_80gb.csv gemm_bf16_fwd.csv attention_prefill_bf16_fwd.csv
fit gh200-96gb "$ett" 'PyTorch profiler' operators_fwd_bwd_gh200.csv
# By type and regime, long runs where they reach as far as short ones. bf16 attention of the H100 stays that of
# FlashAttention 3, which training runs; H200 takes it from there.
gemm=../modern/kernels/gemm_by_dtype.csv.gz attention=../modern/kernels/attention_by_dtype.csv.gz
fit h100-sxm5-80gb "$modern; $aic" 'TensorRT-LLM 1.3.0rc20; bf16 attention: SGLang 0.5.10' \
  "$gemm" attention_prefill_bf16_fwd.csv "$attention:fp8"
fit h200-sxm-141gb "$modern" 'TensorRT-LLM 1.3.0rc20' "$gemm" "$attention:fp8"
for name in b200-sxm-180gb gb200-186gb l40s rtx-pro-6000; do
  fit "$name" "$modern" 'TensorRT-LLM 1.3.0rc15 to rc20' "$gemm" "$attention"
done
for name in b300-sxm-270gb gb300-278gb; do
  fit "$name" "$modern" 'TensorRT-LLM 1.3.0rc20' ../newer/kernels/gemm_by_dtype_b300_gb300.csv.gz \
    ../newer/kernels/attention_by_dtype_b300_gb300.csv.gz
done
vector='neusight_train_matmul_fp32.csv neusight_train_vector_fp32.csv'
# shellcheck disable=SC2086
{
  fit a100-pcie-40gb "$neusight" 'PyTorch 2.1, CUDA 12.1' $vector
  fit p4 "$neusight" 'PyTorch 2.1, CUDA 12.1' $vector neusight_train_conv_fp32.csv
  fit p100-pcie-16gb "$neusight" 'PyTorch 2.1, CUDA 12.1' $vector neusight_train_conv_fp32.csv
  fit t4 "$neusight" 'PyTorch 2.1, CUDA 12.1' $vector neusight_train_conv_fp32.csv
  fit v100-pcie-32gb "$neusight" 'PyTorch 2.1, CUDA 12.1' $vector neusight_train_conv_fp32.csv
}
fit a100-pcie-80gb "$neusight; $simumax" 'PyTorch 2.1, CUDA 12.1' neusight_train_conv_fp32.csv \
  simumax_a100_pcie_efficiency.csv

# What we measured ourselves (data/measured): collected NAME SKIPPED, a pattern of op/type. Not products and attention in types
# that public tables have of the device. Of the H200 not what its records know no better than those of the H100 do, moved by
# what the data sheets say: matrix work, optimizers, lookups (shapes held out: 26 and 26 %).
collected() {
  name=$1 file=$here/../../data/measured/$1/kernels.csv.gz
  case $wanted in *" $name-pytorch "* | "  ") ;; *) return 0 ;; esac
  gzip -dc "$file" | awk -F, -v skipped="$2" 'NR == 1 || ($2 "/" $5) !~ skipped' >"$scratch/$name.csv"
  timing=$(awk -F, '$2 == "between_two_events" { print $3 }' "${file%/*}/overheads.csv")
  "$stepcast" calibrate kernels "$scratch/$name.csv" --platform "$name" --models-only --name "$name-pytorch" \
    --timing-us "$timing" --document "data/measured/$name/kernels.csv.gz" --date 2026-11-27 \
    --software 'PyTorch 2.11, CUDA 13.0' -o "$here/$name-pytorch.json"
}
collected h100-sxm5-80gb '^(gemm|bmm|attention)/(bf16|fp16|fp8)$'
collected h200-sxm-141gb '^(gemm|bmm|attention|conv2d|embedding|embedding_bag|sgd|momentum_sgd|adam|adamw)/'

# Devices of one architecture share what only one of them was measured on; their own records come first.
extend() {
  case $wanted in *" $1 "* | "  ") ;; *) return 0 ;; esac
  sed -i "/^  \"description\"/a\\  \"extends\": \"$2.json\"," "$here/$1.json"
}
extend h100-sxm5-80gb h100-sxm5-80gb-pytorch
extend h100-sxm5-80gb-pytorch gh200-96gb
extend h200-sxm-141gb h200-sxm-141gb-pytorch
extend h200-sxm-141gb-pytorch h100-sxm5-80gb
extend a100-pcie-80gb a100-sxm4-80gb
# What those do not cover is answered by the models of all devices together.
for root in gh200-96gb a100-sxm4-80gb a100-pcie-40gb p4 p100-pcie-16gb t4 v100-pcie-32gb b200-sxm-180gb gb200-186gb \
  b300-sxm-270gb gb300-278gb l40s rtx-pro-6000; do extend "$root" generic; done

# Models for GPUs that nobody measured, from all of them.
case $wanted in *" generic "* | "  ")
  "$stepcast" calibrate generic-kernels "$data" "$data/$gemm" "$data/$attention" \
    --document "$ett; $aic; $modern; $neusight; $simumax" -o "$here/generic.json" ;;
esac

# Expert layers and the exchange of their tokens, of all devices that were measured.
experts='github.com/ai-dynamo/aiconfigurator 095f58a5 (Apache-2.0), expert layers (TensorRT-LLM 1.3.0rc20, A100: 1.0.0) and DeepEP (sglang)'
case $wanted in *" experts "* | "  ")
  "$stepcast" calibrate experts "$STEPCAST_DATA/modern/kernels/moe_layer.csv.gz" \
    "$STEPCAST_DATA/modern/kernels/expert_exchange.csv.gz" "$STEPCAST_DATA/newer/kernels/moe_layer_b300_gb300.csv.gz" \
    "$STEPCAST_DATA/newer/kernels/expert_exchange_b300_gb300.csv.gz" --document "$experts" -o "$here/experts.json" ;;
esac
# Who extends these also takes the collectives of measured nodes, for nodes that nobody measured.
extend experts ../curves/related-systems
extend generic experts
