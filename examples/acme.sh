#!/usr/bin/env bash
# acme.sh: certificates from a private CA by ACME. Makes an endpoint, a role that its clients act as and an external account
# binding; then lego proves control of DOMAIN by http-01 and gets a certificate. DOMAIN (default host.example) must resolve
# to this machine. Needs outlast, the AWS CLI (tested with 1.46.3), OpenSSL 3.5 or later, and lego.
#
# OUTLAST_ACME_HTTP_PORT (default 80) is the port that the server validates on; OUTLAST_ACME_NETWORKS lets it connect to
# private networks.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

needs lego
domain=${DOMAIN:-host.example}
serve

note "a CA with ML-DSA-65"
root=$(authority ROOT root "" ML_DSA_65)

note "the role that ACME clients act as"
cat >"$folder/trust.json" <<'JSON'
{ "Version": "2012-10-17", "Statement": [
  { "Effect": "Allow", "Principal": { "Service": "acm-acme.amazonaws.com" },
    "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"] } ] }
JSON
cat >"$folder/issue.json" <<'JSON'
{ "Version": "2012-10-17", "Statement": [
  { "Effect": "Allow", "Action": ["acm:RequestCertificate", "acm-pca:IssueCertificate"], "Resource": "*" } ] }
JSON
outlast principal create acme --role --trust-policy-file "$folder/trust.json" --policy-file "$folder/issue.json"

note "an endpoint whose clients prove control of their names; its tag selects the CA that issues"
endpoint=$(aws acm create-acme-endpoint --authorization-behavior CHALLENGE --contact NOT_REQUIRED \
    --certificate-authority 'PublicCertificateAuthority={}' \
    --tags "Key=outlast:certificate-authority-arn,Value=$root" \
    --query AcmeEndpointArn --output text)
directory=$(aws acm describe-acme-endpoint --acme-endpoint-arn "$endpoint" \
    --query AcmeEndpoint.EndpointUrl --output text)

note "an external account binding, with which the client registers"
binding=$(aws acm create-acme-external-account-binding --acme-endpoint-arn "$endpoint" \
    --role-arn arn:aws:iam::123456789012:role/acme \
    --query ExternalAccountBinding.AcmeExternalAccountBindingArn --output text)
read -r key_id mac_key < <(aws acm get-acme-external-account-binding-credentials \
    --acme-external-account-binding-arn "$binding" --query '[KeyId, MacKey]' --output text)

note "$directory"
LEGO_CA_CERTIFICATES=$OUTLAST_DATA/client/ca.pem lego --path "$folder/lego" --server "$directory" \
    --accept-tos --email a@example.com --eab --kid "$key_id" "--hmac=$mac_key" \
    --domains "$domain" --http --http.port ":${OUTLAST_ACME_HTTP_PORT:-80}" run
openssl verify -CAfile "$folder/root.pem" -verify_hostname "$domain" \
    "$folder/lego/certificates/$domain.crt"
