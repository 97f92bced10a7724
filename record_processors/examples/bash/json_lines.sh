#!/usr/bin/env bash
# A record processor in Bash, and all of it in jq: JSON records in, deltas out.
#
# Get ready:  apt-get install jq
# Run:        executableName = bash json_lines.sh
#
# jq 1.6 keeps 17 digits of a number, jq 1.7 keeps all of them: send longer ones as text.

exec jq --null-input --compact-output --unbuffered '
    # The delta that a record stands for; the end of a unit of work stays as it is.
    def delta:
        if type != "object" then error("a record is an object")
        elif .end == true and has("uow") and has("count") then .
        elif .end != true and has("uow") and has("table") and has("id") then
            {uow, table, op: "upsert", key: {id}, row: del(.uow, .table)}
        else error("a record has uow, table and id, or uow, end and count") end;

    # Bytes that are not UTF-8 come back as others.
    def text:
        . as $data | @base64d | if @base64 == $data then . else error("not UTF-8") end;

    # What goes through debug is written to standard error.
    def emit:
        . as $record
        | try {action: "emit", deltas: [.data | text | fromjson | delta]}
          catch ("bad record \($record.sequenceNumber): \(.[:200])" | debug | empty);

    def checkpoint: {action: "checkpoint", sequenceNumber: null, subSequenceNumber: null};

    # A checkpoint is answered; until then the request that it belongs to is remembered.
    foreach inputs as $message (
        null;
        if $message.action == "checkpoint" then . else $message.action end;
        . as $request | $message
        | (.error // empty | "no checkpoint: \(.)" | debug | empty),  # the next one will say as much
          (.records // [] | .[] | emit),
          if .action | IN("processRecords", "shardEnded", "shutdownRequested") then checkpoint
          else {action: "status", responseFor: $request} end
    )'
