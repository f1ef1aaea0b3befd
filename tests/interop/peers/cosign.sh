#!/usr/bin/env bash
# cosign.sh DEST: Sigstore's cosign, which signs with AWS KMS, as DEST/bin/cosign.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
version=v2.6.5

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
mkdir "$dest/bin"
(cd "$work" && GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0 GOBIN=$dest/bin run_logged "$work/log" \
    "$go" install -trimpath "github.com/sigstore/cosign/v2/cmd/cosign@$version") || die "Go could not build cosign $version"
run_logged "$work/log" "$dest/bin/cosign" version || die "the built cosign does not start"
finish
