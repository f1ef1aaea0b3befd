#!/usr/bin/env bash
# openssl.sh DEST: OpenSSL 3.5 or newer (which has ML-DSA) as DEST/bin/openssl.
#
# Takes the packages of a newer Debian release than the machine's own, from the
# Debian source which the machine's apt uses, and unpacks them into DEST. Nothing
# is installed system-wide. OUTLAST_PEER_SUITE names another release.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-suite.sh"

suite=${OUTLAST_PEER_SUITE:-trixie}
packages=(openssl openssl-provider-legacy libssl3t64 libc6 libzstd1 zlib1g)

begin "${1:-}" "$here/lib.sh" "$here/lib-suite.sh" <(echo "$suite")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages_of "$suite" "$work" "${packages[@]}"

mkdir "$dest/tree" "$dest/bin"
for deb in "$work"/debs/*.deb; do
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
libcrypto=$(locate -name 'libcrypto.so.3')
modules=$(locate -name ossl-modules -type d)
config=$(locate -path '*/etc/ssl/openssl.cnf')

cat >"$dest/bin/openssl" <<WRAPPER
#!/bin/sh
# Starts the unpacked OpenSSL by its own loader with its own libraries.
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export OPENSSL_CONF="\${OPENSSL_CONF:-\$here/$config}"
export OPENSSL_MODULES="\$here/$modules"
unset LD_LIBRARY_PATH LD_PRELOAD
exec "\$here/$loader" --inhibit-cache --library-path \\
    "\$here/$(dirname "$libcrypto"):\$here/$(dirname "$loader")" "\$here/$binary" "\$@"
WRAPPER
chmod 755 "$dest/bin/openssl"

version=$("$dest/bin/openssl" version) || die "the unpacked openssl does not start"
number=$(printf '%s' "$version" | cut -d' ' -f2)
[ "$(printf '3.5\n%s\n' "$number" | sort -V | head -n 1)" = 3.5 ] || die "got $version, want 3.5 or newer"
"$dest/bin/openssl" genpkey -algorithm ML-DSA-65 -out "$work/key.pem" 2>"$work/log" ||
    die "$version cannot make an ML-DSA-65 key: $(tail -n 1 "$work/log")"
finish
