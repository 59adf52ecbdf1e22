#!/bin/sh
# Fits the collective curves of the shipped platforms again: platforms/curves/NAME.json, which platforms/NAME.json
# extends. Needs the measured data (docs/collectives.md) and a built `stepcast`.
#
#   STEPCAST_DATA=/path/to/data STEPCAST=build/release/stepcast platforms/curves/regenerate.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${STEPCAST_DATA:?the folder with collectives/*.csv}/collectives
modern=$STEPCAST_DATA/modern/collectives
stepcast=${STEPCAST:-stepcast}

# fit NAME BASE MEASURED_ON DOCUMENT SOFTWARE FILE...
fit() {
  name=$1 base=$2 measured=$3 document=$4 software=$5
  shift 5
  "$stepcast" calibrate collectives "$@" --platform "$base" --measured-on "$measured" --name "$name-curves" \
    --document "$document" --software "$software" --row-hashes --no-plot -o "$here/$name.json" > /dev/null
}

aic='github.com/ai-dynamo/aiconfigurator 095f58a (Apache-2.0), nccl-tests sweeps'
vtrain='github.com/VIA-Research/vTrain f8dda84 (MIT), all_reduce tables'
ett='github.com/DebarghaG/estimate-train-time 1ac4d5e (MIT), collectives'
vidur='github.com/microsoft/vidur 7d47513 (MIT), network profiles'
echo_logs='github.com/NetX-lab/Echo 15f0d12 (MIT), nccl-tests logs'
xxrjun='github.com/xxrjun/nccl-tests-cluster 455de4f (Apache-2.0), nccl-tests logs'

fit dgx-a100 a100-sxm4-80gb a100_sxm "$aic" "NCCL 2.27.3" "$data/nccl_aiconfigurator.csv"
fit dgx-h100 h100-sxm5-80gb h100_sxm "$aic" "NCCL 2.23, 2.27.3, 2.29.2" "$data/nccl_aiconfigurator.csv"
fit dgx-h200 h200-sxm-141gb h200_sxm "$aic" "NCCL 2.23, 2.26.2, 2.29.2" "$modern/nccl_nvlink5.csv.gz"
fit dgx-b200 b200-sxm-180gb b200_sxm "$aic" "NCCL 2.27.3, 2.27.5, 2.28.9, 2.29.2" "$modern/nccl_nvlink5.csv.gz"
# Two and four GPUs of a rack; a tray has four.
fit gb200-nvl72 gb200-186gb gb200 "$aic" "NCCL 2.23, 2.29.2" "$modern/nccl_nvlink5.csv.gz"
newer=$STEPCAST_DATA/newer/collectives/nccl_nvlink5_b300_gb300.csv.gz
fit dgx-b300 b300-sxm-270gb b300_sxm "$aic" "NCCL 2.27, 2.29.2" "$newer"
fit gb300-nvl72 gb300-278gb gb300 "$aic" "NCCL 2.27, 2.29.2" "$newer"
# Eight GPUs of a rack are joined as those of a DGX of the same chips, whose all_reduce of floats they take: racks were measured
# on two and four.
take_eight() {
  python3 - "$here/$1.json" "$here/$2.json" << 'EOF'
import json, sys

def curves(text):
    depth, start = 0, None
    for j in range(text.index('"collective_curves": [') + 22, len(text)):
        if text[j] == "{":
            depth, start = depth + 1, j if depth == 0 else start
        elif text[j] == "}":
            depth -= 1
            if depth == 0:
                yield json.loads(text[start : j + 1]), text[start : j + 1], j + 1

dgx, rack = (open(name).read() for name in sys.argv[1:])
eight = next(t for c, t, _ in curves(dgx) if (c["collective"], c["dtype"], c["n_ranks"]) == ("all_reduce", "fp16", 8))
end = [e for c, _, e in curves(rack) if c["collective"] == "all_reduce"][-1]
open(sys.argv[2], "w").write(rack[:end] + ",\n    " + eight + rack[end:])
EOF
}
take_eight dgx-b200 gb200-nvl72
take_eight dgx-b300 gb300-nvl72
fit rtx-pro-6000-server rtx-pro-6000 rtx_pro_6000_server "$aic" "NCCL 2.29.2" "$data/nccl_aiconfigurator.csv"
fit azure-nd-a100-v4 a100-sxm4-40gb azure_nd_a100_v4 "$echo_logs" "NCCL" "$data/nccl_tests_logs.csv"
fit hpc-4xa100 a100-sxm4-80gb perlmutter "$ett" "PyTorch, profiler on rank 0" "$data/nccl_estimate_train_time.csv"
fit gh200-1gpu gh200-96gb vista "$ett" "PyTorch, profiler on rank 0" "$data/nccl_estimate_train_time.csv"
fit vidur-a100-dgx dgx-a100 vidur_a100_dgx "$vidur" "NCCL" "$data/nccl_vidur_dgx.csv"
fit vidur-h100-dgx dgx-h100 vidur_h100_dgx "$vidur" "NCCL" "$data/nccl_vidur_dgx.csv"
fit vtrain-a100 dgx-a100 vtrain_a100 "$vtrain" "NCCL" "$data/nccl_vtrain.csv"
fit vtrain-v100 dgx-1-v100 vtrain_v100 "$vtrain" "NCCL" "$data/nccl_vtrain.csv"
fit xxrjun-h100 dgx-h100 xxrjun_h100 "$xxrjun" "NCCL" "$data/nccl_tests_logs.csv"
fit xxrjun-example-cluster00 dgx-h100 xxrjun_example-cluster00 "$xxrjun" "NCCL" "$data/nccl_h100_pairs.csv"
# Three sizes per curve only.
fit xxrjun-example-cluster01 dgx-h100 xxrjun_example-cluster01 "$xxrjun" "NCCL" --min-sizes 3 "$data/nccl_h100_pairs.csv"

# For nodes that nobody measured, from all machines with curves from start-up to full bandwidth.
"$stepcast" calibrate related-systems "$data/nccl_aiconfigurator.csv" "$data/nccl_tests_logs.csv" \
  "$modern/nccl_nvlink5.csv.gz" --document "$aic; $echo_logs" -o "$here/related-systems.json" > /dev/null
