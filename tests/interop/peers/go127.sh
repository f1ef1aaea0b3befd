#!/usr/bin/env bash
# go127.sh DEST: Go 1.27, which has ML-DSA, and its programs of certificates:
#   DEST/bin/pki-check    of tests/interop/pki/go
#   DEST/bin/go           the toolchain itself, from Go's module cache
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
project=$(cd "$here/../pki/go" && pwd -P)
mapfile -t sources < <(find "$project" -type f \( -name '*.go' -o -name 'go.*' \) | sort)

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "${sources[@]}"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
export GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0
root=$(cd "$work" && "$go" env GOROOT) && [ -x "$root/bin/go" ] || die "$toolchain cannot be had as a toolchain"

mkdir "$dest/bin"
printf '#!/bin/sh\nexport GOTOOLCHAIN=local GOROOT="%s"\nexec "%s/bin/go" "$@"\n' "$root" "$root" >"$dest/bin/go"
chmod 755 "$dest/bin/go"
run_logged "$work/log" "$dest/bin/go" build -C "$project" \
    -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/pki-check" . || die "Go could not build $project"
finish
