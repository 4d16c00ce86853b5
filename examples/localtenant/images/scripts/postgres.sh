#!/bin/sh
# Starts PostgreSQL without root's rights, whoever starts the container, and
# makes the database first if there is none. The variables are those that the
# well-known image has: POSTGRES_PASSWORD, POSTGRES_USER, POSTGRES_DB,
# POSTGRES_HOST_AUTH_METHOD, PGDATA.
set -eu
case ${1-} in
-*) set -- postgres "$@" ;; # options alone are for the server
esac
[ "${1-}" = postgres ] || exec "$@"

: "${PGDATA:=/var/lib/postgresql/data}" "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}" "${POSTGRES_PASSWORD=}" "${POSTGRES_HOST_AUTH_METHOD=scram-sha-256}"
export PGDATA
if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA"
	chown postgres:postgres "$PGDATA"
	chmod 700 "$PGDATA"
	exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

initialize() {
	initdb --no-sync --no-instructions --encoding=UTF8 --locale=C.UTF-8 --username="$POSTGRES_USER" \
		--auth-local=trust --auth-host="$POSTGRES_HOST_AUTH_METHOD" "$@"
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
		echo "postgres: set POSTGRES_PASSWORD, or POSTGRES_HOST_AUTH_METHOD=trust to let everybody in" >&2
		exit 1
	fi
	# A Pod's containers share one loopback, so the password counts there too;
	# the well-known image trusts whoever comes that way.
	if [ -n "$POSTGRES_PASSWORD" ]; then
		file=$(mktemp)
		printf '%s\n' "$POSTGRES_PASSWORD" >"$file"
		initialize --pwfile="$file"
		rm "$file"
	else
		initialize
	fi
	echo "host all all all $POSTGRES_HOST_AUTH_METHOD" >>"$PGDATA/pg_hba.conf"
	echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
	if [ "$POSTGRES_DB" != postgres ]; then
		# A name may hold whatever an identifier may: the quotes are doubled.
		name=$(printf '%s' "$POSTGRES_DB" | sed 's/"/""/g')
		printf 'CREATE DATABASE "%s"\n' "$name" | postgres --single -j postgres >/dev/null
	fi
fi
exec "$@"
