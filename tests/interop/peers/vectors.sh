#!/usr/bin/env bash
# vectors.sh DEST: test vectors.
#   DEST/wycheproof   ML-DSA and ML-KEM, from the Go module of Project Wycheproof, of the version that Go 1.27 is tested with
#   DEST/rfc9881      the keys of RFC 9881, appendix C, in its three forms, as OpenSSL makes them of the seed that it names,
#                     with self-signed certificates; and keys whose halves do not belong together
#   DEST/rfc9882      messages that OpenSSL signs with them, in the form of RFC 9882
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-go.sh"
version=v0.0.0-20260625212325-ee7b4f7e6119

begin "${1:-}" "$here/lib.sh" "$here/lib-go.sh" "$here/openssl.sh"
"$here/openssl.sh" "$(dirname "$dest")/openssl"
openssl=$(dirname "$dest")/openssl/bin/openssl

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

find_go 1.21 "$work"
# A module of its own, so that what is fetched is checked against Go's database of checksums.
mkdir "$work/module"
(cd "$work/module" && GOWORK=off run_logged "$work/log" "$go" mod download -json "github.com/c2sp/wycheproof@$version") ||
    die "Go could not fetch Wycheproof $version"
folder=$(cd "$work/module" && GOWORK=off "$go" mod download -json "github.com/c2sp/wycheproof@$version" |
    sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
mkdir "$dest/wycheproof"
cp "$folder"/testvectors_v1/mldsa_*_test.json "$folder"/testvectors_v1/mlkem_*_test.json "$dest/wycheproof/"
chmod -R u+w "$dest/wycheproof"

ssl() {
    run_logged "$work/log" "$openssl" "$@" || die "OpenSSL failed: $1 $2"
}
mkdir "$dest/rfc9881" "$dest/rfc9882"
cd "$dest/rfc9881"
# RFC 9881, appendix C.1: the seed is the bytes from 00 to 1f.
seed=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
printf 'a message in a signed message\n' >"$work/content"
for set in 44 65 87; do
    name=ML-DSA-$set
    ssl genpkey -algorithm "$name" -pkeyopt "hexseed:$seed" -out "$work/$name.key"
    for form in seed:seed-only expanded:priv-only both:seed-priv; do
        ssl pkey -in "$work/$name.key" -provparam "ml-dsa.output_formats=${form#*:}" -out "$name-${form%:*}.priv"
    done
    ssl pkey -in "$work/$name.key" -pubout -out "$name.pub"
    ssl req -x509 -key "$work/$name.key" -subj "/O=IETF/OU=LAMPS WG" -days 3650 -out "$name.crt"
    ssl cms -sign -binary -nodetach -in "$work/content" -signer "$name.crt" -inkey "$work/$name.key" \
        -md sha512 -outform PEM -out "../rfc9882/mldsa$set-signed-attrs.pem"
done

# RFC 9881, appendix C.4, has keys that must be refused. The same faults, in a key of the same set:
# the expanded key of another seed; a coefficient of s1 out of its range; a hash tr that is not the public key's.
need perl
perl - ML-DSA-44-both.priv bad-ML-DSA-44 <<'PERL'
use strict;
use MIME::Base64;
my ($from, $to) = @ARGV;
open my $f, '<', $from or die $!;
my $der = decode_base64(join '', grep { !/^-----/ } <$f>);
# The expanded key is the last 2560 bytes: rho (32), K (32), tr (64), s1, s2, t0.
my $at = length($der) - 2560;
sub bad {
    my ($number, $offset, $mask) = @_;
    my $bad = $der;
    substr($bad, $offset, 1) = chr(ord(substr($bad, $offset, 1)) ^ $mask);
    open my $g, '>', "$to-$number.priv" or die $!;
    print $g "-----BEGIN PRIVATE KEY-----\n", encode_base64($bad), "-----END PRIVATE KEY-----\n";
}
bad(1, $at - 5, 1);
bad(2, $at + 128, 0x07 ^ (ord(substr($der, $at + 128, 1)) & 0x07));
bad(3, $at + 64, 1);
PERL
finish
