#!/bin/sh
# Calibrates the shipped host times again: platforms/hosts/NAME.json, which platforms take their `host` from. The CPU of
# no trace is known; the parts are named by the GPU beside it.
#
#   STEPCAST_DATA=/path/to/data STEPCAST=build/release/stepcast platforms/hosts/regenerate.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${STEPCAST_DATA:?the folder with traces/ and modern/traces/}
stepcast=${STEPCAST:-stepcast}

# host NAME PLATFORM DATE DOCUMENT TRACE...
host() {
  name=$1 platform=$2 date=$3 document=$4
  shift 4
  "$stepcast" calibrate overheads "$@" --platform "$platform" --overheads-only --name "$name-host" \
    --document "$document" ${date:+--date "$date"} -o "$here/$name.json" --top 5
}

traces=$data/traces
modern=$data/modern/traces
host v100-sxm2 v100-sxm2-32gb '' \
  'DLRM on 8 V100 (github.com/facebookresearch/param 9b1946f, MIT) and df_index_resolver (github.com/facebookresearch/HolisticTraceAnalysis 0c2146a, MIT): all steps, as profiled' \
  "$traces/dlrm8" "$traces/df_index_resolver"
host v100-dgx-station v100-sxm2-32gb 2021 \
  'ResNet-50 of the Kineto samples with ProfilerStep (github.com/pytorch/kineto, BSD): all steps, as profiled' \
  "$traces/kineto_w0/d3fb4076_worker0.pt.trace.json.gz" "$traces/kineto_w0/worker0.pt.trace.json.gz" \
  "$traces/kineto_w0/worker0.1623143089861.pt.trace.json.gz" "$traces/kineto_w0/worker0.1623143566756.pt.trace.json.gz"
host a100 a100-sxm4-80gb '' \
  'DLRM on A100-PG509-200 (trace_diff control, github.com/facebookresearch/HolisticTraceAnalysis 0c2146a, MIT): six steps, as profiled' \
  "$traces/trace_diff_control"
measured=$here/../../data/measured
host h100 h100-sxm5-80gb 2026-11 \
  'training of BERT, GPT-2, Llama, ResNet-50 and DLRM on H100 80GB HBM3 and H200 (data/measured, PyTorch 2.11): times as without a profiler' \
  "$measured/h100-sxm5-80gb" "$measured/h200-sxm-141gb"
host mi300x mi300x '' \
  'inference of BERT-small and ViT on MI300X VF (github.com/AMD-AGI/TraceLens f0bb9f3, MIT): whole files, as profiled' \
  "$modern/mi300x_gaunernst_bert-small-uncased__1016001.json.gz" \
  "$modern/mi300x_Falconsai_nsfw_image_detection__1016002.json.gz"
