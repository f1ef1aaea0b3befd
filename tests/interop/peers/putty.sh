#!/usr/bin/env bash
# putty.sh DEST: PuTTY's psftp 0.83 as DEST/bin/psftp, and puttygen, which makes its key files, from the Debian release after
# the machine's, by their own loader.
#
# OUTLAST_PEER_PUTTY_SUITE names another release.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-suite.sh"

suite=${OUTLAST_PEER_PUTTY_SUITE:-trixie}

begin "${1:-}" "$here/lib.sh" "$here/lib-suite.sh" <(echo "$suite")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

closure_of "$suite" "$work" putty-tools
mkdir -p "$dest/tree" "$dest/bin"
for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$dest/tree"
done
loader=$(cd "$dest" && find tree -path '*ld-linux*.so.*' -print | sort | head -n 1)
[ -n "$loader" ] || die "the packages have no loader"
folders=$(cd "$dest" && find tree -name '*.so.*' -printf '%h\n' | sort -u | sed "s|^|\$here/|" | paste -sd:)
for program in psftp puttygen; do
    cat >"$dest/bin/$program" <<WRAPPER
#!/bin/sh
# Starts the unpacked program by its own loader with its own libraries.
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
unset LD_LIBRARY_PATH LD_PRELOAD
exec "\$here/$loader" --inhibit-cache --library-path "$folders" "\$here/tree/usr/bin/$program" "\$@"
WRAPPER
    chmod 755 "$dest/bin/$program"
done

"$dest/bin/psftp" -V >"$work/log" 2>&1 || die "the unpacked psftp does not start: $(tail -n 1 "$work/log")"
grep -q 'Release 0\.\(8[3-9]\|9[0-9]\)' "$work/log" || die "psftp is older than 0.83: $(head -n 1 "$work/log")"
finish
