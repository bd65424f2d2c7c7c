#!/usr/bin/env bash
# Makes the Debian packages, lets lintian look at them, installs them below a folder of its own with this machine's list
# of packages (so that their dependencies are checked), runs what is there, and removes them.
set -euo pipefail
build=$1
version=$2
fail() { echo "$*" >&2; exit 1; }

# dpkg wants to be root, if only inside its own world.
if [ "$(id -u)" -ne 0 ]; then
    exec unshare --map-root-user "$0" "$@"
fi

work=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
    rm -rf "$work"
}
trap finish EXIT
cd "$work" # no belay.toml here

cpack --config "$build/CPackConfig.cmake" -B "$work/packages" >cpack.log 2>&1 || { cat cpack.log >&2; fail "cpack failed"; }
packages=("$work"/packages/belay_*.deb "$work"/packages/libbelay-dev_*.deb)
# The one that is left out is about Debian's own archive.
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "${packages[@]}" \
    || fail "lintian has complaints"

root=$work/root
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
cp /var/lib/dpkg/status "$root/var/lib/dpkg/status"
in_root() { dpkg --root="$root" --log="$work/dpkg.log" "$@" 2>"$work/dpkg.err" || { cat "$work/dpkg.err" >&2; fail "dpkg $1 failed"; }; }
in_root --install "${packages[@]}" >/dev/null
for package in belay libbelay-dev; do
    in_root --verify "$package" >changed
    [ ! -s changed ] || fail "$package is not installed as packed: $(cat changed)"
done

belay=$root/usr/bin/belay
# The compiler and the kind of build follow.
case $("$belay" --version) in
"belay $version"*) ;;
*) fail "the program says $("$belay" --version)" ;;
esac
mkfifo said
"$belay" serve --listen 127.0.0.1:0 --log-level warning >said &
server=$!
exec {said}<said
IFS= read -r -t 20 line <&"$said"
url=$(sed -n 's/.* serves MCP at \(http[^ ]*\).*/\1/p' <<<"$line")
[ -n "$url" ] || fail "the server did not start: $line"
curl -sS --max-time 20 "$url" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"deb","version":"0"}}}' >answer
grep -q '"serverInfo"' answer || fail "initialize was answered with $(cat answer)"
kill "$server"
wait "$server" || fail "the server ended with status $?"
server=

in_root --purge belay libbelay-dev >/dev/null
left=$(find "$root" -path "$root/var" -prune -o -type f -print)
[ -z "$left" ] || fail "left behind: $left"
