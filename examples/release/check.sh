#!/bin/sh
# Checks a release that `make release` has built: that it is built again byte for
# byte, that `make update` has nothing to write in it, and that its package can be
# installed, used, removed and purged.
set -eu
arch=$(dpkg --print-architecture)
again=$(mktemp -d)
trap 'rm -rf "$again"; dpkg -P tenant-executor >/dev/null 2>&1 || true' EXIT

echo "== built again from another folder"
git clone -q --no-hardlinks . "$again/src"
make -s -C "$again/src" release
for file in bin/release/*; do
    cmp "$file" "$again/src/$file"
    echo "same: $file"
done

echo "== what is made from the code"
make -s -C "$again/src" update
git -C "$again/src" diff --exit-code --stat
echo "make update writes what is there"

echo "== the package"
(cd bin/release && sha256sum -c SHA256SUMS)
package=$(ls bin/release/tenant-executor_*_"$arch".deb)
dpkg -i "$package"
/usr/bin/tenant-executor version
test "$(stat -c %a /var/lib/tenant-executor)" = 700
test "$(stat -c %a /etc/tenant-executor)" = 750
if /usr/bin/tenant-executor prepare >"$again/said" 2>&1; then
    echo "prepare without a configuration passes" >&2; exit 1
fi
grep -q /etc/tenant-executor/config.toml "$again/said"
if command -v systemd-analyze >/dev/null; then
    # It says what it ignores, and ends well all the same.
    systemd-analyze verify --man=no /lib/systemd/system/tenant-executor-warm.service 2>&1 | tee "$again/verified"
    if grep -q tenant-executor "$again/verified"; then exit 1; fi
    echo "systemd takes the unit"
else
    echo "no systemd-analyze: the unit is not verified"
fi
echo kept >/etc/tenant-executor/config.toml
dpkg -r tenant-executor
test ! -e /usr/bin/tenant-executor
test ! -e /lib/systemd/system/tenant-executor-warm.service
test "$(cat /etc/tenant-executor/config.toml)" = kept
dpkg -P tenant-executor
test ! -e /etc/tenant-executor && test ! -e /var/lib/tenant-executor
echo "installed, removed and purged: nothing is left"
