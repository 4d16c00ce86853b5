package doctor

import (
	"syscall"
)

// writable says why this user may not make anything in a folder.
func writable(folder string) error {
	const writeAndSearch = 0o3 // W_OK and X_OK of access(2)
	return syscall.Access(folder, writeAndSearch)
}

// networkFileSystem names the file system of a folder if other hosts may have
// it as well, by its number in statfs(2).
func networkFileSystem(folder string) string {
	var found syscall.Statfs_t
	if err := syscall.Statfs(folder, &found); err != nil {
		return ""
	}
	return map[uint32]string{
		0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x00c36400: "Ceph", 0x01021997: "9P",
	}[uint32(found.Type)] //nolint:gosec // the numbers have 32 bits
}
