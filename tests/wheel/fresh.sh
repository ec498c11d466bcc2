#!/usr/bin/env bash
# Installs a wheel into a fresh Python environment, as someone without Rust does, and runs the demo there.
set -euo pipefail
wheel="$(realpath "$1")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
# No cargo, no source tree, and nothing that an earlier demo has kept.
alone=(env -i "HOME=$folder" "PATH=$folder/venv/bin:/usr/bin:/bin")
if "${alone[@]}" sh -c 'command -v cargo' >/dev/null; then
    echo "cargo is on the search path that this test gives to the installed command" >&2
    exit 1
fi
began=$SECONDS
venv/bin/pip install --quiet --disable-pip-version-check "$wheel"
"${alone[@]}" spotsweep demo --json >summary.json
venv/bin/python - "$(du -m "$wheel" | cut -f 1)" $((SECONDS - began)) <<'PYTHON'
import json, sys
summary = json.load(open("summary.json"))
trained = summary["succeeded"], summary["trials"]
assert trained == (24, 24), summary
print(f"a wheel of {sys.argv[1]} MB: 24 trained trials {sys.argv[2]} s after pip install began")
PYTHON
