#!/usr/bin/env bash
# run-with-ca.sh CA.pem COMMAND...: runs the command with CA.pem trusted besides
# the system's CAs, in a private mount namespace; the system itself is unchanged.
#
# The AWS CRT takes its trust anchors from the system's CA file only, neither from
# the JVM's trust store nor from the environment.
set -euo pipefail

die() {
    printf 'run-with-ca.sh: %s\n' "$*" >&2
    exit 1
}

# The CA files which the CRT tries, in its order.
bundles=(
    /etc/ssl/certs/ca-certificates.crt
    /etc/pki/tls/certs/ca-bundle.crt
    /etc/ssl/ca-bundle.pem
    /etc/pki/tls/cacert.pem
    /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
    /etc/ssl/cert.pem
)

if [ "${1:-}" != --inside ]; then
    [ $# -ge 2 ] || die "usage: run-with-ca.sh CA.pem COMMAND..."
    grep -q -- '-----BEGIN CERTIFICATE-----' "$1" 2>/dev/null || die "'$1' holds no PEM certificate"
    command -v unshare >/dev/null || die "needs 'unshare' (package util-linux)"
    map=()
    [ "$(id -u)" = 0 ] || map=(--map-root-user)
    unshare --mount "${map[@]}" true 2>/dev/null || die "may not make a private mount namespace (needs root or user namespaces)"
    exec unshare --mount --propagation private "${map[@]}" -- "$(readlink -f "$0")" --inside "$@"
fi

ca=$2
shift 2
joined=$(mktemp)
mounted=
for bundle in "${bundles[@]}"; do
    [ -f "$bundle" ] || continue
    target=$(readlink -f "$bundle")
    case " $mounted " in *" $target "*) continue ;; esac
    [ -n "$mounted" ] || { cat "$target" && echo && cat "$ca"; } >"$joined"
    mount --bind "$joined" "$target" || { rm -f "$joined"; die "cannot mount over $target"; }
    mounted="$mounted $target"
done
[ -n "$mounted" ] || { rm -f "$joined"; die "the system has no CA file (package ca-certificates)"; }
chmod 644 "$joined"
rm -f "$joined"
exec "$@"
