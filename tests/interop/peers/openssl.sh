#!/usr/bin/env bash
# openssl.sh DEST: OpenSSL 3.5 or newer (which has ML-DSA) as DEST/bin/openssl.
#
# Takes the packages of a newer Debian release than the machine's own, from the
# Debian source which the machine's apt uses, and unpacks them into DEST. Nothing
# is installed system-wide. OUTLAST_PEER_SUITE names another release.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

suite=${OUTLAST_PEER_SUITE:-trixie}
packages="openssl openssl-provider-legacy libssl3t64 libc6 libzstd1 zlib1g"

need apt-get apt-config dpkg-deb perl
begin "${1:-}" "$(dirname "$(readlink -f "$0")")/lib.sh" <(echo "$suite")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{sources,state/lists/partial,cache/archives/partial,debs}
: >"$work/state/status"

# The machine's Debian sources with the suite changed, one file for each.
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
perl - "$work/sources" "$suite" "$codename" "$list" "$parts"/*.list "$parts"/*.sources <<'PERL'
use strict;
my ($out, $suite, $codename, @files) = @ARGV;
my %ours = map { $_ => 1 } grep { $_ ne '' } ($codename, $suite, qw(stable oldstable));
my ($count, %seen) = (0);
sub emit {
    my ($ext, $text) = @_;
    return if $seen{$text}++;
    open my $f, '>', sprintf("%s/%02d.%s", $out, ++$count, $ext) or die $!;
    print $f $text;
    close $f;
}
for my $file (@files) {
    open my $f, '<', $file or next;
    my $text = do { local $/; <$f> };
    if ($file =~ /\.sources$/) {
        $text =~ s/^#.*\n//mg;
        for my $stanza (split /\n(?:[ \t]*\n)+/, $text) {
            my (%field, @order, $name);
            for (split /\n/, $stanza) {
                if (/^([^\s:]+):\s*(.*)$/) { $name = lc $1; push @order, $name; $field{$name} = $2; }
                elsif (defined $name && /^\s/) { $field{$name} .= "\n$_"; }
            }
            next if lc($field{enabled} // 'yes') =~ /^(no|false|0|off|without|disable)$/;
            next unless grep { $_ eq 'deb' } split ' ', $field{types} // '';
            next unless grep { $ours{$_} } split ' ', $field{suites} // '';
            next unless grep { $_ eq 'main' } split ' ', $field{components} // '';
            @field{qw(types suites components)} = ('deb', $suite, 'main');
            emit('sources', join('', map { "$_: $field{$_}\n" } @order));
        }
    } else {
        for (split /\n/, $text) {
            my ($options, $uri, $s, $components) =
                /^\s*deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/ or next;
            next unless $ours{$s} && grep { $_ eq 'main' } split ' ', $components;
            emit('list', 'deb ' . ($options // '') . "$uri $suite main\n");
        }
    }
}
PERL

apt=(apt-get -qq
    -o Dir::State="$work/state" -o Dir::State::Lists="$work/state/lists"
    -o Dir::State::status="$work/state/status" -o Dir::Cache="$work/cache"
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/current"
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o Acquire::Languages=none -o Acquire::Retries=3
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
    -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
    -o APT::Update::Error-Mode=any)
[ "$(id -u)" != 0 ] || apt+=(-o APT::Sandbox::User=root)

found=
for source in "$work"/sources/*; do
    [ -e "$source" ] || die "no Debian source of release '$codename' in the machine's apt configuration"
    rm -rf "$work/current"
    mkdir "$work/current"
    cp "$source" "$work/current/debian.${source##*.}"
    rm -f "$work"/debs/*.deb
    if run_logged "$work/log" "${apt[@]}" update &&
        (cd "$work/debs" && run_logged "$work/log" "${apt[@]}" download $packages); then
        found=1
        break
    fi
done
[ -n "$found" ] || die "could not download the packages of Debian '$suite' with apt (see above)"

mkdir "$dest/tree" "$dest/bin"
for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$dest/tree"
done

# locate test...: the first match of the find tests, relative to DEST.
locate() {
    local match
    match=$(cd "$dest" && find tree "$@" -print | sort | head -n 1)
    [ -n "$match" ] || die "nothing in the packages matches: $*"
    printf '%s' "$match"
}
binary=$(locate -path '*/bin/openssl' -type f)
loader=$(locate -path '*/lib/*-linux-gnu*/ld-linux*.so.*')
libcrypto=$(locate -name 'libcrypto.so.3')
modules=$(locate -name ossl-modules -type d)
config=$(locate -path '*/etc/ssl/openssl.cnf')

cat >"$dest/bin/openssl" <<WRAPPER
#!/bin/sh
# Starts the unpacked OpenSSL by its own loader with its own libraries.
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export OPENSSL_CONF="\${OPENSSL_CONF:-\$here/$config}"
export OPENSSL_MODULES="\$here/$modules"
unset LD_LIBRARY_PATH LD_PRELOAD
exec "\$here/$loader" --inhibit-cache --library-path \\
    "\$here/$(dirname "$libcrypto"):\$here/$(dirname "$loader")" "\$here/$binary" "\$@"
WRAPPER
chmod 755 "$dest/bin/openssl"

version=$("$dest/bin/openssl" version) || die "the unpacked openssl does not start"
number=$(printf '%s' "$version" | cut -d' ' -f2)
[ "$(printf '3.5\n%s\n' "$number" | sort -V | head -n 1)" = 3.5 ] || die "got $version, want 3.5 or newer"
"$dest/bin/openssl" genpkey -algorithm ML-DSA-65 -out "$work/key.pem" 2>"$work/log" ||
    die "$version cannot make an ML-DSA-65 key: $(tail -n 1 "$work/log")"
finish
