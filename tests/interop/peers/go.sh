#!/usr/bin/env bash
# go.sh DEST: the KMS program of the AWS SDK for Go v2 as DEST/bin/kms-whole.
#
# Takes the machine's Go; where that is missing or too old, the newest one that
# apt has, unpacked for the build only.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
project=$(cd "$here/../go" && pwd -P)
mapfile -t sources < <(find "$project" -type f \( -name '*.go' -o -name 'go.*' \) | sort)

begin "${1:-}" "$here/lib.sh" "${sources[@]}"

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

wanted=$(sed -n 's/^go //p' "$project/go.mod")

# recent GO: whether it can build the project.
recent() {
    local version
    command -v "$1" >/dev/null && version=$(cd / && "$1" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "go$wanted" "$version" | sort -V | head -n 1)" = "go$wanted" ]
}

# from_apt: unpacks apt's newest Go, and prints its path.
from_apt() {
    local package
    package=$(apt-cache pkgnames golang-1. 2>/dev/null | grep -E '^golang-1\.[0-9]+-go$' | sort -V | tail -n 1)
    [ -n "$package" ] || return 1
    (cd "$work" && run_logged "$work/log" apt-get -qq download "$package" "${package%-go}-src") || return 1
    for deb in "$work"/*.deb; do
        dpkg-deb -x "$deb" "$work/tree"
    done
    printf '%s/bin/go' "$(echo "$work"/tree/usr/lib/go-1.*)"
}

go=go
if ! recent "$go"; then
    go=$(from_apt) && recent "$go" ||
        die "needs Go $wanted or newer; neither PATH nor apt has it"
    GOROOT=$(dirname "$(dirname "$go")")
    export GOROOT
fi

mkdir "$dest/bin"
GOWORK=off CGO_ENABLED=0 run_logged "$work/log" "$go" build -C "$project" \
    -mod=readonly -trimpath -buildvcs=false -o "$dest/bin/kms-whole" . || die "Go could not build $project"
finish
