package faultserver

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// portPatience is how long a port may be in another's hands.
const portPatience = 10 * time.Second

// listen opens a port, also one that was open before. Meanwhile a connection of
// somebody on this host may have got it for its own end; such connections are
// short.
func listen(address string) (net.Listener, error) {
	for deadline := time.Now().Add(portPatience); ; time.Sleep(10 * time.Millisecond) {
		listener, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
	}
}
