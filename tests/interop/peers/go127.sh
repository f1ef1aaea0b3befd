#!/usr/bin/env bash
# go127.sh DEST: Go 1.27, which has ML-DSA, and its programs of certificates, connections, transparency logs, timestamps and SSH:
#   DEST/bin/pki-check    of tests/interop/pki/go
#   DEST/bin/endpoints    of tests/interop/endpoints/go
#   DEST/bin/tlog-check   of tests/interop/tlog/go
#   DEST/bin/tsp-check    of tests/interop/tsp/go
#   DEST/bin/ssh-clients  of tests/interop/ssh/go
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
pki=$(cd "$here/../pki/go" && pwd -P)
endpoints=$(cd "$here/../endpoints/go" && pwd -P)
tlog=$(cd "$here/../tlog/go" && pwd -P)
tsp=$(cd "$here/../tsp/go" && pwd -P)
ssh=$(cd "$here/../ssh/go" && pwd -P)
mapfile -t sources < <(find "$pki" "$endpoints" "$tlog" "$tsp" "$ssh" -type f \( -name '*.go' -o -name 'go.*' \) | sort)

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "${sources[@]}"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
export GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0

mkdir "$dest/bin"
build() {
    run_logged "$work/log" "$go" build -C "$1" \
        -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/$2" . || die "Go could not build $1"
}
build "$pki" pki-check
build "$endpoints" endpoints
build "$tlog" tlog-check
build "$tsp" tsp-check
build "$ssh" ssh-clients
finish
