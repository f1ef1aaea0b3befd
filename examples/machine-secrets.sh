#!/usr/bin/env bash
# machine-secrets.sh: a machine gets its secrets without an access key, and every hop is post-quantum. A CA with ML-DSA-65
# certifies the machine's ML-DSA-65 key, Roles Anywhere gives credentials for the certificate, and the agent reads a secret
# with them. When the certificate is revoked, there are no more credentials.
# Needs outlast, the AWS CLI (tested with 1.46.3), curl, and OpenSSL 3.5 or later.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

agent=
finish_agent() {
    [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
    [ -z "$agent" ] || wait "$agent" 2>/dev/null || true
    finish
}
trap finish_agent EXIT

serve

note "a CA with ML-DSA-65"
root=$(authority ROOT root "" ML_DSA_65)
echo "$root"

note "a secret under a KMS key, and a role that may read it"
key=$(aws kms create-key --query KeyMetadata.Arn --output text)
secret=$(aws secretsmanager create-secret --name app/db --kms-key-id "$key" \
    --secret-string '{"username":"app","password":"correct-horse"}' --query ARN --output text)
cat >"$folder/trust.json" <<JSON
{ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow",
    "Principal": { "Service": "rolesanywhere.amazonaws.com" },
    "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
    "Condition": { "StringEquals": { "aws:PrincipalTag/x509Subject/CN": "web1" } } }] }
JSON
cat >"$folder/rights.json" <<JSON
{ "Version": "2012-10-17", "Statement": [
    { "Effect": "Allow", "Action": ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"], "Resource": "$secret" },
    { "Effect": "Allow", "Action": "kms:Decrypt", "Resource": "$key",
      "Condition": { "StringEquals": { "outlast:KeyExchange": "X25519MLKEM768" } } }] }
JSON
outlast principal create web --role --trust-policy-file "$folder/trust.json" \
    --policy-file "$folder/rights.json"
role=arn:aws:iam::123456789012:role/web

note "machines with a certificate of that CA may begin sessions of the role"
anchor=$(aws rolesanywhere create-trust-anchor --name machines --enabled \
    --source "sourceType=AWS_ACM_PCA,sourceData={acmPcaArn=$root}" \
    --query trustAnchor.trustAnchorArn --output text)
profile=$(aws rolesanywhere create-profile --name machines --enabled --role-arns "$role" \
    --query profile.profileArn --output text)

note "the machine's key and certificate, both ML-DSA-65"
openssl req -new -newkey ML-DSA-65 -noenc -keyout "$folder/machine.key" -out "$folder/machine.csr" \
    -subj /CN=web1 2>/dev/null
leaf=$(aws acm-pca issue-certificate --certificate-authority-arn "$root" \
    --csr "fileb://$folder/machine.csr" --signing-algorithm ML_DSA_65 \
    --template-arn arn:aws:acm-pca:::template/EndEntityClientAuthCertificate/V1 \
    --validity Value=30,Type=DAYS --query CertificateArn --output text)
aws acm-pca get-certificate --certificate-authority-arn "$root" --certificate-arn "$leaf" \
    --query Certificate --output text >"$folder/machine.pem"

note "credentials for the certificate"
endpoint=$(sed -n 's/^endpoint_url *= *//p' "$AWS_CONFIG_FILE" | head -1)
machine=(--certificate "$folder/machine.pem" --private-key "$folder/machine.key"
    --trust-anchor-arn "$anchor" --profile-arn "$profile" --role-arn "$role")
outlast credentials process "${machine[@]}" >"$folder/credentials.json"
grep -q SessionToken "$folder/credentials.json"

note "the agent reads the secret with them"
head -c 32 /dev/urandom | base64 >"$folder/token"
cat >"$folder/agent.toml" <<TOML
http = false
socket = "$folder/agent.sock"
ttl_seconds = 1
endpoint_url = "$endpoint"
ca_bundle = "$OUTLAST_DATA/client/ca.pem"
lock_memory = "prefer"

[roles_anywhere]
certificate = "$folder/machine.pem"
private_key = "$folder/machine.key"
trust_anchor_arn = "$anchor"
profile_arn = "$profile"
role_arn = "$role"

[[caller]]
name = "this user"
user = $(id -u)
secrets = ["app/*"]
TOML
AWS_TOKEN=file://$folder/token outlast agent --config "$folder/agent.toml" 2>"$folder/agent.log" &
agent=$!
waited=0
until [ -S "$folder/agent.sock" ]; do
    kill -0 "$agent" 2>/dev/null || { cat "$folder/agent.log" >&2; exit 1; }
    waited=$((waited + 1))
    [ "$waited" -lt 300 ] || { cat "$folder/agent.log" >&2; exit 1; }
    sleep 0.1
done
ask() {
    curl --silent --show-error --fail-with-body --unix-socket "$folder/agent.sock" "http://localhost/v1/app/db"
}
ask
echo

note "what the audit log has: each hop's key exchange"
outlast audit tail -n 20 --output json --data "$OUTLAST_DATA" |
    grep -E '"eventName":"(CreateSession|GetSecretValue|Decrypt)"' |
    sed -n 's/.*"eventName":"\([A-Za-z]*\)".*/\1/p' | sort | uniq -c
outlast audit tail -n 20 --output json --data "$OUTLAST_DATA" | grep '"eventName":"GetSecretValue"' |
    grep -q '"keyExchange":"X25519MLKEM768"'

note "the certificate is revoked: there are no more credentials"
serial=$(openssl x509 -in "$folder/machine.pem" -noout -serial | cut -d= -f2 | sed 's/../&:/g;s/:$//')
aws acm-pca revoke-certificate --certificate-authority-arn "$root" \
    --certificate-serial "$serial" --revocation-reason KEY_COMPROMISE
code=0
outlast credentials process "${machine[@]}" || code=$?
[ "$code" != 0 ]
