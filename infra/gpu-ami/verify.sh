#!/usr/bin/env bash
# Whether a container that asks for nothing special sees a GPU. Fails, and says why, where not.
set -euo pipefail
image=public.ecr.aws/amazonlinux/amazonlinux:2023

# Not through a pipe: grep -q ends early, and under pipefail docker's SIGPIPE would count as "no".
info=$(docker info 2>/dev/null) || info=""
if ! grep -q '^ *Default Runtime: nvidia$' <<<"$info"; then
    echo "Docker's default runtime is not nvidia: see /etc/docker/daemon.json and /etc/sysconfig/docker" >&2
    exit 1
fi
# CUDA images set the two variables themselves; this image is small and has no pull limit.
gpus=$(docker run --rm -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_DRIVER_CAPABILITIES=utility "$image" nvidia-smi -L)
if ! grep -q '^GPU 0:' <<<"$gpus"; then
    echo "a container sees no GPU; nvidia-smi -L says: ${gpus:-nothing}" >&2
    exit 1
fi
uuid=$(sed -n '1s/.*(UUID: \(.*\))$/\1/p' <<<"$gpus")
named=$(docker run --rm -e NVIDIA_VISIBLE_DEVICES="$uuid" -e NVIDIA_DRIVER_CAPABILITIES=utility "$image" printenv NVIDIA_VISIBLE_DEVICES)
if [ "$named" != "$uuid" ]; then
    echo "a container with $uuid has NVIDIA_VISIBLE_DEVICES=$named: see mode in /etc/nvidia-container-runtime/config.toml" >&2
    exit 1
fi
echo "$gpus"
