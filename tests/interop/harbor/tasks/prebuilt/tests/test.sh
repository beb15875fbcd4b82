#!/bin/bash
test -e /tmp/sorted
echo $((1 - $?)) > /logs/verifier/reward.txt
exit 1
