#!/usr/bin/env bash
# Runs the end-to-end tests in parallel, in E2E_SHARDS shards (default 2), each of which has its own fleet. The tests
# are sorted by name and distributed to the shards in turn, but for those in `heavy`. E2E_RUN is a regular expression
# that selects tests by name.
# With E2E_PODS, the tests of the charts on real nodes run before the first shard, beside the other shards.
#
# If at most three tests of a shard fail, each of them runs once more as a whole, in a new fleet. After a data race no
# test runs again. A test that passes at the second run is listed as FLAKY at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

shards=${E2E_SHARDS:-2}
out=$PWD/bin/e2e
times=$PWD/bin/tests
binary=$out/e2e.test
# The last test of each shard checks the recorded requests of all other tests. The last shard to finish compares the
# requests with the rules of the charts.
last=TestEveryRuleOfTheChartsIsNeeded

rm -rf "$out"
mkdir -p "$out/requests"
CGO_ENABLED=1 go test -race -c -o "$binary" ./test/e2e
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
# Tests that start many clusters or hub processes. Two of these tests at once would take all processors for minutes, so
# the last shard runs all of them. The first shard gets that many more of the other tests, to end at the same time.
heavy=$(paste -sd '|' <<-'EOF'
	TestAnOperatorGoesAheadOfItsCustomResources
	TestObjectsSpreadMoveAndDrainOverRegions
	TestTheKindPageRunsOnTheLab
	TestThreeReplicasShareTheMembers
EOF
)
more=70
if [[ -n ${E2E_PODS:-} ]]; then
	more=48 # the tests on real nodes take the time of some 30 tests
fi
if [[ -n ${E2E_RUN:-} ]] || ((shards == 1)); then
	heavy='' more=0
fi

# prefix LABEL: prints the label before each line, also before the lines that a process prints after an interrupt.
prefix() {
	trap '' INT
	exec sed -u "s/^/$1| /"
}

# run SHARD TESTS: runs tests, separated by |, after the tests on real nodes if this is the first shard.
run() {
	cd test/e2e
	if [[ $1 == 1 && -n ${E2E_PODS:-} ]]; then
		tail --pid="${running[0]}" -f /dev/null
	fi
	"$gotestsum" --format testname --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test \
		--rerun-fails-abort-on-data-race --rerun-fails-report="$out/reruns-$1.txt" --junitfile "$times/e2e-$1.xml" \
		--raw-command -- go tool test2json -t -p "$package" "$binary" -test.v=test2json -test.paniconexit0 \
		-test.timeout=50m -test.run="^($2)\$" 2>&1 </dev/null | prefix "$1"
}

# pods: runs the tests on real nodes.
pods() {
	hack/pods.sh 2>&1 </dev/null | prefix pods
}

running=() labels=()
# interrupt stops all tests and waits until they have stopped their fleets.
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

set -m # each shard and the tests on real nodes are a process group, to which interrupt sends its signal
if [[ -n ${E2E_PODS:-} ]]; then
	pods &
	running+=($!) labels+=(pods)
fi
for ((i = 1; i <= shards; i++)); do
	tests=$(awk -v i="$i" -v n="$shards" -v heavy="^($heavy)\$" -v more="$more" '
		$0 ~ heavy {if (i == n) print; next}
		++light <= more ? i == 1 : light % n == i % n' <<<"$names" | paste -sd '|')
	if [[ -z ${E2E_RUN:-} ]]; then
		tests+="|$last"
		export HANSE_REQUESTS=$out/requests/$i.json
		: >"$HANSE_REQUESTS" # empty until the shard ends
	fi
	run "$i" "$tests" &
	running+=($!) labels+=("$i")
done
set +m
echo "$count tests run in $shards shards at once; each line begins with the number of its shard"

status=0
for i in "${!running[@]}"; do
	if ! wait "${running[i]}"; then
		status=1
		failed+=" ${labels[i]}"
	fi
done
shopt -s nullglob
for report in "$out"/reruns-*.txt; do
	sed -n '/: 2 runs, 1 failures$/s/^/FLAKY: /p' "$report"
done
if ((status)); then
	echo "failed:$failed; the failures of N follow the line \"N| === Failed\"" >&2
fi
exit "$status"
