#!/usr/bin/env bash
# A record processor in Bash, and nearly all of it in jq: JSON records in, deltas out, one at a time.
#
# Get ready:  apt-get install jq
# Run:        executableName = bash markers.sh
#             childProtocol = markers
#
# A message has to end with a line end, as it does by default. Two traps of jq 1.6: it keeps 17 digits of a number, and
# it breaks characters beyond ASCII in lines of more than 64 kB; those are reported as bad here, not passed on.

# A marker is spelled with escapes: \n, \x00. In JSON, which jq reads, they are \n and \u0000.
eop=${KAINITE_EOP:-\\x00}

exec jq --raw-input --join-output --unbuffered --argjson eop "\"${eop//\\x/\\u00}\"" '
    # The delta that a record stands for; the end of a unit of work stays as it is.
    def delta:
        if type != "object" then error("a record is an object")
        elif .end == true and has("uow") and has("count") then .
        elif .end != true and has("uow") and has("table") and has("id") then
            {uow, table, op: "upsert", key: {id}, row: del(.uow, .table)}
        else error("a record has uow, table and id, or uow, end and count") end;

    # Bytes that are not UTF-8 come in as U+FFFD.
    def text: if contains("\ufffd") then error("not UTF-8") else . end;

    (try (text | fromjson | delta) catch {bad: .[:200]} | tojson) + "\n" + $eop'
