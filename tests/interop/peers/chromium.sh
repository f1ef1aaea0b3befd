#!/usr/bin/env bash
# chromium.sh DEST: Chromium without a window, as DEST/bin/chromium, from the machine's own Debian release.
#
# It is unpacked into DEST together with the libraries that the machine lacks. Nothing is installed system-wide.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-debian.sh"

begin "${1:-}" "$here/lib.sh" "$here/lib-debian.sh"
need apt-get awk
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# missing: what the machine would have to install for it, one name a line.
missing() {
    apt-get -s install --no-install-recommends chromium-headless-shell fonts-dejavu-core 2>"$work/log" |
        awk '/^Inst /{print $2}'
}
packages=$(missing) || packages=
if [ -z "$packages" ]; then
    run_logged "$work/log" apt-get -qq -o Acquire::Retries=3 update || die "apt cannot be brought up to date (see above)"
    packages=$(missing) || packages=
fi
# These always: where the machine has them, their place is another.
packages=$(printf '%s\n' $packages chromium-headless-shell chromium-common fonts-dejavu-core | sort -u)
unpack $packages

# Neither graphics cards nor sound nor crash reports.
(cd "$dest/tree/usr" && rm -rf share/doc share/man share/locale lib/chromium/libVkLayer* lib/chromium/chrome_crashpad_handler)
mkdir "$dest/bin"
cat >"$dest/bin/chromium" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
libraries=$(find "$here/tree" -name '*.so*' -printf '%h\n' | sort -u | tr '\n' ':')
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:-}" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/tree/usr/lib/chromium/chromium-headless-shell" --no-sandbox --disable-gpu "$@"
WRAPPER
chmod 755 "$dest/bin/chromium"
cat >"$dest/fonts.conf" <<CONFIG
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>$dest/tree/usr/share/fonts</dir>
  <cachedir>$dest/fonts-cache</cachedir>
</fontconfig>
CONFIG
"$dest/bin/chromium" --version >"$work/log" 2>&1 || { cat "$work/log" >&2; die "the unpacked Chromium does not start"; }
finish
