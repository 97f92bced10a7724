# A record processor in Perl, with what comes with Perl: JSON records in, deltas out.
#
# Run:  executableName = perl json_lines.pl
#
# Nothing but messages may go to standard output: warn, not print.
# For large records Cpanel::JSON::XS does the same as JSON::PP, and far faster.

use strict;
use warnings;
use JSON::PP;
use MIME::Base64;

$| = 1;    # flush after every print: the daemon waits for it
my $json = JSON::PP->new->utf8->ascii->allow_bignum;    # bytes in, ASCII out, all digits of a number

# The delta that a record stands for; the end of a unit of work stays as it is.
sub delta {
    my ($data) = @_;
    my $record = $json->decode(decode_base64($data));
    my $is_end = JSON::PP::is_bool($record->{end}) && $record->{end};
    for my $name ($is_end ? qw(uow count) : qw(uow table id)) {
        die "there is no $name\n" unless exists $record->{$name};
    }
    return $record if $is_end;
    my %row = %$record;
    delete @row{qw(uow table)};
    return {uow => $record->{uow}, table => $record->{table}, op => 'upsert', key => {id => $row{id}}, row => \%row};
}

sub say_line { print $json->encode({@_}), "\n" }

sub emit {
    my ($record) = @_;
    my $delta = eval { delta($record->{data}) };
    return warn "bad record $record->{sequenceNumber}: $@" unless $delta;
    say_line(action => 'emit', deltas => [$delta]);
}

sub checkpoint {
    say_line(action => 'checkpoint', sequenceNumber => undef, subSequenceNumber => undef);
    my $refused = $json->decode(scalar <STDIN>)->{error};
    warn "no checkpoint: $refused\n" if $refused;    # the next one will say as much
}

while (my $line = <STDIN>) {
    my $request = $json->decode($line);
    my $action = $request->{action};
    if ($action eq 'processRecords') {
        emit($_) for @{$request->{records}};
    }
    # Not in initialize, and not in leaseLost: then another worker has the shard.
    checkpoint() if $action =~ /^(processRecords|shardEnded|shutdownRequested)$/;
    say_line(action => 'status', responseFor => $action);
}
