#!/usr/bin/env bash
# Installs the packages that real nodes of the lab need. It must run as root on Debian. On other machines it does
# nothing, and `lab check` prints what is missing.
set -euo pipefail

packages=()
for pair in containerd:containerd runc:runc iptables:iptables /usr/lib/cni/bridge:containernetworking-plugins; do
	if ! command -v "${pair%:*}" >/dev/null; then
		packages+=("${pair#*:}")
	fi
done
if ((${#packages[@]} == 0)); then
	exit
fi
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo "real nodes need ${packages[*]}, and only root on Debian can install them" >&2
	exit
fi
echo "installing ${packages[*]} for real nodes" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2
apt-get install -q -y --no-install-recommends "${packages[@]}" >&2
