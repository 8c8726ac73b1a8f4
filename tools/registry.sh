#!/bin/sh
# Run a command with an empty OCI registry on loopback, whose address is in $REGISTRY. The registry is the CNCF's distribution, which
# tools/cluster.sh builds. It serves HTTP without authentication, and its content is deleted when the command ends.
#   tools/registry.sh COMMAND…
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$("$here/cluster.sh" registry)/registry
directory=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export REGISTRY="127.0.0.1:$port"
cat >"$directory/configuration.yaml" <<END
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $directory/content}}
http: {addr: "$REGISTRY"}
END
"$program" serve "$directory/configuration.yaml" >"$directory/log" 2>&1 &
server=$!
finish() {
    kill "$server" 2>/dev/null || true
    wait "$server" || true
    rm -rf "$directory"
}
trap finish EXIT
tries=0
until python3 -c "import urllib.request as r; r.urlopen('http://$REGISTRY/v2/')" 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 60 ] || ! kill -0 "$server" 2>/dev/null; then
        cat "$directory/log" >&2
        exit 1
    fi
    sleep 0.2
done
"$@"
