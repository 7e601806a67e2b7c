#!/usr/bin/env bash
# The pipeline as a Slurm job. Shortly before its time is up, or when it is preempted, the running stage
# saves a checkpoint; the job then requeues itself and continues.
#
#   sbatch --gpus=1 launch/slurm.sh
#   sbatch --gpus=8 --export=ALL,RETRACE_LAUNCH=gpus launch/slurm.sh
#   sbatch --nodes=2 --gpus-per-node=8 launch/slurm.sh -s pretrain    # one stage on 16 GPUs
#
# --cpus-per-task=64 asks for 64 processors on each node; where it is not given, many clusters give one.
# Arguments after the script's name are passed to `dvc repro`.
#
#SBATCH --job-name=retrace
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append

cd "${SLURM_SUBMIT_DIR:-.}" || exit 2
export PATH="$PWD/.venv/bin:$PATH"
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=180 # seconds to save in when torchrun gets a signal, instead of 30

if [ "${SLURM_NNODES:-1}" -gt 1 ]; then # a launcher on each node; they connect to this one, the first
  if [ "${1:-}" != -s ]; then
    echo "error: on several nodes one stage runs: name it, as in: launch/slurm.sh -s pretrain" >&2
    exit 2
  fi
  processors=${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK} # else srun takes one, since Slurm 22.05
  RETRACE_RUN="srun $processors torchrun --nnodes=$SLURM_NNODES --nproc-per-node=${SLURM_GPUS_ON_NODE:-1}"
  RETRACE_RUN="$RETRACE_RUN --rdzv-backend=c10d --rdzv-endpoint=$(hostname):29500 --rdzv-id=$SLURM_JOB_ID"
  export RETRACE_RUN
fi

asked=
trap 'asked=yes' USR1 TERM

dvc repro "$@" &
repro=$!
while kill -0 "$repro" 2>/dev/null; do
  if [ -n "$asked" ]; then
    retrace stop # repeatedly, because the next stage may have started meanwhile
  fi
  sleep 5 &
  wait -n "$repro" $!
done
wait "$repro"
code=$?
if [ -n "$asked" ] && [ "$code" -ne 0 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
