#!/bin/sh
# An entrypoint as many images have one: it prepares something, then becomes
# what it was told to run.
set -eu
echo "entrypoint: prepared for: $*"
ENTRYPOINT_RAN=yes
export ENTRYPOINT_RAN
exec "$@"
