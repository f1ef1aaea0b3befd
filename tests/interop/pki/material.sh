#!/usr/bin/env bash
# material.sh OPENSSL OUT ALGORITHM [genpkey option...]: a CA by OpenSSL, in folders below OUT as STEPS.md wants them.
#   good      everything in order
#   revoked   the leaf is in the CRL, and the responder says so
#   stale     the CRLs are of long ago
#   forged    a bit of each CRL's and of the response's signature is turned
#   stranger  CRL and response by another CA of the same name
#   purpose   the response is signed by a certificate that is not for it
#   missing   no CRL of the leaf's issuer, and a response about another certificate
#   root      another root of the same name
set -euo pipefail
export LC_ALL=C

openssl=$1
mkdir -p "$2"
cd "$2"
shift 2
algorithm=("$@")

cat >ca.cnf <<'CONFIG'
[req]
distinguished_name = dn
[dn]
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[sub]
basicConstraints = critical,CA:TRUE,pathlen:0
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:leaf.example
[responder]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,OCSPSigning
noCheck = yes
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[ca]
default_ca = list
[list]
database = index.txt
crlnumber = number
default_md = default
default_crl_days = 30
crl_extensions = crl
[crl]
authorityKeyIdentifier = keyid
CONFIG
echo 01 >number
: >index.none
printf 'R\t20990101000000Z\t261101000000Z,keyCompromise\t04\tunknown\t/CN=revoked\n' >index.revoked
printf 'V\t20990101000000Z\t\t03\tunknown\t/CN=leaf\n' | cat - index.revoked >index.all

quiet() {
    local said
    said=$("$@" 2>&1) || { echo "$said" >&2; exit 1; }
}

# certificate NAME PROFILE SERIAL SUBJECT [ISSUER]
certificate() {
    quiet "$openssl" genpkey -algorithm "${algorithm[@]}" -out "$1.key"
    quiet "$openssl" req -x509 -new -config ca.cnf -extensions "$2" -key "$1.key" -subj "/CN=$4" -days 90 \
        -set_serial "$3" -out "$1.pem" ${5:+-CA "$5.pem" -CAkey "$5.key"}
}

# crl CA INDEX OUT [option...]
crl() {
    cp "index.$2" index.txt
    quiet "$openssl" ca -config ca.cnf -gencrl -cert "$1.pem" -keyfile "$1.key" -out crl.pem "${@:4}"
    quiet "$openssl" crl -in crl.pem -outform DER -out "$3"
}

# response CA SIGNER CERTIFICATE OUT
response() {
    cp index.all index.txt
    quiet "$openssl" ocsp -issuer "$1.pem" -cert "$3.pem" -no_nonce -reqout request
    quiet "$openssl" ocsp -index index.txt -CA "$1.pem" -rsigner "$2.pem" -rkey "$2.key" -reqin request \
        -respout "$4" -ndays 3
}

# turn FILE FROM_END: turns a bit of the byte that is so far from the end.
turn() {
    perl -e 'local $/; open F, "+<:raw", $ARGV[0] or die; $_ = <F>; my $at = length() - $ARGV[1];
        substr($_, $at, 1) = chr(ord(substr($_, $at, 1)) ^ 4); seek F, 0, 0; print F $_' "$1" "$2"
}

certificate root root 1 Root
certificate sub sub 2 Sub root
certificate leaf leaf 3 leaf sub
certificate bad leaf 4 revoked sub
certificate responder responder 5 responder sub
certificate root2 root 1 Root
certificate sub2 sub 2 Sub root2
certificate responder2 responder 5 responder sub2

mkdir good
cp root.pem leaf.pem good/
cp sub.pem good/chain.pem
crl root none good/root.crl
crl sub revoked good/sub.crl
response sub responder leaf good/leaf.ocsp
for case in revoked stale forged stranger purpose missing root; do
    cp -R good "$case"
done
cp bad.pem revoked/leaf.pem
response sub responder bad revoked/leaf.ocsp
crl sub revoked stale/sub.crl -crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z
turn forged/sub.crl 20
turn forged/leaf.ocsp "$(("$("$openssl" x509 -in responder.pem -outform DER | wc -c)" + 30))"
crl sub2 none stranger/sub.crl
response sub2 responder2 leaf stranger/leaf.ocsp
response sub leaf leaf purpose/leaf.ocsp
rm missing/sub.crl
cp revoked/leaf.ocsp missing/
cp root2.pem root/root.pem
