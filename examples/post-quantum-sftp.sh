#!/usr/bin/env bash
# post-quantum-sftp.sh: AWS's walk-through for post-quantum SFTP (Transfer Family User Guide, "Using hybrid post-quantum key
# exchange") with its own commands: a server with TransferSecurityPolicy-2025-03, a user, a connection by
# mlkem768x25519-sha256 with the lines that AWS tells one to expect, a file both ways, and what the records say. Then a policy
# with nothing but post-quantum key exchange refuses an old client.
# Needs outlast, the AWS CLI (tested with 1.46.3), OpenSSL 3.5 or later, and OpenSSH 9.9 or later. OLD_SSH may name an older ssh.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
needs ssh sftp ssh-keygen
ssh=$(command -v ssh)
"$ssh" -Q kex | grep -qx mlkem768x25519-sha256 ||
    { echo "OpenSSH 9.9 or later is needed; this is $("$ssh" -V 2>&1)" >&2; exit 2; }

serve --sftp-listen 127.0.0.1:0
port=
until port=$(sed -n 's|^SFTP on sftp://.*:||p' "$folder/server.log") && [ -n "$port" ]; do
    kill -0 "$server" || { cat "$folder/server.log" >&2; exit 1; }
    sleep 0.1
done

note "a role for users, who may do everything below their home"
cat >"$folder/trust.json" <<'JSON'
{ "Version": "2012-10-17", "Statement": [{
    "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole" }] }
JSON
cat >"$folder/files.json" <<'JSON'
{ "Version": "2012-10-17", "Statement": [
    { "Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::files" },
    { "Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
      "Resource": "arn:aws:s3:::files/${transfer:UserName}/*" }] }
JSON
outlast principal create sftp-users --role --trust-policy-file "$folder/trust.json" \
    --policy-file "$folder/files.json"

note "a server with AWS's post-quantum policy"
id=$(aws transfer create-server --protocols SFTP --identity-provider-type SERVICE_MANAGED \
    --security-policy-name TransferSecurityPolicy-2025-03 --query ServerId --output text)
aws transfer describe-security-policy --security-policy-name TransferSecurityPolicy-2025-03 \
    --query SecurityPolicy.SshKexs --output text | tr '\t' '\n' | grep mlkem

note "a user with a key"
ssh-keygen -q -t ecdsa -N '' -f "$folder/key"
aws transfer create-user --server-id "$id" --user-name alice --home-directory /files/alice \
    --role arn:aws:iam::123456789012:role/sftp-users --ssh-public-key-body "$(cat "$folder/key.pub")"

# The host key is that of the server, as the API tells it.
aws transfer list-host-keys --server-id "$id" --query 'HostKeys[].[Type,Fingerprint]' --output text
options=(-F none -i "$folder/key" -o IdentitiesOnly=yes -P "$port" -o StrictHostKeyChecking=accept-new
    -o "UserKnownHostsFile=$folder/known_hosts")

note "AWS's command, and the lines to expect"
head -c 1000000 /dev/urandom >"$folder/file"
printf 'put %s file\nget file %s\n' "$folder/file" "$folder/back" >"$folder/batch"
sftp -S "$ssh" -v -o KexAlgorithms=mlkem768x25519-sha256 "${options[@]}" -b "$folder/batch" \
    alice@127.0.0.1 2>"$folder/log"
cmp "$folder/file" "$folder/back"
for line in 'debug1: SSH2_MSG_KEXINIT sent' 'debug1: SSH2_MSG_KEXINIT received' \
    'debug1: kex: algorithm: mlkem768x25519-sha256' 'debug1: expecting SSH2_MSG_KEX_ECDH_REPLY' \
    'debug1: SSH2_MSG_KEX_ECDH_REPLY received' 'debug1: SSH2_MSG_NEWKEYS received' \
    'Authenticated to 127.0.0.1 (\[127.0.0.1\]:[0-9]*) using "publickey".'; do
    grep -m 1 "^$line" "$folder/log" || { echo "missing: $line" >&2; cat "$folder/log" >&2; exit 1; }
done

note "what the records say"
outlast audit tail -n 30 --output json | grep '"activity-type":"CONNECTED"' >"$folder/event"
grep -o '"kex":"[^"]*"' "$folder/event"
grep -q '"kex":"mlkem768x25519-sha256"' "$folder/event"
grep -q '"post-quantum":true' "$folder/event"

note "an old client: it still gets in"
# What OpenSSH before 9.9 offers.
old=(-S "${OLD_SSH:-$ssh}")
[ -n "${OLD_SSH:-}" ] ||
    old+=(-o KexAlgorithms=sntrup761x25519-sha512@openssh.com,curve25519-sha256,ecdh-sha2-nistp256)
sftp "${old[@]}" "${options[@]}" -b /dev/null alice@127.0.0.1

note "a policy with nothing but post-quantum key exchange refuses it"
aws transfer update-server --server-id "$id" --security-policy-name 2026-11-require-pq
waited=0
while sftp "${old[@]}" "${options[@]}" -b /dev/null alice@127.0.0.1 2>"$folder/log"; do
    # It holds within a second.
    waited=$((waited + 1))
    [ "$waited" -lt 100 ] || { echo "the old client is still served" >&2; exit 1; }
    sleep 0.1
done
grep 'no matching key exchange method found' "$folder/log"
sftp -S "$ssh" "${options[@]}" -b "$folder/batch" alice@127.0.0.1

note "and the ledger names those who have to be upgraded"
code=0
outlast ledger laggards --listener sftp || code=$?
[ "$code" = 5 ]
