# A record processor in Perl, with what comes with Perl: JSON records in, deltas out, one at a time.
#
# Run:  executableName = perl markers.pl
#       childProtocol = markers
#
# Nothing but messages may go to standard output: warn, not print.
# For large records Cpanel::JSON::XS does the same as JSON::PP, and far faster.

use strict;
use warnings;
use JSON::PP;

# A marker from the environment, where it is spelled with escapes: \n, \0, \x17.
sub mark {
    my ($variable, $default) = @_;
    my %short = (n => "\n", r => "\r", t => "\t", 0 => "\0", '\\' => '\\');
    my $text = $ENV{$variable} // $default;
    $text =~ s/\\(?:x(..)|(.))/defined $1 ? chr hex $1 : $short{$2}/ge;
    return $text;
}

my $eom = mark('KAINITE_EOM', '\n');
my $eop = mark('KAINITE_EOP', '\0');
my $json = JSON::PP->new->utf8->ascii->allow_bignum;    # bytes in, ASCII out, all digits of a number

# The delta that a record stands for; the end of a unit of work stays as it is.
sub delta {
    my ($message) = @_;
    my $record = $json->decode($message);
    my $is_end = JSON::PP::is_bool($record->{end}) && $record->{end};
    for my $name ($is_end ? qw(uow count) : qw(uow table id)) {
        die "there is no $name\n" unless exists $record->{$name};
    }
    return $record if $is_end;
    my %row = %$record;
    delete @row{qw(uow table)};
    return {uow => $record->{uow}, table => $record->{table}, op => 'upsert', key => {id => $row{id}}, row => \%row};
}

$| = 1;        # flush after every print: the daemon waits for it
$/ = $eom;     # a message is a "line"
while (my $message = <STDIN>) {
    chomp $message;
    my $answer = eval { delta($message) } // {bad => "$@"};
    print $json->encode($answer), $eom, $eop;
}
