#!/usr/bin/env bash
# openssl.sh OPENSSL FOLDER STEP...: OpenSSL's verdict on certificates, CRLs and OCSP responses. STEPS.md says what
# each step checks.
set -uo pipefail
export LC_ALL=C no_proxy=127.0.0.1,localhost

openssl=$1
folder=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$folder/root.pem leaf=$folder/leaf.pem
cat "$folder/chain.pem" >"$work/chain.pem" 2>/dev/null

# Each certificate of the chain as a file; the leaf's issuer is the first, or the root.
awk -v to="$work/ca" '/BEGIN CERT/ { n++ } { print >(to n ".pem") }' "$work/chain.pem"
issuer=$root
[ ! -e "$work/ca1.pem" ] || issuer=$work/ca1.pem

# verify ARGUMENT...: "revoked", or what OpenSSL says if it does not verify.
verify() {
    local said
    said=$("$openssl" verify -x509_strict -CAfile "$root" -untrusted "$work/chain.pem" "$@" "$leaf" 2>&1) && return
    if grep -q 'certificate revoked' <<<"$said" && [ "$(grep -c '^error [0-9]* at' <<<"$said")" = 1 ]; then
        echo revoked
    else
        tr '\n' ' ' <<<"$said"
    fi
    return 1
}

# with_crls FILE...: every certificate but the root is covered by one of these (DER).
with_crls() {
    local crl
    : >"$work/crls.pem"
    for crl in "$@"; do
        "$openssl" crl -inform DER -in "$crl" -out "$work/crl.pem" 2>"$work/error" || { cat "$work/error"; return 1; }
        cat "$work/crl.pem" >>"$work/crls.pem"
    done
    verify -crl_check_all -CRLfile "$work/crls.pem"
}

# ocsp ARGUMENT...: the verdict of a response. The exit code of the command says nothing of it.
ocsp() {
    local said
    said=$("$openssl" ocsp -issuer "$issuer" -cert "$leaf" -CAfile "$root" -verify_other "$work/chain.pem" "$@" 2>&1)
    if ! grep -q '^Response verify OK' <<<"$said" || grep -q 'WARNING: Status times invalid' <<<"$said"; then
        tr '\n' ' ' <<<"$said"
        return 1
    fi
    case $(sed -n "s|^$leaf: ||p" <<<"$said") in
        good) return ;;
        revoked) echo revoked ;;
        *) tr '\n' ' ' <<<"$said" ;;
    esac
    return 1
}

fetch_crls() {
    local certificate url n=0
    for certificate in "$leaf" "$work"/ca*.pem; do
        [ -e "$certificate" ] || continue
        url=$("$openssl" x509 -in "$certificate" -noout -ext crlDistributionPoints 2>/dev/null |
            sed -n 's/^ *URI: *//p' | head -n 1)
        [ -n "$url" ] || { echo "$certificate names no CRL"; return 1; }
        n=$((n + 1))
        "$openssl" crl -in "$url" -outform DER -out "$work/$n.der" 2>"$work/error" || { cat "$work/error"; return 1; }
    done
    with_crls "$work"/*.der
}

fetch_ocsp() {
    local url
    url=$("$openssl" x509 -in "$leaf" -noout -ocsp_uri | head -n 1)
    [ -n "$url" ] || { echo "the leaf names no responder"; return 1; }
    ocsp -no_proxy '*' -nonce -timeout 120 -url "$url" || return 1
}

passed=0 failed=0
for step in "$@"; do
    case $step in
        chain) reason=$(verify) ;;
        crl) reason=$(with_crls "$folder"/*.crl) ;;
        ocsp) reason=$(ocsp -no_nonce -respin "$folder/leaf.ocsp") ;;
        fetch-crl) reason=$(fetch_crls) ;;
        fetch-ocsp) reason=$(fetch_ocsp) ;;
        *) echo "no step '$step'" >&2; exit 2 ;;
    esac && { echo "ok $step"; passed=$((passed + 1)); } ||
        { echo "FAIL $step ${reason//$'\n'/ }"; failed=$((failed + 1)); }
done
echo "$passed ok, $failed failed"
[ "$failed" = 0 ]
