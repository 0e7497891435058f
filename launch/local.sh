#!/usr/bin/env bash
# One host, torchrun by hand: rank 0 the server, ranks 1..P the machines. The same job as `llcg train "$@"`.
#   launch/local.sh [-p MACHINES] [overrides...]
# torchrun's own stores listen on every interface of the host and are not sealed (docs/security.md); that of `llcg train`
# listens on 127.0.0.1 and is.
set -euo pipefail
machines=4
if [ "${1:-}" = "-p" ]; then machines=$2; shift 2; fi
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec torchrun --standalone --nproc-per-node=$((machines + 1)) -m llcg_dist.train cluster.num_machines="$machines" "$@"
