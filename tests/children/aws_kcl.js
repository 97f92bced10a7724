// A record processor on Amazon's library for Node.js; see tests/children/README.md for what all of them do.
// aws_kcl.js FILE LIBRARY

'use strict';

const fs = require('fs');
const kcl = require(process.argv[3]);

function note(what, fields) {
  fs.appendFileSync(process.argv[2], JSON.stringify({ what, ...fields }) + '\n');
}

function checkpoint(checkpointer, sequences, done) {
  if (sequences.length === 0) {
    done();
    return;
  }
  checkpointer.checkpoint(sequences[0], (error) => {
    note('checkpoint', { error: error || null });
    checkpoint(checkpointer, sequences.slice(1), done);
  });
}

kcl({
  initialize(input, done) {
    note('initialize', { shard: input.shardId });
    done();
  },
  processRecords(input, done) {
    const records = input.records;
    note('processRecords', { data: records.map((r) => r.data), keys: records.map((r) => r.partitionKey) });
    checkpoint(input.checkpointer, ['SHARD_END', records[0].sequenceNumber, null], done);
  },
  leaseLost(input, done) {
    note('leaseLost');
    done();
  },
  shardEnded(input, done) {
    note('shardEnded');
    checkpoint(input.checkpointer, [null], done);
  },
  shutdownRequested(input, done) {
    note('shutdownRequested');
    checkpoint(input.checkpointer, [null], done);
  },
}).run();
