#!/usr/bin/env bash
# Checks the workflows of GitHub with actionlint, that they name actions by hash, that a release waits for the tests and
# the vulnerability check, and that dependabot updates every Go module of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
# shellcheck and pyflakes are switched off, because actionlint would run them only on machines that have them.
hack/tool.sh actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml || failed=1

# A tag can be moved to another commit, a hash cannot.
if grep -nE '^[ -]*uses:' .github/workflows/*.yaml | grep -vE 'uses: (\./.*|[^@ ]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+)$' >&2; then
	echo 'these workflows name an action without its hash: write uses: OWNER/NAME@HASH # vX.Y.Z, with the hash of the commit of that tag' >&2
	failed=1
fi
# The job make of a release needs both. Each later job needs an earlier one.
if ! grep -A1 -x '  make:' .github/workflows/release.yaml | grep -qx '    needs: \[test, vuln\]'; then
	echo 'the job make of .github/workflows/release.yaml does not begin with needs: [test, vuln]' >&2
	failed=1
fi

while read -r mod; do
	folder=/$(dirname "$mod")
	grep -qxE "      - ${folder%/.}/?" .github/dependabot.yml || {
		echo ".github/dependabot.yml does not name the module in ${folder%/.}" >&2
		failed=1
	}
done < <(git ls-files --cached --others --exclude-standard -- 'go.mod' '**/go.mod')
exit $failed
