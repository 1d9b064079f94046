# What DBD::Pg does at Keyhole: `perl clinic.pl` with PGHOST and so on; a failure ends it with its reason.
use strict;
use warnings;
use DBI;

sub insist {
    my ($name, $found, $expected) = @_;
    die "$name: [$found], not [$expected]\n" unless $found eq $expected;
}

my $keyhole = DBI->connect("dbi:Pg:", $ENV{PGUSER}, $ENV{PGPASSWORD},
    { RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1 });

my $question = "SELECT ward FROM visits WHERE ward IN (?,?) GROUP BY ward HAVING count(*) > ? ORDER BY ward";
my $asked = $keyhole->prepare($question);
for my $most (1000, 1000) {
    $asked->execute("A", "D", $most);
    insist("parameters", join(",", map { $_->[0] } @{ $asked->fetchall_arrayref }), "A");
}
my $domain = $keyhole->selectcol_arrayref("SELECT DISTINCT ward FROM visits WHERE ward IN (?,?) ORDER BY 1", undef, "B", "A");
insist("domain", join(",", @$domain), "A,B");

eval { $keyhole->selectall_arrayref("SELECT age FROM visits") };
insist("refusal", $keyhole->state, "42501");
die "no code and no hint: " . $keyhole->errstr
    unless $keyhole->errstr =~ /KH103: .*\n.*HINT:  Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING/s;

$keyhole->do("COPY (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000 ORDER BY ward) TO STDOUT");
my ($line, $copied) = ("", "");
$copied .= $line while $keyhole->pg_getcopydata($line) >= 0;
insist("copy", $copied, "A\nB\n");
$keyhole->disconnect;
print "done\n";
