#!/usr/bin/env bash
# softhsm.sh DEST: SoftHSM 2, a token in software, as DEST/lib/libsofthsm2.so, and its tool as
# DEST/bin/softhsm2-util.
#
# Takes the packages from the machine's own Debian release and unpacks them into DEST. Nothing is installed
# system-wide. Tokens live where the file that SOFTHSM2_CONF names says.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-debian.sh"

begin "${1:-}" "$here/lib.sh" "$here/lib-debian.sh"
unpack libsofthsm2 softhsm2

mkdir "$dest/bin" "$dest/lib"
library=$(cd "$dest/tree" && find . -name libsofthsm2.so -type f | head -n 1)
[ -n "$library" ] || die "the package has no libsofthsm2.so"
ln -s "../tree/$library" "$dest/lib/libsofthsm2.so"
cat >"$dest/bin/softhsm2-util" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$here/tree/usr/bin/softhsm2-util" --module "$here/lib/libsofthsm2.so" "$@"
WRAPPER
chmod 755 "$dest/bin/softhsm2-util"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tokens"
echo "directories.tokendir = $work/tokens" >"$work/softhsm2.conf"
SOFTHSM2_CONF="$work/softhsm2.conf" run_logged "$work/log" "$dest/bin/softhsm2-util" \
    --init-token --free --label try --pin 123456 --so-pin 12345678 ||
    die "the unpacked SoftHSM cannot make a token (is libssl3 installed?)"
finish
