#!/usr/bin/env bash
# systemd has nothing to say against the unit of the package and those of docs/operations.md, with this program in the
# place of the installed one.
set -euo pipefail
belay=$1
root=$(cd "$(dirname "$0")/../.." && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{package,example,man/man1}
# A unit that names a manual page is asked for it.
"$root/packaging/man.py" "$belay" >"$work/man/man1/belay.1"
export MANPATH=$work/man

cp "$root/packaging/belay.service" "$work/package/"
cp "$root"/docs/examples/belay.{service,socket} "$work/example/"
sed -i "s|/usr/bin/belay|$belay|" "$work"/*/belay.service
verify() {
    systemd-analyze verify "$@" >"$work/said" 2>&1 && [ ! -s "$work/said" ]
}
verify "$work/package/belay.service" || { cat "$work/said" >&2; exit 1; }
verify "$work/example/belay.service" "$work/example/belay.socket" || { cat "$work/said" >&2; exit 1; }

# It does complain where there is reason to.
sed -i 's/^\[Service\]/[Service]\nNoSuchSetting=yes/' "$work/package/belay.service"
if verify "$work/package/belay.service"; then
    echo "a bad unit was taken" >&2
    exit 1
fi
