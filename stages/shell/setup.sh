# Readies the helper container, once a job.
# usage: sh -c SETUP setup FOLDER <stage.sh
# exit: 0 ready; 3 the image has neither gitlab-runner nor gitlab-runner-helper
set -eu
folder=$1
umask 022
cat >"$folder/stage.new"
mv "$folder/stage.new" "$folder/stage"

# Stage scripts call "gitlab-runner". GitLab's helper image only has
# gitlab-runner-helper (dockerfiles/runner-helper/Dockerfile), and a script that
# misses the command skips artifacts and cache without failing
# (shells/abstract.go:211).
if ! command -v gitlab-runner >/dev/null; then
	helper=$(command -v gitlab-runner-helper) || exit 3
	mkdir -p "$folder/bin"
	ln -sf "$helper" "$folder/bin/gitlab-runner"
fi

# Every user of the Pod's containers makes files here; nobody else's can be
# taken away, least of all the stage program.
chmod 1777 "$folder" 2>/dev/null || :
