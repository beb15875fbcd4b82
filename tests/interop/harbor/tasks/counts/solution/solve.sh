#!/bin/bash
for name in 2 $LAST; do echo "$COLOR" > "$name"; done
