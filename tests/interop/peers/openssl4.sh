#!/usr/bin/env bash
# openssl4.sh DEST: OpenSSL 4.0 or newer as DEST/bin/openssl.
#
# Takes the packages of the first of Debian's newer suites that has it, and unpacks them into DEST, with the C library that they
# need. Nothing is installed system-wide. OUTLAST_PEER_SUITE names another suite.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-suite.sh"

suites=${OUTLAST_PEER_SUITE:-experimental sid}

begin "${1:-}" "$here/lib.sh" "$here/lib-suite.sh" <(echo "$suites")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/first" "$work/rest" "$dest/tree" "$dest/bin"

# OpenSSL moves from one suite to the next. A suite that lacks it ends the subshell, and the next one is asked.
found=''
for suite in $suites; do
    if (packages_of "$suite" "$work/first" openssl libssl4) 2>"$work/log"; then
        found=$suite
        break
    fi
done
[ -n "$found" ] || die "no suite of $suites has OpenSSL 4 ($(tail -n 1 "$work/log"))"
packages_of sid "$work/rest" libc6 libzstd1 zlib1g
for deb in "$work"/first/debs/*.deb "$work"/rest/debs/*.deb; do
    dpkg-deb -x "$deb" "$dest/tree"
done

# locate test...: the first match of the find tests, relative to DEST.
locate() {
    local match
    match=$(cd "$dest" && find tree "$@" -print | sort | head -n 1)
    [ -n "$match" ] || die "nothing in the packages matches: $*"
    printf '%s' "$match"
}
binary=$(locate -path '*/bin/openssl' -type f)
loader=$(locate -path '*/lib/*-linux-gnu*/ld-linux*.so.*')
libcrypto=$(locate -name 'libcrypto.so.4')

cat >"$dest/bin/openssl" <<WRAPPER
#!/bin/sh
# Starts the unpacked OpenSSL by its own loader with its own libraries.
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export OPENSSL_CONF=/dev/null OPENSSL_MODULES=/nonexistent
unset LD_LIBRARY_PATH LD_PRELOAD
exec "\$here/$loader" --inhibit-cache --library-path \\
    "\$here/$(dirname "$libcrypto"):\$here/$(dirname "$loader")" "\$here/$binary" "\$@"
WRAPPER
chmod 755 "$dest/bin/openssl"

said=$("$dest/bin/openssl" version) || die "the unpacked openssl does not start"
case $said in
"OpenSSL "[4-9].*) ;;
*) die "got $said, want OpenSSL 4 or newer" ;;
esac
finish
