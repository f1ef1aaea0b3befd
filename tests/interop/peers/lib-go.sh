# A Go that can build, for the install scripts in this folder; source it after lib.sh.
#
# It is the machine's Go; where that is missing or too old, the newest one that apt has, unpacked for the build only.

# recent GO VERSION: whether it is that new.
recent() {
    local version
    command -v "$1" >/dev/null && version=$(cd / && "$1" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "go$2" "$version" | sort -V | head -n 1)" = "go$2" ]
}

# from_apt WORK: unpacks apt's newest Go into WORK, and prints its path.
from_apt() {
    local package work=$1
    package=$(apt-cache pkgnames golang-1. 2>/dev/null | grep -E '^golang-1\.[0-9]+-go$' | sort -V | tail -n 1)
    [ -n "$package" ] || return 1
    (cd "$work" && run_logged "$work/log" apt-get -qq download "$package" "${package%-go}-src") || return 1
    for deb in "$work"/*.deb; do
        dpkg-deb -x "$deb" "$work/tree"
    done
    printf '%s/bin/go' "$(echo "$work"/tree/usr/lib/go-1.*)"
}

# find_go VERSION WORK: sets go to one that is that new.
find_go() {
    go=go
    recent "$go" "$1" && return
    go=$(from_apt "$2") && recent "$go" "$1" || die "needs Go $1 or newer; neither PATH nor apt has it"
    GOROOT=$(dirname "$(dirname "$go")")
    export GOROOT
}

# What Go fetches where a program needs a newer one than the machine has (crypto/mldsa is in Go since 1.27).
toolchain=go1.27.4
