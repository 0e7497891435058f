#!/usr/bin/env bash
# What a training job on SLURM does, on its first node: one elastic agent on every node, and between them the server and
# P machines. `llcg slurm --run` starts it with the Python of llcg_dist and the overrides as arguments.
#
# Going on: a requeued job (node failure, preemption, `scontrol requeue`) keeps its id, finds its run_dir, and goes on from
# its last complete checkpoint with the same bits. At SIGUSR1, which comes before the time limit (#SBATCH --signal), the
# ranks are asked to stop; the job then requeues itself, as long as it has come a round further.
set -uo pipefail
python=$1
shift

# Mistakes in the overrides end the job here, in one line; the graph is cut here too, where its parts are missing.
plan=$("$python" -m llcg_dist.cli.launch.slurm check "$@") || exit
eval "$plan"  # ranks, nodes, port, run_dir
[ "$ranks" -gt 0 ] || exit 0
export LLCG_RANKS="$ranks" LLCG_RENDEZVOUS_PORT="$port"

rounds() { if [ -f "$run_dir/metrics.jsonl" ]; then wc -l <"$run_dir/metrics.jsonl"; else echo 0; fi; }
rounds_before=$(rounds)

# SLURM signals the steps by itself when it cancels or requeues a job; here for whoever signals the batch script alone.
# scancel, because srun would answer a signal of its own by killing the ranks; with a limit, because for a job that is
# already being cancelled it tries for ever.
stopped=""
stop() { stopped=$1; timeout 5 scancel --signal=TERM "$SLURM_JOB_ID" & }
trap 'stop TERM' TERM
trap 'stop INT' INT
trap 'stop USR1' USR1

# One agent on every node. The first node of `scontrol show hostnames` hosts the rendezvous, on one address of its own.
# All of the allocation is the agent's: no binding to single cores, and all the node's GPUs.
srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 --label \
  "$python" -m llcg_dist.cli.launch.slurm agent "$@" &
step=$!
code=0
while kill -0 "$step" 2>/dev/null; do  # a signal ends `wait`, not the step
  wait "$step"
  code=$?
done

case "$stopped" in
  "") exit "$code" ;;
  USR1)
    if [ "$code" -ne 0 ] && [ "$(rounds)" -gt "$rounds_before" ]; then
      echo "llcg: the time limit is near after round $(rounds); requeued"
      scontrol requeue "$SLURM_JOB_ID"
      sleep 60  # until SLURM ends this script
    fi
    exit "$code" ;;
  INT) exit 130 ;;
  *) exit 143 ;;
esac
