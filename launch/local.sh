#!/usr/bin/env bash
# One host: a server and MACHINES machines. The same as `llcg train cluster.num_machines=MACHINES [overrides]`.
#   launch/local.sh [-p MACHINES] [overrides...]
set -euo pipefail
if [ "${1:-}" = "-p" ]; then
  [ $# -ge 2 ] || { echo "local.sh: -p must be followed by the number of machines" >&2; exit 2; }
  machines=$2
  shift 2
  set -- cluster.num_machines="$machines" "$@"
fi
exec llcg train "$@"
