#!/usr/bin/env bash
# versitygw.sh DEST: Versity's S3 gateway, which serves a folder as S3, as DEST/bin/versitygw; the version is that of
# tests/interop/s3/versitygw.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
project=$(cd "$here/../s3/versitygw" && pwd -P)

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "$project"/go.*

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
export GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0
mkdir "$dest/bin"
run_logged "$work/log" "$go" build -C "$project" -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/versitygw" \
    github.com/versity/versitygw/cmd/versitygw || die "Go could not build $project"
"$dest/bin/versitygw" --version >/dev/null || die "the built versitygw does not start"
finish
