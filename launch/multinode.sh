#!/usr/bin/env bash
# A job on several hosts: run this once on each of them, in any order.
#
#   launch/multinode.sh --head ADDRESS[:PORT] --hosts N [--here M] [--job NAME] [--rejoin R] [settings]
#
# --head    LLCG_HEAD    an address of the host where all meet, as the others reach it (port 29500 if none is given)
# --hosts   LLCG_HOSTS   how many hosts the job has
# --here    LLCG_HERE    how many of its P+1 processes run on this host (1); any layout will do that adds up to P+1
# --job     LLCG_JOB     a name that only the hosts of one job share (llcg)
# --rejoin  LLCG_REJOIN  how often this host joins again when a cut link took torchrun's agent with it (3)
# settings               as for `llcg train`; run_dir and cluster.key_file must be set. They must be the same on all hosts,
#                        but for where things lie: run_dir, partition.root, dataset.root, checkpoint.dir, ...
#
# Three hosts, a server and four machines, parts copied to each host's own disk, and the job's key to every host:
#
#   host 1 (10.0.0.1)$ llcg key job.key && for host in host2 host3; do scp -p job.key $host:$PWD; done
#   host 1 (10.0.0.1)$ launch/multinode.sh --head 10.0.0.1 --hosts 3 --here 1 cluster.num_machines=4 run_dir=runs/a cluster.key_file=job.key
#   host 2$            launch/multinode.sh --head 10.0.0.1 --hosts 3 --here 2 cluster.num_machines=4 run_dir=runs/a cluster.key_file=job.key
#   host 3$            launch/multinode.sh --head 10.0.0.1 --hosts 3 --here 2 cluster.num_machines=4 run_dir=runs/a cluster.key_file=job.key
#
# It starts torchrun's elastic agent with the c10d rendezvous. The server runs where the full graph is, whichever host
# that is; machines take the parts that their disks hold (docs/launch.md). Exit codes are those of `llcg train`.
set -euo pipefail
llcg=$(command -v llcg) || { echo "multinode.sh: llcg is not on PATH; activate the environment that has it" >&2; exit 2; }
exec "$(dirname "$llcg")/python" -m llcg_dist.cli.launch.multinode "$@"
