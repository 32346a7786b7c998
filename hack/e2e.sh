#!/usr/bin/env bash
# Runs the end-to-end tests in parallel, in E2E_SHARDS shards (default 2), each of which has its own fleet. The tests
# are sorted by name and distributed to the shards in turn. E2E_RUN is a regular expression that selects tests by name.
#
# If at most three tests of a shard fail, each of them runs once more as a whole, in a new fleet. After a data race no
# test runs again. A test that passes at the second run is listed as FLAKY at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

shards=${E2E_SHARDS:-2}
out=$PWD/bin/e2e
binary=$out/e2e.test
# The last test of each shard checks the recorded requests of all other tests. The last shard to finish compares the
# requests with the rules of the charts.
last=TestEveryRuleOfTheChartsIsNeeded

rm -rf "$out"
mkdir -p "$out/requests"
go test -race -c -o "$binary" ./test/e2e
package=$(go list ./test/e2e)
gotestsum=$(hack/tool.sh --path gotestsum)

names=$("$binary" -test.list . | grep '^Test' | LC_ALL=C sort)
if [[ -n ${E2E_RUN:-} ]]; then
	names=$(grep -E -- "$E2E_RUN" <<<"$names") || {
		echo "no end-to-end test has a name that matches E2E_RUN=$E2E_RUN" >&2
		exit 1
	}
else
	grep -qx "$last" <<<"$names"
	names=$(grep -vx "$last" <<<"$names")
fi
count=$(wc -l <<<"$names")
shards=$((shards < count ? shards : count))

# run SHARD TESTS: runs tests, separated by |, and prints the number of the shard before each line of the output.
run() {
	cd test/e2e
	"$gotestsum" --format testname --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test \
		--rerun-fails-abort-on-data-race --rerun-fails-report="$out/reruns-$1.txt" \
		--raw-command -- go tool test2json -t -p "$package" "$binary" -test.v=test2json -test.paniconexit0 \
		-test.timeout=50m -test.run="^($2)\$" 2>&1 </dev/null |
		(trap '' INT && exec sed -u "s/^/$1| /") # it prints what a shard says after an interrupt
}

running=()
# interrupt stops all shards and waits until each of them has stopped its fleet.
interrupt() {
	trap '' HUP INT TERM
	rm -f "$binary" # so that no failed test runs again
	for pid in "${running[@]}"; do
		kill -INT -- "-$pid" 2>/dev/null || true
	done
	wait
	exit 130
}
trap interrupt HUP INT TERM

set -m # each shard is a process group, to which interrupt sends its signal
for ((i = 1; i <= shards; i++)); do
	tests=$(awk -v i="$i" -v n="$shards" 'NR % n == i % n' <<<"$names" | paste -sd '|')
	if [[ -z ${E2E_RUN:-} ]]; then
		tests+="|$last"
		export HANSE_REQUESTS=$out/requests/$i.json
		: >"$HANSE_REQUESTS" # empty until the shard ends
	fi
	run "$i" "$tests" &
	running+=($!)
done
set +m
echo "$count tests run in $shards shards at once; each line begins with the number of its shard"

status=0
for i in "${!running[@]}"; do
	if ! wait "${running[i]}"; then
		status=1
		failed+=" $((i + 1))"
	fi
done
shopt -s nullglob
for report in "$out"/reruns-*.txt; do
	sed -n '/: 2 runs, 1 failures$/s/^/FLAKY: /p' "$report"
done
if ((status)); then
	echo "failed shards:$failed; their failures follow the line \"N| === Failed\"" >&2
fi
exit "$status"
