#!/usr/bin/env bash
# Checks the workflows of GitHub with actionlint, and that dependabot updates every Go module of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
# shellcheck and pyflakes are switched off, because actionlint would run them only on machines that have them.
hack/tool.sh actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml || failed=1

while read -r mod; do
	folder=/$(dirname "$mod")
	grep -qxE "      - ${folder%/.}/?" .github/dependabot.yml || {
		echo ".github/dependabot.yml does not name the module in ${folder%/.}" >&2
		failed=1
	}
done < <(git ls-files --cached --others --exclude-standard -- 'go.mod' '**/go.mod')
exit $failed
