# Readies the Pod, once a job, from its helper container: takes in the agent, and
# sees to it that scripts find gitlab-runner.
# usage: sh -c SETUP setup FOLDER
# stdout: the machine, and "gzip" where there is one, to which the agent on stdin is
#         the answer: a line with its SHA-256, then the program, packed if it can be
#         unpacked; "ready" at the end, since the exit code alone may be that of a
#         lost connection
# exit: 0 ready; 3 the image has neither gitlab-runner nor gitlab-runner-helper
set -eu
umask 022
folder=$1

# Every user of the Pod's containers makes files here, and the job's image may have
# been here first, under any of our names. From now on nobody's can be taken away
# by another, and what is ours is made in a folder of our own.
chmod 1777 "$folder" 2>/dev/null || :
n=0
until mkdir -m 700 "$folder/.setup.$$.$n" 2>/dev/null; do
	n=$((n + 1))
	[ "$n" -lt 1000 ] || { echo "no folder can be made in $folder" >&2; exit 1; }
done
new=$folder/.setup.$$.$n

# ours TEST NAME: NAME is of this kind and this user's, and no link.
ours() { [ ! -L "$folder/$2" ] && [ "$1" "$folder/$2" ] && [ -O "$folder/$2" ]; }

# put TEST NAME: moves NAME to its place. What stands there and is not ours goes
# aside; whoever is faster than that is found out.
put() {
	if ! ours "$1" "$2" && { [ -e "$folder/$2" ] || [ -L "$folder/$2" ]; }; then
		mv "$folder/$2" "$new/not-ours.$2" || :
	fi
	if [ "$1" = -f ] || ! ours "$1" "$2"; then mv "$new/$2" "$folder/$2" || :; fi
	ours "$1" "$2" || { echo "$folder/$2 is another user's: the job's image has made it" >&2; exit 1; }
}

# The stages of this container, which its user alone has to do with.
mkdir "$new/helper"
put -d helper

# Stage scripts call "gitlab-runner". GitLab's helper image only has
# gitlab-runner-helper (dockerfiles/runner-helper/Dockerfile), and a script that
# misses the command skips artifacts and cache without failing
# (shells/abstract.go:211).
mkdir "$new/bin"
if ! command -v gitlab-runner >/dev/null; then
	helper=$(command -v gitlab-runner-helper) || exit 3
	ln -s "$helper" "$new/bin/gitlab-runner"
fi
put -d bin

unpack=cat
if command -v gzip >/dev/null; then unpack='gzip -dc'; fi
echo "$(uname -m) ${unpack% *}"
read -r sum
$unpack >"$new/podagent"
chmod 755 "$new/podagent"
"$new/podagent" verify "$sum" || {
	echo "the agent does not run here as it was sent ($(wc -c <"$new/podagent") bytes)" >&2
	exit 1
}
put -f podagent
echo ready
