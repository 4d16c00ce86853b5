package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Mount is one line of /proc/PID/mountinfo.
type Mount struct {
	Point   string
	Type    string
	Options string
}

// Mounts reads the mounts that this process sees.
func Mounts() ([]Mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return parseMounts(string(text))
}

// Points are the mount points alone.
func Points(mounts []Mount) []string {
	points := make([]string, 0, len(mounts))
	for _, mount := range mounts {
		points = append(points, mount.Point)
	}
	return points
}

// parseMounts reads the format of proc_pid_mountinfo(5): after a varying
// number of optional fields comes a hyphen, the type, the source and the
// options of the file system.
func parseMounts(text string) ([]Mount, error) {
	var mounts []Mount
	for line := range strings.Lines(text) {
		head, tail, found := strings.Cut(strings.TrimSpace(line), " - ")
		front, back := strings.Fields(head), strings.Fields(tail)
		if !found || len(front) < 6 || len(back) < 3 {
			return nil, fmt.Errorf("list mounts: cannot read the line %q of mountinfo", line)
		}
		mounts = append(mounts, Mount{Point: unescape(front[4]), Type: back[0], Options: back[2]})
	}
	return mounts, nil
}

// unescape turns \040 and the like back into characters.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
