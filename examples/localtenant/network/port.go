package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are chosen below the range that the kernel takes the ports of outgoing
// connections from (32768 and up, ip(7)): nothing takes them between the choice and
// the start of the program that listens there.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort gives a port on 127.0.0.1 that nobody listens on.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("choose a port: %w", err)
		}
		return port, nil
	}
	return 0, errors.Join(errors.New("no free port on 127.0.0.1 in 100 tries"), last)
}
