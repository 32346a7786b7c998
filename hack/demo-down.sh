#!/usr/bin/env bash
# Stops the processes that demo.sh has left running, and removes their state.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin/lab down --dir "$PWD/.cache/demo"
rm -rf .cache/demo # the lab leaves the files of others, such as the hub's kubeconfig with its token
