# Readies the Pod, once a job, from its helper container: takes in the agent, and
# sees to it that scripts find gitlab-runner.
# usage: sh -c SETUP setup FOLDER
# stdout: the machine, and "gzip" where there is one, to which the agent on stdin is
#         the answer: a line with its SHA-256, then the program, packed if it can be
#         unpacked; "ready" at the end, since the exit code alone may be that of a
#         lost connection
# exit: 0 ready; 3 the image has neither gitlab-runner nor gitlab-runner-helper
set -eu
folder=$1

# Stage scripts call "gitlab-runner". GitLab's helper image only has
# gitlab-runner-helper (dockerfiles/runner-helper/Dockerfile), and a script that
# misses the command skips artifacts and cache without failing
# (shells/abstract.go:211).
if ! command -v gitlab-runner >/dev/null; then
	helper=$(command -v gitlab-runner-helper) || exit 3
	mkdir -p "$folder/bin"
	ln -sf "$helper" "$folder/bin/gitlab-runner"
fi

unpack=cat
if command -v gzip >/dev/null; then unpack='gzip -dc'; fi
echo "$(uname -m) ${unpack% *}"
read -r sum
umask 022
$unpack >"$folder/podagent.new"
chmod 755 "$folder/podagent.new"
"$folder/podagent.new" verify "$sum" || {
	echo "the agent does not run here as it was sent ($(wc -c <"$folder/podagent.new") bytes)" >&2
	exit 1
}
mv "$folder/podagent.new" "$folder/podagent"

# Every user of the Pod's containers makes files here; nobody else's can be
# taken away, least of all the agent.
chmod 1777 "$folder" 2>/dev/null || :
echo ready
