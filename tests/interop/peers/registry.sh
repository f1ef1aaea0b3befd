#!/usr/bin/env bash
# registry.sh DEST: a registry of container images with its client as DEST/bin/crane, and oras, which copies images with their
# signatures between registries and folders, as DEST/bin/oras.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
crane=v0.22.1
oras=v1.3.6

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
mkdir "$dest/bin"
for program in "github.com/google/go-containerregistry/cmd/crane@$crane" "oras.land/oras/cmd/oras@$oras"; do
    (cd "$work" && GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0 GOBIN=$dest/bin run_logged "$work/log" \
        "$go" install -trimpath "$program") || die "Go could not build $program"
done
run_logged "$work/log" "$dest/bin/crane" version || die "the built crane does not start"
run_logged "$work/log" "$dest/bin/oras" version || die "the built oras does not start"
finish
