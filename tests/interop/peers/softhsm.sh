#!/usr/bin/env bash
# softhsm.sh DEST: SoftHSM 2, a token in software, as DEST/lib/libsofthsm2.so, and its tool as
# DEST/bin/softhsm2-util.
#
# Takes the packages from the machine's own Debian release and unpacks them into DEST. Nothing is installed
# system-wide. Tokens live where the file that SOFTHSM2_CONF names says.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

need apt-get dpkg-deb
begin "${1:-}" "$(dirname "$(readlink -f "$0")")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apt=(apt-get -qq -o Acquire::Retries=3)
[ "$(id -u)" != 0 ] || apt+=(-o APT::Sandbox::User=root)

fetch() {
    (cd "$work" && run_logged "$work/log" "${apt[@]}" download libsofthsm2 softhsm2)
}
fetch || { run_logged "$work/log" "${apt[@]}" update && fetch; } ||
    die "could not download the packages libsofthsm2 and softhsm2 with apt (see above)"

mkdir "$dest/tree" "$dest/bin" "$dest/lib"
for deb in "$work"/*.deb; do
    dpkg-deb -x "$deb" "$dest/tree"
done
library=$(cd "$dest/tree" && find . -name libsofthsm2.so -type f | head -n 1)
[ -n "$library" ] || die "the package has no libsofthsm2.so"
ln -s "../tree/$library" "$dest/lib/libsofthsm2.so"
cat >"$dest/bin/softhsm2-util" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$here/tree/usr/bin/softhsm2-util" --module "$here/lib/libsofthsm2.so" "$@"
WRAPPER
chmod 755 "$dest/bin/softhsm2-util"

mkdir "$work/tokens"
echo "directories.tokendir = $work/tokens" >"$work/softhsm2.conf"
SOFTHSM2_CONF="$work/softhsm2.conf" run_logged "$work/log" "$dest/bin/softhsm2-util" \
    --init-token --free --label try --pin 123456 --so-pin 12345678 ||
    die "the unpacked SoftHSM cannot make a token (is libssl3 installed?)"
finish
