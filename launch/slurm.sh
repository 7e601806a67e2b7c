#!/usr/bin/env bash
# The pipeline as a Slurm job. Shortly before its time is up, or when it is preempted, the running stage
# saves its state; the job then requeues itself and continues.
#
#   sbatch --gpus=1 launch/slurm.sh
#   sbatch --gpus=8 --export=ALL,RETRACE_LAUNCH=gpus launch/slurm.sh
#
# Arguments after the script's name are passed to `dvc repro`.
#
#SBATCH --job-name=retrace
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append

cd "${SLURM_SUBMIT_DIR:-.}" || exit 2
export PATH="$PWD/.venv/bin:$PATH"

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
