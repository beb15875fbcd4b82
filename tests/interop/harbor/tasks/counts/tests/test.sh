#!/bin/bash
. "$(dirname "$0")/count.sh"
right=$(count /data blue)
echo "$GREETING: $right of $WANTED"
echo "{\"reward\": 0.$((right * 100 / WANTED)), \"files\": $right}" > /logs/verifier/reward.json
echo 1 > /logs/verifier/reward.txt
