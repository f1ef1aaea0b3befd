#!/usr/bin/env bash
# private-pki.sh: a root and a subordinate CA with ML-DSA, a server certificate, its verification and its revocation.
# Needs outlast, the AWS CLI (tested with 1.46.3), and OpenSSL 3.5 or later.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

serve

note "a root with ML-DSA-87, and below it a CA with the same"
root=$(authority ROOT root "" ML_DSA_87)
sub=$(authority SUBORDINATE sub "$root" ML_DSA_87)
echo "$sub"

note "a certificate for a server's own key"
openssl req -new -newkey ML-DSA-65 -noenc -keyout "$folder/key.pem" -out "$folder/request.pem" \
    -subj /CN=host.example -addext subjectAltName=DNS:host.example 2>/dev/null
leaf=$(aws acm-pca issue-certificate --certificate-authority-arn "$sub" \
    --csr "fileb://$folder/request.pem" --signing-algorithm ML_DSA_87 \
    --template-arn arn:aws:acm-pca:::template/EndEntityServerAuthCertificate/V1 \
    --validity Value=30,Type=DAYS --query CertificateArn --output text)
aws acm-pca get-certificate --certificate-authority-arn "$sub" --certificate-arn "$leaf" \
    --query Certificate --output text >"$folder/leaf.pem"
cat "$folder/sub.pem" >"$folder/chain.pem"

note "verify it with outlast, which fetches the revocation status, and with OpenSSL"
verify() {
    cat "$folder/leaf.pem" "$folder/sub.pem" >"$folder/bundle.pem"
    outlast cert verify "$folder/bundle.pem" --trust "$folder/root.pem" \
        --purpose server --name host.example --fetch --revocation required
}
# The first CRL and the OCSP responder are available a few seconds after the CA.
until verify 2>"$folder/not-yet"; do
    waited=$((${waited:-0} + 1))
    [ "$waited" -lt 60 ] || { cat "$folder/not-yet" >&2; exit 1; }
    sleep 1
done
openssl verify -CAfile "$folder/root.pem" -untrusted "$folder/chain.pem" \
    -purpose sslserver -verify_hostname host.example "$folder/leaf.pem"

note "revoke it: from now on it is refused, with exit code 3"
serial=$(openssl x509 -in "$folder/leaf.pem" -noout -serial | cut -d= -f2 | sed 's/../&:/g;s/:$//')
aws acm-pca revoke-certificate --certificate-authority-arn "$sub" \
    --certificate-serial "$serial" --revocation-reason KEY_COMPROMISE
code=0
verify || code=$?
[ "$code" = 3 ]
