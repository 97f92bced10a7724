# A record processor in Perl with its own JSON module; see tests/children/README.md for what all of them do.
# perl raw.pl FILE

use strict;
use warnings;
use JSON::PP;

$| = 1;
my $json = JSON::PP->new->ascii;
my $file = shift;

sub note {
    open(my $notes, '>>', $file) or die $!;
    print $notes $json->encode({@_}), "\n";
    close $notes;
}

sub checkpoint {
    my ($sequence) = @_;
    print $json->encode({action => 'checkpoint', sequenceNumber => $sequence}), "\n";
    note(what => 'checkpoint', error => $json->decode(scalar <STDIN>)->{error});
}

while (my $line = <STDIN>) {
    my $request = $json->decode($line);
    my $action = $request->{action};
    if ($action eq 'initialize') {
        note(what => $action, shard => $request->{shardId});
    } elsif ($action eq 'processRecords') {
        my @records = @{$request->{records}};
        note(what => $action, data => [map { $_->{data} } @records], keys => [map { $_->{partitionKey} } @records]);
        checkpoint('SHARD_END');
        checkpoint($records[0]{sequenceNumber});
        checkpoint(undef);
    } else {
        note(what => $action);
        checkpoint(undef) if $action ne 'leaseLost';
    }
    print $json->encode({action => 'status', responseFor => $action}), "\n";
}
