# Looks at what the helper container of doctor's Pod has.
# stdout: NAME=VALUE lines
export LC_ALL=C
echo "runner=$(gitlab-runner --version 2>/dev/null | sed -n 's/^Version: *//p')"
echo "git=$(git --version 2>/dev/null | sed 's/^git version //')"
echo "lfs=$(git lfs version 2>/dev/null)"
