#!/usr/bin/env bash
# The effect in one go: seven methods on the same graph and the same parts, one table, one picture.
# Called by `make demo`; takes more overrides as arguments, e.g. `bash launch/demo.sh cluster.num_machines=8`.
set -euo pipefail
cd "$(dirname "$0")/.."
out=runs/demo
rm -rf "$out"
llcg partition experiment=demo "$@"
for method in single full_sync ggs llcg subgraph_approx psgd_pa server_only; do
  printf '\n== %s\n' "$method"
  llcg train experiment=demo algorithm="$method" run_dir="$out/$method" "$@"
done
printf '\n'
llcg report "$out"
echo "curves in $out/report/curves.png"
