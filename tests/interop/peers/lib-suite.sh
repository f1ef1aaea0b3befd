# Packages of another Debian suite than the machine's own, for the install scripts in this folder; source it after lib.sh.
#
# They come from the Debian source which the machine's apt uses. Nothing is installed system-wide.

# packages_of SUITE WORK PACKAGE...: downloads them into WORK/debs.
packages_of() {
    from_suite alone "$@"
}

# closure_of SUITE WORK PACKAGE...: the same with all packages that they depend on.
closure_of() {
    from_suite closure "$@"
}

# source_of SUITE WORK PACKAGE: downloads its source, without building it.
source_of() {
    from_suite source "$@"
}

from_suite() {
    local how=$1 suite=$2 work=$3 codename list parts source found='' apt kind=deb
    [ "$how" != source ] || kind=deb-src
    shift 3
    need apt-get apt-config dpkg-deb perl
    rm -rf "$work"/{sources,state,cache,debs,current}
    mkdir -p "$work"/{sources,state/lists/partial,cache/archives/partial,debs}
    : >"$work/state/status"

    # The machine's Debian sources with the suite changed, one file for each.
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
    perl - "$work/sources" "$kind" "$suite" "$codename" "$list" "$parts"/*.list "$parts"/*.sources <<'PERL'
use strict;
my ($out, $kind, $suite, $codename, @files) = @ARGV;
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
            @field{qw(types suites components)} = ($kind, $suite, 'main');
            emit('sources', join('', map { "$_: $field{$_}\n" } @order));
        }
    } else {
        for (split /\n/, $text) {
            my ($options, $uri, $s, $components) =
                /^\s*deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/ or next;
            next unless $ours{$s} && grep { $_ eq 'main' } split ' ', $components;
            emit('list', "$kind " . ($options // '') . "$uri $suite main\n");
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

    fetch() {
        if [ "$how" = source ]; then
            "${apt[@]}" source --download-only "$@"
        elif [ "$how" = alone ]; then
            "${apt[@]}" download "$@"
        else
            "${apt[@]}" -y --no-install-recommends -o Debug::NoLocking=1 --download-only install "$@" &&
                mv "$work"/cache/archives/*.deb .
        fi
    }

    for source in "$work"/sources/*; do
        [ -e "$source" ] || die "no Debian source of release '$codename' in the machine's apt configuration"
        rm -rf "$work/current"
        mkdir "$work/current"
        cp "$source" "$work/current/debian.${source##*.}"
        rm -f "$work"/debs/*.deb
        if run_logged "$work/log" "${apt[@]}" update &&
            (cd "$work/debs" && run_logged "$work/log" fetch "$@"); then
            found=1
            break
        fi
    done
    [ -n "$found" ] || die "could not download $* of Debian '$suite' with apt (see above)"
}
