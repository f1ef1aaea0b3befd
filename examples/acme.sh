#!/usr/bin/env bash
# acme.sh: a private CA behind ACME. An endpoint, a role that its clients act as, an external account binding; and lego
# proves by http-01 that DOMAIN is its own and gets a certificate. DOMAIN (default host.example) must resolve to this
# machine. Needs outlast, the AWS CLI (1.46.3 was tried), OpenSSL 3.5 or later, and lego.
#
# OUTLAST_ACME_HTTP_PORT (default 80) is where the server looks; OUTLAST_ACME_NETWORKS lets it look into private networks.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

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

note "an endpoint whose clients prove their names; a tag says which CA it issues from"
endpoint=$(aws acm create-acme-endpoint --authorization-behavior CHALLENGE --contact NOT_REQUIRED \
    --certificate-authority 'PublicCertificateAuthority={}' \
    --tags "Key=outlast:certificate-authority-arn,Value=$root" \
    --query AcmeEndpointArn --output text)
directory=$(aws acm describe-acme-endpoint --acme-endpoint-arn "$endpoint" \
    --query AcmeEndpoint.EndpointUrl --output text)

note "an external account binding, for the client to begin with"
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
