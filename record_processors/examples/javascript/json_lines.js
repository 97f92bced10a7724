// A record processor in JavaScript, with Amazon's library for it (aws-kcl): JSON records in, deltas out.
//
// Get ready:  npm install
// Run:        executableName = node json_lines.js
//
// Nothing but messages may go to standard output: console.error(), not console.log().
// JavaScript keeps about 16 digits of a number: send longer ones as text.

'use strict';

const kcl = require('aws-kcl');

// The delta that a record stands for; the end of a unit of work stays as it is.
function delta(data) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(data, 'base64'));
  const record = JSON.parse(text);
  const { uow, table, ...row } = record;
  const needed = record.end === true ? [uow, row.count] : [uow, table, row.id];
  if (needed.includes(undefined)) {
    throw new Error('a record has uow, table and id, or uow, end and count');
  }
  return record.end === true ? record : { uow, table, op: 'upsert', key: { id: row.id }, row };
}

function emitLine(record) {
  try {
    return JSON.stringify({ action: 'emit', deltas: [delta(record.data)] }) + '\n';
  } catch (problem) {
    console.error(`bad record ${record.sequenceNumber}: ${problem.message}`);
    return '';
  }
}

// The answer comes later: the call is done when it is there.
function checkpoint(checkpointer, done) {
  checkpointer.checkpoint((refused) => {
    if (refused) {
      console.error(`no checkpoint: ${refused}`); // the next one will say as much
    }
    done();
  });
}

kcl({
  initialize: (input, done) => done(),
  processRecords: (input, done) => {
    // Wait until all is written: aws-kcl ends the process when its own line would have to wait.
    process.stdout.write(input.records.map(emitLine).join(''), () => checkpoint(input.checkpointer, done));
  },
  leaseLost: (input, done) => done(), // another worker has the shard: too late for a checkpoint
  shardEnded: (input, done) => checkpoint(input.checkpointer, done),
  shutdownRequested: (input, done) => checkpoint(input.checkpointer, done),
}).run();
