# Keeps a container alive between stages, as its first process: it ends at once
# on TERM, and its shell reaps the processes that stages leave behind.
# usage: sh -c KEEPER keeper CONTAINER
trap 'exit 0' TERM INT
while :; do
	sleep 86400 &
	wait "$!"
done
