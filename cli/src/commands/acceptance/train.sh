# What an acceptance run trains: steps that depend on each other, with a checkpoint after each of them, so that the
# model proves that no step was lost or repeated. It needs a POSIX shell only, so any image does.
set -eu
results="$SPOTSWEEP_STORAGE/$AWS_BATCH_JOB_ARRAY_INDEX"
checkpoint="$SPOTSWEEP_CHECKPOINTS/weights"
mkdir -p "$results" "$SPOTSWEEP_CHECKPOINTS"
step=0
weights=0
stop=
trap 'stop=1' TERM
if [ -f "$checkpoint" ]; then
    read -r step weights <"$checkpoint"
    echo "resuming after $step steps"
fi
echo "began $step" >>"$results/story"
set -- /dev/nvidia[0-9]*
[ -e "$1" ] || shift
echo "gpus $AWS_BATCH_JOB_ATTEMPT $(printenv CUDA_VISIBLE_DEVICES || true) $#" >>"$results/story"
while [ "$step" -lt "$HP_STEPS" ]; do
    sleep "$HP_SECONDS" &
    wait "$!" || true
    if [ -n "$stop" ]; then
        echo "stopped $step" >>"$results/story"
        echo "interrupted after $step steps"
        exit 143
    fi
    step=$((step + 1))
    weights=$(((weights * 31 + HP_TARGET + step) % 65521))
    echo "$step $weights" >"$checkpoint.new"
    sync -d "$checkpoint.new" 2>/dev/null || sync
    mv "$checkpoint.new" "$checkpoint"
    echo "step=$step loss=$((HP_TARGET * 100 / step))"
done
echo "finished $step" >>"$results/story"
echo "$weights" >"$results/model"
