#!/usr/bin/env bash
# Prints the slowest packages and tests of the last runs: their seconds, their run and their names. Each run has a JUnit
# file in bin/tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../bin/tests"

# slowest COUNT PATTERN: prints the COUNT slowest matches of "SECONDS NAME", to which PATTERN changes a line.
slowest() {
	local file
	for file in *.xml; do
		sed -n "s|github.com/hanse-dev/hanse/||g; $2p" "$file" | sed "s/ / ${file%.xml} /"
	done | sort -rn | awk -v count="$1" 'NR <= count {printf "%8.1f s  %-12s %s%s\n", $1, $2, $3, $4 ? "." $4 : ""}'
}

echo "the slowest packages:"
slowest 15 's/.*<testsuite .* time="\([^"]*\)" name="\([^"]*\)".*/\1 \2/'
echo "the slowest tests:"
slowest 30 's/.*<testcase classname="\([^"]*\)" name="\([^"/]*\)" time="\([^"]*\)".*/\3 \1 \2/'
