#!/usr/bin/env bash
# javascript.sh DEST: the KMS and Secrets Manager program of the AWS SDK for JavaScript v3 with a Node
# of its own (the machine's may be too old for post-quantum TLS), run as
#   DEST/bin/node DEST/src/kms-whole.mjs
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
project=$(cd "$here/../javascript" && pwd -P)
mapfile -t sources < <(find "$project/src" -type f -name '*.mjs' | sort)

need node npm
begin "${1:-}" "$here/lib.sh" "$project/package.json" "$project/package-lock.json" "${sources[@]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

cp -R "$project/package.json" "$project/package-lock.json" "$project/src" "$dest/"
(cd "$dest" && run_logged "$log" npm ci --ignore-scripts --no-audit --no-fund) ||
    die "npm could not install the packages"

# The packages node-linux-* are optional: there is one for each processor.
mkdir "$dest/bin"
node=
for own in "$dest"/node_modules/node-linux-*/bin/node; do
    [ ! -x "$own" ] || ! "$own" --version >/dev/null 2>&1 || node=../${own#"$dest/"}
done
if [ -z "$node" ]; then
    node=$(command -v node)
    printf '%s: no Node from npm for this machine; its own %s is used\n' "$peer" "$(node --version)" >&2
fi
ln -s "$node" "$dest/bin/node"
(cd "$dest" && run_logged "$log" bin/node --input-type=module \
    --eval 'for (const client of ["kms", "secrets-manager", "sts"]) await import(`@aws-sdk/client-${client}`)') ||
    die "the installed packages cannot be imported"
finish
