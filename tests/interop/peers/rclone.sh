#!/usr/bin/env bash
# rclone.sh DEST: rclone from the machine's own Debian release as DEST/bin/rclone.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-debian.sh"

begin "${1:-}" "$here/lib.sh" "$here/lib-debian.sh"

unpack rclone
mkdir "$dest/bin"
ln -s ../tree/usr/bin/rclone "$dest/bin/rclone"
"$dest/bin/rclone" version >/dev/null || die "the unpacked rclone does not start"
finish
