# Runs one stage of a job in this container, or ends one.
#
# usage: stage start FOLDER CONTAINER ID SIZE <script
#        stage stop  FOLDER CONTAINER ID GRACE
#
# start reads the script, SIZE bytes of it, and refuses a shorter one. When it
# is whole, the line "started ID" goes to stderr and the script runs, all its
# output on stdout in the order of writing. The exit code is the script's from
# that line on; before it, stderr says what is wrong.
#
# stop ends every process in the container but the keeper: TERM, up to GRACE
# seconds, then KILL until none is left. exit: 0 none is left, 1 some are.
folder=$2 container=$3 id=$4
run=$folder/run-$id

start() {
	size=$1
	mask=$(umask)
	umask 077
	mkdir "$run" || exit 1
	cat >"$run/script" || exit 1
	got=$(($(wc -c <"$run/script")))
	if [ "$got" -ne "$size" ]; then
		rm -rf "$run"
		echo "$got of $size bytes of the script arrived" >&2
		exit 1
	fi
	umask "$mask"
	if [ "$container" = helper ]; then
		# What the helper checks out has to be writable for whichever user the
		# job's image has, as with the kubernetes executor
		# (executors/kubernetes, gitlab-runner-build of the helper image).
		umask 000
		PATH=$PATH:$folder/bin
	fi
	shell=$(command -v bash || command -v sh)
	echo "started $id" >&2
	exec 2>&1
	"$shell" "$run/script" </dev/null
	code=$?
	rm -rf "$run"
	exit "$code"
}

# others counts the processes to end, and sends them signal $1 unless it is "".
others() {
	count=0
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		case $pid in 1 | "$$" | "$keeper") continue ;; esac
		{ read -r line <"$dir/stat"; } 2>/dev/null || continue
		# The state follows the name in brackets, which may hold anything.
		set -- "$1" ${line##*) }
		case $2 in Z | X) continue ;; esac
		[ "$3" = "$$" ] && continue
		count=$((count + 1))
		[ -z "$1" ] || kill -"$1" "$pid" 2>/dev/null
	done
	[ "$count" -gt 0 ]
}

stop() {
	grace=$1
	keeper=$(cat "$folder/keeper-$container" 2>/dev/null)
	rm -rf "$run"
	tenths=$((grace * 10))
	others TERM
	while [ "$tenths" -gt 0 ] && others ""; do
		pause
		tenths=$((tenths - 1))
	done
	tries=100
	while [ "$tries" -gt 0 ] && others KILL; do
		pause
		tries=$((tries - 1))
	done
	! others ""
}

pause() { sleep 0.1 2>/dev/null || sleep 1; }

"$1" "$5"
