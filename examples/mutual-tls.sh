#!/usr/bin/env bash
# mutual-tls.sh: a server that requires client certificates, a client with one and a client without.
# Needs outlast, the AWS CLI (tested with 1.46.3), and OpenSSL 3.5 or later.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

serve

note "a CA for clients, and a certificate for a robot's own ML-DSA-65 key"
root=$(authority ROOT root "" ML_DSA_65)
openssl req -new -newkey ML-DSA-65 -noenc -keyout "$folder/robot.key" -out "$folder/robot.csr" \
    -subj /CN=robot 2>/dev/null
robot=$(aws acm-pca issue-certificate --certificate-authority-arn "$root" \
    --csr "fileb://$folder/robot.csr" --signing-algorithm ML_DSA_65 \
    --template-arn arn:aws:acm-pca:::template/EndEntityClientAuthCertificate/V1 \
    --validity Value=30,Type=DAYS --query CertificateArn --output text)
aws acm-pca get-certificate --certificate-authority-arn "$root" --certificate-arn "$robot" \
    --query Certificate --output text >"$folder/robot.pem"

note "a certificate for the KMS key that the robot signs with"
key=$(aws kms create-key --key-spec ML_DSA_65 --key-usage SIGN_VERIFY --query KeyMetadata.Arn --output text)
outlast cert request --key "$key" --subject CN=Robot --out "$folder/signer.csr"
signer=$(aws acm-pca issue-certificate --certificate-authority-arn "$root" \
    --csr "fileb://$folder/signer.csr" --signing-algorithm ML_DSA_65 \
    --template-arn arn:aws:acm-pca:::template/CodeSigningCertificate/V1 \
    --validity Value=30,Type=DAYS --query CertificateArn --output text)
aws kms tag-resource --key-id "$key" --tags "TagKey=outlast:certificate-arn,TagValue=$signer"

note "the same server again, but now only for clients with a certificate from that CA"
kill "$server"
wait "$server" || true
serve --client-ca "$folder/root.pem"
echo release >"$folder/release.txt"
outlast sign "$folder/release.txt" --key "$key" \
    --client-cert "$folder/robot.pem" --client-key "$folder/robot.key"
outlast verify "$folder/release.txt" --trust "$folder/root.pem"

note "a client without a certificate is refused, whatever its access key"
! outlast sign "$folder/release.txt" --key "$key" --force 2>"$folder/refused"
cat "$folder/refused"
grep -q 'client certificate' "$folder/refused"
