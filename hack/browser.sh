#!/usr/bin/env bash
# Installs a browser and axe-core, an accessibility checker, for the tests of the console's pages: hack/browser.sh. With
# --path chromium or --path axe it prints the path of the program, or nothing if this machine does not have it.
#
# Chromium and npm are Debian packages, which only root can install. axe-core is a file of a pinned npm package. If it
# cannot install one of them, this script prints what is missing and does not fail: the tests are then skipped.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=4.14.1
sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
axe=$root/.cache/tools/axe-core-$version/axe.min.js

find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome || true; }

# install_packages WHAT PACKAGE...: installs Debian packages.
install_packages() {
	local what=$1
	shift
	if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
		echo "the tests of the console's pages need $what, and only root on Debian can install it" >&2
		return
	fi
	echo "installing $what for the tests of the console's pages" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >&2
	apt-get install -q -y --no-install-recommends "$@" >&2
}

# install_axe unpacks the package into a temporary folder and then renames that folder, so that a concurrent caller
# never finds a half-written one.
install_axe() (
	if ! command -v npm >/dev/null; then
		install_packages npm npm
	fi
	if ! command -v npm >/dev/null; then
		echo "the tests of the console's accessibility need axe-core, and only npm can download it" >&2
		return
	fi
	echo "downloading axe-core $version, once" >&2
	mkdir -p "${axe%/*/*}"
	new=$(mktemp -d "${axe%/*/*}/axe-core.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	if ! npm pack --silent --pack-destination "$new" "axe-core@$version" >/dev/null; then
		echo "axe-core $version could not be downloaded" >&2
		return
	fi
	sha512sum --check --quiet <<<"$sha512  $new/axe-core-$version.tgz" >&2
	tar -xzf "$new/axe-core-$version.tgz" -C "$new"
	mv -T "$new/package" "${axe%/*}" 2>/dev/null || [[ -e $axe ]]
)

if [[ ${1:-} == --path ]]; then
	case ${2:-} in
	chromium) find_chromium ;;
	axe) [[ ! -e $axe ]] || echo "$axe" ;;
	*) echo "usage: hack/browser.sh [--path chromium|axe]" >&2 && exit 2 ;;
	esac
	exit
fi
if [[ -z $(find_chromium) ]]; then
	install_packages chromium chromium fonts-dejavu-core
fi
if [[ ! -e $axe ]]; then
	install_axe
fi
