#!/usr/bin/env bash
# quicgo.sh DEST: a client of HTTP/3 by quic-go with Go 1.27's TLS, as DEST/bin/quicgo; see tests/interop/endpoints/quicgo.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
project=$(cd "$here/../endpoints/quicgo" && pwd -P)

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "$project"/go.* "$project"/*.go

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
export GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0
mkdir "$dest/bin"
run_logged "$work/log" "$go" build -C "$project" \
    -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/quicgo" . || die "Go could not build $project"
finish
