# A record processor in bash and jq, without a library; see tests/children/README.md for what all of them do.
# bash raw.sh FILE

note() { jq -nc "$@" >> "$FILE"; }

checkpoint() {
    jq -nc --argjson sequence "$1" '{action: "checkpoint", sequenceNumber: $sequence, subSequenceNumber: null}'
    IFS= read -r reply
    jq -c '{what: .action, error}' <<< "$reply" >> "$FILE"
}

FILE=$1
while IFS= read -r line; do
    action=$(jq -r .action <<< "$line")
    case $action in
        initialize) jq -c '{what: .action, shard: .shardId}' <<< "$line" >> "$FILE" ;;
        processRecords)
            jq -c '{what: .action, data: [.records[].data], keys: [.records[].partitionKey]}' <<< "$line" >> "$FILE"
            checkpoint '"SHARD_END"'
            checkpoint "$(jq .records[0].sequenceNumber <<< "$line")"
            checkpoint null
            ;;
        leaseLost) note '{what: "leaseLost"}' ;;
        *)
            note --arg what "$action" '{what: $what}'
            checkpoint null
            ;;
    esac
    jq -nc --arg action "$action" '{action: "status", responseFor: $action}'
done
