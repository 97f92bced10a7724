# A worker that speaks markers, in Perl without modules; its markers are its arguments.
# perl markers.pl FILE -e EOM -E EOP

use strict;
use warnings;

$| = 1;
binmode STDIN;
binmode STDOUT;

sub marker { my ($text) = @_; $text =~ s/\\x(..)/chr hex $1/ge; return $text; }

my ($file, %option) = @ARGV;
my ($eom, $eop) = map { marker($option{$_}) } qw(-e -E);
$/ = $eom;
while (my $message = <STDIN>) {
    chomp $message;
    open(my $notes, '>>', $file) or die $!;
    print $notes unpack('H*', $message), "\n";
    close $notes;
    print qq({"uow":"$message","end":true,"count":0}), $eom, $eop;
}
