# Shared by the examples; source it, do not run it. Makes a data folder and serves it until the script ends.

set -euo pipefail

# needs PROGRAM...: ends with exit code 127 if one is missing, and with 2 if OpenSSL is too old for ML-DSA.
needs() {
    local program version
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "$program is missing: put it into the PATH" >&2; exit 127; }
    done
    version=$(openssl version | cut -d ' ' -f 2)
    case $version in
        [0-2].* | 3.[0-4].* | 3.[0-4]) echo "OpenSSL 3.5 or later is needed; this is $version" >&2; exit 2 ;;
    esac
}
needs outlast aws openssl

folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

# note WORDS...: announces the next step.
note() {
    printf '\n== %s\n' "$*"
}

# serve [OPTION...]: a server on a free port, and the AWS profile that calls it.
serve() {
    export OUTLAST_DATA=$folder/data
    [ -d "$OUTLAST_DATA" ] || outlast init >"$folder/init.log"
    # An earlier server's log must not be mistaken for this one's.
    rm -f "$folder/server.log"
    outlast server --listen 127.0.0.1:0 "$@" >"$folder/server.log" 2>&1 &
    server=$!
    local waited=0
    until grep -qs 'listening on' "$folder/server.log"; do
        kill -0 "$server" 2>/dev/null || { cat "$folder/server.log" >&2; exit 1; }
        waited=$((waited + 1))
        [ "$waited" -lt 600 ] || { echo "the server did not start" >&2; exit 1; }
        sleep 0.1
    done
    export AWS_CONFIG_FILE=$OUTLAST_DATA/client/config AWS_PROFILE=outlast
    export AWS_SHARED_CREDENTIALS_FILE=$OUTLAST_DATA/client/credentials
    unset AWS_CA_BUNDLE
}

# authority KIND NAME PARENT ALGORITHM: makes a CA and prints its ARN. PARENT is "" for a root, which signs itself.
authority() {
    local kind=$1 name=$2 parent=$3 algorithm=$4 arn certificate template
    arn=$(aws acm-pca create-certificate-authority --certificate-authority-type "$kind" \
        --certificate-authority-configuration \
        "KeyAlgorithm=$algorithm,SigningAlgorithm=$algorithm,Subject={CommonName=$name}" \
        --revocation-configuration \
        'CrlConfiguration={Enabled=true,ExpirationInDays=7},OcspConfiguration={Enabled=true}' \
        --query CertificateAuthorityArn --output text)
    aws acm-pca get-certificate-authority-csr --certificate-authority-arn "$arn" \
        --output text >"$folder/$name.csr"
    template=SubordinateCACertificate_PathLen0/V1
    [ -n "$parent" ] || template=RootCACertificate/V1
    certificate=$(aws acm-pca issue-certificate --certificate-authority-arn "${parent:-$arn}" \
        --csr "fileb://$folder/$name.csr" --signing-algorithm "$algorithm" \
        --template-arn "arn:aws:acm-pca:::template/$template" \
        --validity Value=$([ -n "$parent" ] && echo 5 || echo 10),Type=YEARS \
        --query CertificateArn --output text)
    aws acm-pca get-certificate --certificate-authority-arn "${parent:-$arn}" \
        --certificate-arn "$certificate" --query Certificate --output text >"$folder/$name.pem"
    if [ -n "$parent" ]; then
        aws acm-pca get-certificate --certificate-authority-arn "$parent" \
            --certificate-arn "$certificate" --query CertificateChain --output text >"$folder/$name.chain"
        aws acm-pca import-certificate-authority-certificate --certificate-authority-arn "$arn" \
            --certificate "fileb://$folder/$name.pem" --certificate-chain "fileb://$folder/$name.chain"
    else
        aws acm-pca import-certificate-authority-certificate --certificate-authority-arn "$arn" \
            --certificate "fileb://$folder/$name.pem"
    fi
    echo "$arn"
}
