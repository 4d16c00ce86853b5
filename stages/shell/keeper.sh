# Keeps a container alive between stages, as its first process: it ends at once
# on TERM, and its shell reaps the processes that stages leave behind.
# usage: sh -c KEEPER keeper FOLDER CONTAINER
trap 'exit 0' TERM INT
while :; do
	sleep 86400 &
	# stage.sh must not take this sleep for a process of the job.
	echo "$!" 2>/dev/null >"$1/keeper-$2"
	wait "$!"
done
