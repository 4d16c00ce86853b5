#!/usr/bin/env bash
# The demo: a local tenant cluster with no nodes, a real pipeline on it, and
# nothing left behind. `make demo` calls it after it has built what it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PWD/bin:$PATH

tenant=demo
folder=$(mktemp -d)
finish() {
	code=$?
	echo
	echo "== Taking the cluster down"
	localtenant down --name "$tenant" || code=1
	rm -rf "$folder"
	if localtenant leftovers --name "$tenant"; then
		echo "Nothing is left: no process, mount, cgroup, network namespace or file."
	else
		code=1
	fi
	[ "$code" -ne 0 ] || echo "The demo has passed."
	exit "$code"
}
trap finish EXIT

echo "== Starting a tenant cluster with no nodes"
localtenant up --name "$tenant" --pods-per-node 1 --ceiling 2 --hold 30s --boot-time 2s

# What `up` tells about the cluster, as `status` prints it.
fact() { localtenant status --name "$tenant" -o json | sed -n "s/^ *\"$1\": \"\(.*\)\",*$/\1/p" | head -n 1; }
registry=$(fact plain)
address=$(fact bridgeAddress)

localtenant driver-config --name "$tenant" >"$folder/driver.toml"

cat >"$folder/config.toml" <<TOML
[[runners]]
  name = "demo"
  url = "http://gitlab.invalid"
  token = "glrt-t3_demo-token-of-nobody"
  executor = "custom"
  safe_directory_checkout = true
  [runners.custom]
    config_exec = "$PWD/bin/tenant-executor"
    config_args = ["config", "--config", "$folder/driver.toml"]
    prepare_exec = "$PWD/bin/tenant-executor"
    prepare_args = ["prepare", "--config", "$folder/driver.toml"]
    run_exec = "$PWD/bin/tenant-executor"
    run_args = ["run", "--config", "$folder/driver.toml"]
    cleanup_exec = "$PWD/bin/tenant-executor"
    cleanup_args = ["cleanup", "--config", "$folder/driver.toml"]
    graceful_kill_timeout = 60
TOML

echo
echo "== Running examples/pipelines/demo.yml: from zero nodes, then on a warm one"
localrunner run --config "$folder/config.toml" --listen "$address:0" --cache-store "$folder/caches" \
	--variable REGISTRY="$registry" --sections plain examples/pipelines/demo.yml

echo
tries=0
until localtenant gateway show --name "$tenant" --output json | grep -q '"unfinishedPods": 0,'; do
	tries=$((tries + 1))
	[ "$tries" -lt 40 ] || { echo "a Pod of the jobs is still there" >&2; exit 1; }
	sleep 0.5
done
echo "== The Pods of the jobs are gone; the node stays for the hold"
localtenant status --name "$tenant"
