#!/usr/bin/env bash
# What the interop tests need beside Python: Docker's client and engine, and bubblewrap. Sets up nothing else.
set -euo pipefail
missing=()
command -v docker > /dev/null && (docker version > /dev/null 2>&1 || command -v dockerd > /dev/null) || missing+=(docker.io iptables)
command -v bwrap > /dev/null || missing+=(bubblewrap)
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
  echo "missing: ${missing[*]}; the tests that need them are skipped"
  exit 0
fi
(apt-get update -qq && apt-get install -y -qq "${missing[@]}") > /dev/null 2>&1 \
  || echo "${missing[*]} cannot be installed; the tests that need them are skipped"
