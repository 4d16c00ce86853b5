package agent

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Times of a look at ports.
const (
	// portsPatience is how long a look waits for ports that do not answer. It
	// is short, so that whoever asks hears something of the connection.
	portsPatience = 3 * time.Second
	portsPause    = 100 * time.Millisecond
	// connectLimit is how long a port may take to answer: it is on this host.
	connectLimit = time.Second
)

// ports waits until all of the TCP ports in list, with commas between them,
// answer on this host, for portsPatience at most, and writes those that do not,
// one a line. Package net would make the agent twice as large.
func ports(list string, out io.Writer) error {
	var silent []int
	for text := range strings.SplitSeq(list, ",") {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return errors.New("not a port: " + text)
		}
		silent = append(silent, port)
	}
	for until := time.Now().Add(portsPatience); ; time.Sleep(portsPause) {
		var still []int
		for _, port := range silent {
			if !answers(port) {
				still = append(still, port)
			}
		}
		silent = still
		if len(silent) == 0 || time.Now().After(until) {
			break
		}
	}
	for _, port := range silent {
		if _, err := io.WriteString(out, strconv.Itoa(port)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// answers says whether somebody takes connections at a port of this host, of
// either kind: some services listen on one of them alone.
func answers(port int) bool {
	return connects(syscall.AF_INET, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) ||
		connects(syscall.AF_INET6, &syscall.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}})
}

func connects(family int, address syscall.Sockaddr) bool {
	socket, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false // a node may be without IPv6
	}
	defer syscall.Close(socket) //nolint:errcheck // nothing was written
	limit := syscall.NsecToTimeval(connectLimit.Nanoseconds())
	if err := syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err != nil {
		return false
	}
	for {
		err := syscall.Connect(socket, address)
		if !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}
