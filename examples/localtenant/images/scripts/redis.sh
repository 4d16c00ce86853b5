#!/bin/sh
# Starts redis-server without root's rights, whoever starts the container.
set -eu
case ${1-} in
-*) set -- redis-server "$@" ;; # options alone are for the server
esac
if [ "${1-}" = redis-server ] && [ "$(id -u)" = 0 ]; then
	chown redis:redis .
	exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
if [ "${1-}" = redis-server ]; then
	case ${2-} in
	--version | -v | --help | -h | --test-memory) ;;
	-* | '')
		# No password is set, and clients need not come by loopback.
		shift
		set -- redis-server --protected-mode no "$@"
		;;
	esac # else a file, which says all
fi
exec "$@"
