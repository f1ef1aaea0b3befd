#!/usr/bin/env bash
# sshd.sh DEST: OpenSSH 10.0's server, from the backports of the machine's Debian release: DEST/bin/sshd, and
# DEST/lib/openssh with the programs that it starts, sftp-server among them.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-suite.sh"
. "$here/lib-debian.sh"

backports=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-backports

begin "${1:-}" "$here/lib.sh" "$here/lib-suite.sh" "$here/lib-debian.sh" <(echo "$backports")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unpack libwrap0
packages_of "$backports" "$work" openssh-server openssh-sftp-server
for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$dest/tree"
done
mkdir -p "$dest/bin" "$dest/lib"
ln -s ../tree/usr/lib/openssh "$dest/lib/openssh"
cat >"$dest/bin/sshd" <<'WRAPPER'
#!/bin/sh
# Starts the unpacked sshd with the programs beside it. As root it wants a user sshd and an empty folder: it gets them
# in a mount namespace of its own, so that the machine stays as it is.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
export LD_LIBRARY_PATH="$here/tree/lib/x86_64-linux-gnu:$here/tree/usr/lib/x86_64-linux-gnu"
set -- "$here/tree/usr/sbin/sshd" -o "SshdSessionPath=$here/lib/openssh/sshd-session" \
    -o "SshdAuthPath=$here/lib/openssh/sshd-auth" "$@"
[ "$(id -u)" = 0 ] || exec "$@"
exec unshare --mount sh -c '
    mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && cp /etc/passwd /run/passwd &&
        echo "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin" >>/run/passwd &&
        mount --bind /run/passwd /etc/passwd && exec "$@"' sh "$@"
WRAPPER
chmod 755 "$dest/bin/sshd"

"$dest/bin/sshd" -V 2>"$work/log" || die "the unpacked sshd does not start: $(tail -n 1 "$work/log")"
finish
