#!/usr/bin/env bash
# Prints the arguments with which go test runs the tests that are not built with the race detector. These tests measure
# time and memory, which the race detector needs itself, or read the large definitions of operators.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=$(git grep -l --untracked '^//go:build !race$' -- '*_test.go')
# shellcheck disable=SC2086 # no name has a space
names=$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(t \*testing.T) {$/\1/p' $files | paste -sd '|')
# shellcheck disable=SC2046,SC2086
echo "-run=^($names)\$" $(dirname $files | sort -u | sed 's|^|./|')
