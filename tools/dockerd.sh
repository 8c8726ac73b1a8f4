#!/bin/sh
# If no Docker engine runs, start one in the background, and wait until it answers. It logs to $TETRAPOD_CACHE/dockerd.log.
set -eu
if docker info >/dev/null 2>&1; then exit 0; fi
cache="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}"
mkdir -p "$cache"
# If Docker was installed a moment ago, systemd may have its unit.
if [ -d /run/systemd/system ]; then
    systemctl start docker
else
    # In some sandboxes even root lacks a capability. runc rejects privileged containers there, because they request all capabilities.
    runtime=
    bounding=0x$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
    if [ $((bounding)) -ne $(((2 << $(cat /proc/sys/kernel/cap_last_cap)) - 1)) ]; then
        runtime="--add-runtime=limited=$cache/runc_within_limits.py --default-runtime=limited"
        cp "$(dirname "$0")/runc_within_limits.py" "$cache"
    fi
    # shellcheck disable=SC2086
    setsid nohup dockerd $runtime >"$cache/dockerd.log" 2>&1 </dev/null &
fi
tries=0
until docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ]; then
        tail -n 20 "$cache/dockerd.log" >&2 || true
        echo "dockerd does not answer" >&2
        exit 1
    fi
    sleep 0.5
done
