# Keeps a container alive between stages, as its first process: it ends at once
# on TERM, and its shell reaps the processes that stages leave behind.
# usage: sh -c KEEPER keeper CONTAINER [MARK]
# MARK is a file for its process id, where others wait until it runs.
trap 'exit 0' TERM INT
[ -z "${2-}" ] || echo "$$" >"$2"
while :; do
	# An image may have a shell and no sleep: then a process that has stopped
	# itself is what there is to wait for.
	{ sleep 86400 || sh -c 'kill -STOP $$'; } 2>/dev/null &
	wait "$!"
done
