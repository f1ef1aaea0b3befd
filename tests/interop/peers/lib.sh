# Shared by the install scripts in this folder; source it, do not run it.
#
# A peer is installed into a folder DEST of its own. DEST/.stamp holds a digest
# of the files which determine the installation: when it is unchanged, nothing
# is done. DEST/.outlast-peer marks a folder which may be replaced.

set -euo pipefail
export LC_ALL=C

peer=$(basename "$0")

die() {
    printf '%s: %s\n' "$peer" "$*" >&2
    exit 1
}

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || die "needs '$tool', which is not installed"
    done
}

# run_logged LOG command...: quiet when it works, the end of the output when not.
run_logged() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 && return
    tail -n 30 "$log" >&2
    return 1
}

# begin DEST input-file...: sets dest and stamp, takes a lock, leaves when DEST
# is up to date already, else empties DEST.
begin() {
    [ -n "${1:-}" ] || die "usage: $peer DEST"
    need flock sha256sum
    mkdir -p "$1" || die "cannot create '$1'"
    dest=$(cd "$1" && pwd -P)
    shift
    [ "$dest" != / ] || die "DEST must not be /"
    exec 9>"$dest.lock"
    flock -w 900 9 || die "another installation into $dest does not end"
    stamp=$(cat "$0" "$@" | sha256sum | cut -d' ' -f1)
    if [ "$(cat "$dest/.stamp" 2>/dev/null)" = "$stamp" ]; then
        exit 0
    fi
    if [ -n "$(ls -A "$dest")" ] && [ ! -e "$dest/.outlast-peer" ]; then
        die "$dest is not empty and was not made by these scripts"
    fi
    find "$dest" -mindepth 1 -delete
    : >"$dest/.outlast-peer"
}

# finish: the installation in DEST is complete.
finish() {
    printf '%s\n' "$stamp" >"$dest/.stamp"
}
