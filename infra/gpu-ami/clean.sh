#!/usr/bin/env bash
# Takes away what must not be in an image: Docker's containers and images, and the ECS agent's state,
# with which every instance would take itself for the one that was built on.
# The agent's own image comes back from its archive in /var/cache/ecs at the first start.
# ROOT is for tests: it stands before every path.
set -euo pipefail
root="${ROOT:-}"

systemctl stop ecs
docker ps --all --quiet | xargs --no-run-if-empty docker rm --force --volumes
docker image prune --all --force
docker volume prune --all --force
# ecs_agent_data.json of older agents, agent.db of newer ones.
rm -rf "$root"/var/lib/ecs/data/* "$root"/var/log/ecs/*

left=$(docker ps --all --quiet; docker images --all --quiet)
if [ -n "$left" ]; then
    echo "Docker still has containers or images: $left" >&2
    exit 1
fi
