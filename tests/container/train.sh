#!/bin/sh
# The training of train.py, for an image without Python.
for argument; do
    case "$argument" in
        --steps=*) steps=${argument#*=} ;;
        --waits=*) waits=${argument#*=} ;;
    esac
done
# The step at which an attempt waits for its end; all others come to their end.
wait_at=$(echo "$waits," | cut -d, -f"$AWS_BATCH_JOB_ATTEMPT")
stopping='' step=0 sum=0
trap 'stopping=1' TERM

save() {
    echo "$step $sum" >"$SPOTSWEEP_CHECKPOINTS/part"
    mv "$SPOTSWEEP_CHECKPOINTS/part" "$SPOTSWEEP_CHECKPOINTS/step-$(printf %03d "$step")"
}

for checkpoint in "$SPOTSWEEP_CHECKPOINTS"/step-*; do
    [ ! -e "$checkpoint" ] || read -r step sum <"$checkpoint"
done
echo "starting after step $step"
while [ "$step" -lt "$steps" ]; do
    if [ -n "$stopping" ]; then
        save
        echo saved=1
        exit 0
    fi
    if [ "$step" = "$wait_at" ]; then
        sleep 0.1
        continue
    fi
    step=$((step + 1))
    sum=$((sum + step))
    echo "step=$step sum=$sum"
    [ $((step % 10)) != 0 ] || save
done
printf '{"step": %s, "sum": %s}' "$step" "$sum" >"$SPOTSWEEP_OUTPUT/model.json"
