#!/usr/bin/env bash
# go.sh DEST: the KMS and Secrets Manager program of the AWS SDK for Go v2 as DEST/bin/kms-whole, and the example as
# DEST/bin/sign.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
project=$(cd "$here/../go" && pwd -P)
mapfile -t sources < <(find "$project" -type f \( -name '*.go' -o -name 'go.*' \) | sort)

example=$(cd "$here/../../../examples/sdk/go" && pwd -P)

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "${sources[@]}" "$example"/*

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

wanted=$(sed -n 's/^go //p' "$project/go.mod")

find_go "$wanted" "$work"

mkdir "$dest/bin"
GOWORK=off CGO_ENABLED=0 run_logged "$work/log" "$go" build -C "$project" \
    -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/kms-whole" . || die "Go could not build $project"
GOWORK=off CGO_ENABLED=0 run_logged "$work/log" "$go" build -C "$example" \
    -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/sign" . || die "Go could not build $example"
finish
