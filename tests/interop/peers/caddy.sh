#!/usr/bin/env bash
# caddy.sh DEST: the web server Caddy, which gets its certificates by ACME, as DEST/bin/caddy.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
version=v2.11.9

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# A Go that can fetch the one that builds.
find_go 1.21 "$work"
mkdir "$dest/bin"
(cd "$work" && GOTOOLCHAIN=$toolchain GOWORK=off CGO_ENABLED=0 GOBIN=$dest/bin run_logged "$work/log" \
    "$go" install -trimpath "github.com/caddyserver/caddy/v2/cmd/caddy@$version") || die "Go could not build Caddy $version"
run_logged "$work/log" "$dest/bin/caddy" version || die "the built Caddy does not start"
finish
