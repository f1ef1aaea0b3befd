#!/bin/sh
# dns-hook.sh: puts a TXT record where the tests' DNS server reads it, or takes it away: the file of that name in the
# folder DNS_RECORDS. lego calls it as EXEC_PATH (present|cleanup NAME VALUE), certbot as its manual hook (present or
# cleanup, the rest in the environment).
set -eu
what=$1
name=${2:-_acme-challenge.${CERTBOT_DOMAIN:-}}
value=${3:-${CERTBOT_VALIDATION:-}}
file=$DNS_RECORDS/TXT.${name%.}
case $what in
    present) printf '%s\n' "$value" >>"$file" ;;
    cleanup) rm -f "$file" ;;
    *) exit 2 ;;
esac
