#!/usr/bin/env bash
# lego.sh DEST: the ACME client lego as DEST/bin/lego, from the machine's own Debian release.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-debian.sh"

begin "${1:-}" "$here/lib.sh" "$here/lib-debian.sh"
unpack lego
mkdir "$dest/bin"
ln -s ../tree/usr/bin/lego "$dest/bin/lego"
"$dest/bin/lego" --version >/dev/null || die "the unpacked lego does not start"
finish
