// A record processor in JavaScript, without a library: JSON records in, deltas out, one at a time.
//
// Run:  executableName = node markers.js
//       childProtocol = markers
//
// Nothing but messages may go to standard output: console.error(), not console.log().
// JavaScript keeps about 16 digits of a number: send longer ones as text.

'use strict';

// A marker from the environment, where it is spelled with escapes: \n, \0, \x17.
function mark(variable, byDefault) {
  const short = { n: '\n', r: '\r', t: '\t', 0: '\0', '\\': '\\' };
  const text = process.env[variable] || byDefault;
  const unescape = (_, hex, letter) => (hex ? String.fromCharCode(parseInt(hex, 16)) : short[letter]);
  return Buffer.from(text.replace(/\\(?:x(..)|(.))/g, unescape), 'latin1');
}

const EOM = mark('KAINITE_EOM', '\\n');
const EOP = mark('KAINITE_EOP', '\\0');

// The delta that a record stands for; the end of a unit of work stays as it is.
function delta(message) {
  const record = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(message));
  const { uow, table, ...row } = record;
  const needed = record.end === true ? [uow, row.count] : [uow, table, row.id];
  if (needed.includes(undefined)) {
    throw new Error('a record has uow, table and id, or uow, end and count');
  }
  return record.end === true ? record : { uow, table, op: 'upsert', key: { id: row.id }, row };
}

function answer(message) {
  try {
    return delta(message);
  } catch (problem) {
    return { bad: problem.message };
  }
}

let held = Buffer.alloc(0);
process.stdin.on('data', (data) => {
  held = Buffer.concat([held, data]);
  for (let end = held.indexOf(EOM); end >= 0; end = held.indexOf(EOM)) {
    const text = JSON.stringify(answer(held.subarray(0, end)));
    process.stdout.write(Buffer.concat([Buffer.from(text), EOM, EOP]));
    held = held.subarray(end + EOM.length);
  }
});
