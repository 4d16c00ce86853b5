# Looks at the helper container of doctor's Pod: what every job needs, and
# whether GitLab can be reached from there. The line before this one sets url.
# stdout: NAME=VALUE lines; after "fetch=" all that git says
export HOME=/tmp LC_ALL=C
echo "runner=$(gitlab-runner --version 2>/dev/null | sed -n 's/^Version: *//p')"
echo "git=$(git --version 2>/dev/null | sed 's/^git version //')"
echo "lfs=$(git lfs version 2>/dev/null)"
[ -n "$url" ] || exit 0
# git is what a job's get_sources runs. A repository that is not there is
# answered with 401 or 404, and both show the way to be open.
limit=
if command -v timeout >/dev/null; then limit="timeout 20"; fi
export GIT_TERMINAL_PROMPT=0 GIT_CURL_VERBOSE=1 GIT_TRACE_CURL_NO_DATA=1
echo "fetch="
$limit git -c credential.helper= ls-remote "$url/tenant-executor/doctor.git" 2>&1 </dev/null
echo "exit=$?"
