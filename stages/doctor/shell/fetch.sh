# Tries whether GitLab can be reached from the helper container of doctor's Pod,
# with git, as a job's get_sources does. A repository that is not there is
# answered with 401 or 404, and both show the way to be open. The line before
# this one sets url.
# stdout: what git says, and "exit=" with its exit code
export HOME=/tmp LC_ALL=C GIT_TERMINAL_PROMPT=0 GIT_CURL_VERBOSE=1 GIT_TRACE_CURL_NO_DATA=1
limit=
if command -v timeout >/dev/null; then limit="timeout 20"; fi
$limit git -c credential.helper= ls-remote "$url/tenant-executor/doctor.git" 2>&1 </dev/null
echo "exit=$?"
