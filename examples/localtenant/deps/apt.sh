#!/bin/sh
# apt-get, which waits while somebody else installs: on many machines
# unattended-upgrades does after the boot. apt has an option to wait for dpkg's own
# lock, and none for those of its lists and archives; for these it is tried again.
#
#   apt.sh install -qy gcc
#
# APT_PATIENCE is how many seconds it waits at most, APT_PAUSE how many between two
# tries.
patience=${APT_PATIENCE:-300} pause=${APT_PAUSE:-3} told=
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
errors=$(mktemp) || exit
trap 'rm -f "$errors"' EXIT
end=$(($(date +%s) + patience))
while :; do
	apt-get "$@" -o "DPkg::Lock::Timeout=$patience" 2>"$errors"
	code=$?
	if [ "$code" -ne 0 ] && grep -q 'Could not get lock' "$errors" && [ "$(date +%s)" -lt "$end" ]; then
		[ -n "$told" ] || echo "Somebody else uses apt; waiting for up to $patience s." >&2
		told=1
		sleep "$pause"
		continue
	fi
	cat "$errors" >&2
	exit "$code"
done
