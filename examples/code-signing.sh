#!/usr/bin/env bash
# code-signing.sh: a signing key that never leaves the service, its certificate, a signature, and OpenSSL's verification.
# Needs outlast, the AWS CLI (tested with 1.46.3), and OpenSSL 3.5 or later.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

serve

note "a CA, and a signing key in KMS"
root=$(authority ROOT root "" ML_DSA_65)
key=$(aws kms create-key --key-spec ML_DSA_65 --key-usage SIGN_VERIFY --query KeyMetadata.Arn --output text)
aws kms create-alias --alias-name alias/release --target-key-id "$key"

note "a certificate for the key: outlast builds the request, and KMS signs it"
outlast cert request --key alias/release --subject CN=Release --out "$folder/request.pem"
leaf=$(aws acm-pca issue-certificate --certificate-authority-arn "$root" \
    --csr "fileb://$folder/request.pem" --signing-algorithm ML_DSA_65 \
    --template-arn arn:aws:acm-pca:::template/CodeSigningCertificate/V1 \
    --validity Value=365,Type=DAYS --query CertificateArn --output text)
aws kms tag-resource --key-id "$key" --tags "TagKey=outlast:certificate-arn,TagValue=$leaf"

note "sign a file, and verify it with outlast and with OpenSSL"
head -c 1000000 /dev/urandom >"$folder/release.bin"
outlast sign "$folder/release.bin" --key alias/release
outlast verify "$folder/release.bin" --trust "$folder/root.pem"
openssl cms -verify -binary -inform DER -in "$folder/release.bin.p7s" -content "$folder/release.bin" \
    -CAfile "$folder/root.pem" -purpose codesign -out /dev/null

note "a changed file is refused, with exit code 3"
printf x >>"$folder/release.bin"
code=0
outlast verify "$folder/release.bin" --trust "$folder/root.pem" || code=$?
[ "$code" = 3 ]
