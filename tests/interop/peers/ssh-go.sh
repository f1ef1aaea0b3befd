#!/usr/bin/env bash
# ssh-go.sh DEST: Go's SFTP client (github.com/pkg/sftp) as DEST/bin/sftp-clients, and a server of the same libraries as
# DEST/bin/sftp-server.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
project=$(cd "$here/../ssh/go-sftp" && pwd -P)

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "$project"/go.* "$project"/*.go "$project"/*/*.go

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

find_go "$(sed -n 's/^go //p' "$project/go.mod")" "$work"

mkdir "$dest/bin"
GOWORK=off CGO_ENABLED=0 run_logged "$work/log" "$go" build -C "$project" \
    -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/" ./... || die "Go could not build $project"
finish
