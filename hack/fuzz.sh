#!/usr/bin/env bash
# Runs each fuzz test of this module with new inputs, for 30 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git grep '^func Fuzz' -- '*_test.go' | sed -n 's|^\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9]*\)(.*|\1 \2|p' | while read -r folder name; do
	echo "$name of $folder"
	go test -vet=off -run='^$' -fuzz="^$name\$" -fuzztime=30s "./$folder"
done
