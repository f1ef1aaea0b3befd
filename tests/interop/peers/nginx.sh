#!/usr/bin/env bash
# nginx.sh DEST: the web server and proxy nginx as DEST/bin/nginx, from the machine's own Debian release.
#
# Nothing is installed system-wide, and no daemon is started: who uses it gives it a configuration with -c and a folder with
# -p, and writes DEST/modules/ngx_stream_module.so into its load_module line to proxy TCP.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-debian.sh"

begin "${1:-}" "$here/lib.sh" "$here/lib-debian.sh"
unpack nginx libnginx-mod-stream
mkdir "$dest/bin"
ln -s ../tree/usr/sbin/nginx "$dest/bin/nginx"
ln -s tree/usr/lib/nginx/modules "$dest/modules"
[ -e "$dest/modules/ngx_stream_module.so" ] || die "the package has no stream module"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/nginx.conf" <<CONFIGURATION
load_module $dest/modules/ngx_stream_module.so;
pid $work/pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path $work;
    proxy_temp_path $work;
    fastcgi_temp_path $work;
    uwsgi_temp_path $work;
    scgi_temp_path $work;
}
stream {}
CONFIGURATION
run_logged "$work/log" "$dest/bin/nginx" -t -p "$work" -c "$work/nginx.conf" -e stderr ||
    die "the unpacked nginx does not start"
finish
