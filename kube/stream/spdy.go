package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// longestHead is the most that a server may send before a connection is upgraded,
// in bytes: a head, or a refusal with its text.
const longestHead = 256 << 10

// upgradable is a connection that is to be upgraded. Who answers is the node, which
// belongs to whoever runs privileged jobs there: the apiserver passes on what it
// sends.
type upgradable struct {
	net.Conn
	left atomic.Int64
}

func newUpgradable(conn net.Conn) *upgradable {
	u := &upgradable{Conn: conn}
	u.left.Store(longestHead)
	return u
}

// upgraded lifts the limit: from here on frames are read one by one.
func (u *upgradable) upgraded() { u.left.Store(math.MaxInt64) }

// Read implements net.Conn.
func (u *upgradable) Read(p []byte) (int, error) {
	left := u.left.Load()
	if left <= 0 {
		return 0, errors.New("the head of the answer does not end")
	}
	n, err := u.Conn.Read(p[:min(int64(len(p)), left)])
	u.left.Add(-int64(n))
	return n, err
}

// spdyUpgrader opens one SPDY connection. The library has one as well
// (httpstream/spdy.SpdyRoundTripper), which reads a head of any length and hands
// every frame on as it comes.
type spdyUpgrader struct {
	tls  *tls.Config
	conn *spdyGuard
}

// RoundTrip implements http.RoundTripper.
func (u *spdyUpgrader) RoundTrip(ask *http.Request) (*http.Response, error) {
	ask = ask.Clone(ask.Context())
	ask.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	ask.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	for _, protocol := range spdyProtocols {
		ask.Header.Add(httpstream.HeaderProtocolVersion, protocol)
	}
	conn, err := dialTLS(ask.Context(), u.tls, ask.URL.Host)
	if err != nil {
		return nil, err
	}
	response, from, err := askOver(conn, ask)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = refusalBody{response.Body, conn}
		return response, nil
	}
	conn.upgraded()
	u.conn = newSPDYGuard(conn, from)
	return response, nil
}

// dialTLS opens a connection; without a port in the address it is that of https.
func dialTLS(ctx context.Context, config *tls.Config, address string) (*upgradable, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, "443")
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newUpgradable(conn), nil
}

// askOver sends a request and reads the head of its answer; from goes on behind it.
func askOver(conn net.Conn, ask *http.Request) (response *http.Response, from *bufio.Reader, err error) {
	if err := ask.Write(conn); err != nil {
		return nil, nil, err
	}
	from = bufio.NewReader(conn)
	response, err = http.ReadResponse(from, ask)
	return response, from, err
}

// refusalBody is the text of a refusal, whose connection is used for nothing else.
type refusalBody struct {
	io.ReadCloser
	conn net.Conn
}

// Close implements io.Closer.
func (b refusalBody) Close() error { return b.conn.Close() }

// NewConnection implements httpstream.UpgradeRoundTripper.
func (u *spdyUpgrader) NewConnection(response *http.Response) (httpstream.Connection, error) {
	if u.conn == nil {
		return nil, errors.New("the server has not upgraded the connection")
	}
	protocol := response.Header.Get(httpstream.HeaderProtocolVersion)
	if !slices.Contains(spdyProtocols, protocol) {
		_ = u.conn.Close()
		return nil, fmt.Errorf("the server speaks version %q of the exec protocol, which does not tell how a command ended", protocol)
	}
	conn, err := spdy.NewClientConnectionWithPings(u.conn, pingEvery)
	if err != nil {
		return nil, err
	}
	return &spdyConnection{conn, u.conn}, nil
}

// spdyConnection is a connection of the library that ends when it is closed.
type spdyConnection struct {
	httpstream.Connection
	socket net.Conn
}

// goodbye is how long the last frames of a connection may take.
const goodbye = time.Second

// Close implements httpstream.Connection. The library's sends a frame for each
// stream, behind whatever is being sent, and would wait for as long as the server
// reads nothing; a stream without a reply it waits for for ever.
func (c *spdyConnection) Close() error {
	_ = c.socket.SetWriteDeadline(time.Now().Add(goodbye))
	time.AfterFunc(goodbye, func() { _ = c.socket.Close() })
	return c.Connection.Close()
}

// Frames of SPDY/3.1 that a server of exec sends, and a few that it may.
const (
	spdyVersion      = 3
	spdySynReply     = 2
	spdyRstStream    = 3
	spdySettings     = 4
	spdyPing         = 6
	spdyGoAway       = 7
	spdyWindowUpdate = 9
)

// Limits of what the library is handed.
const (
	spdyHeader = 8
	// longestPart is how long a data frame may be; a longer one comes as several.
	// The library makes room for a whole frame and keeps up to 250 of them
	// (FRAME_WORKERS and QUEUE_SIZE in moby/spdystream).
	longestPart = 32 << 10
	// longestControl is how long a control frame may be, and mostReplies how many
	// streams may be replied to: a command has five.
	longestControl = 4 << 10
	mostReplies    = 8
)

// spdyGuard reads what a server sends before the library does. A panic or too large
// an allocation of the library is in a goroutine of its own, where nobody can catch
// it. The server's streams would pile up in it, headers unpack to much more than
// they are, and two pings of one number make it close a channel twice
// (handlePingFrame).
type spdyGuard struct {
	net.Conn
	from *bufio.Reader

	// ready are bytes to hand out, before pass bytes of the connection.
	ready []byte
	pass  int
	// rest are the bytes of a data frame that come as further frames, with its
	// beginning, and flags behind the last.
	rest  int
	data  [4]byte
	flags byte

	replies int
	pinged  uint32
}

func newSPDYGuard(conn net.Conn, from *bufio.Reader) *spdyGuard {
	return &spdyGuard{Conn: conn, from: from}
}

// Read implements net.Conn.
func (g *spdyGuard) Read(p []byte) (int, error) {
	for len(g.ready) == 0 && g.pass == 0 {
		if g.rest > 0 {
			g.part()
		} else if err := g.frame(); err != nil {
			return 0, err
		}
	}
	if len(g.ready) > 0 {
		n := copy(p, g.ready)
		g.ready = g.ready[n:]
		return n, nil
	}
	n, err := g.from.Read(p[:min(len(p), g.pass)])
	g.pass -= n
	return n, err
}

// part begins the next frame of a data frame that is longer than one may be.
func (g *spdyGuard) part() {
	g.pass = min(g.rest, longestPart)
	g.rest -= g.pass
	flags := g.flags
	if g.rest > 0 {
		flags = 0 // the stream goes on
	}
	g.ready = binary.BigEndian.AppendUint32(g.data[:4:4], uint32(flags)<<24|uint32(g.pass))
}

// frame looks at the beginning of the next frame.
func (g *spdyGuard) frame() error {
	header := make([]byte, spdyHeader)
	if _, err := io.ReadFull(g.from, header); err != nil {
		return err
	}
	kind, length := binary.BigEndian.Uint32(header), int(binary.BigEndian.Uint32(header[4:])&0xffffff)
	if kind>>31 == 0 {
		copy(g.data[:], header)
		g.flags, g.rest = header[4], length
		if length == 0 {
			g.ready = header
		}
		return nil
	}
	if kind&0x7fff0000 != spdyVersion<<16 {
		return errors.New("the server sent a frame of another protocol")
	}
	switch kind &= 0xffff; kind {
	case spdySettings, spdyWindowUpdate: // the library heeds neither
		_, err := io.CopyN(io.Discard, g.from, int64(length))
		return err
	case spdySynReply:
		g.replies++
	case spdyRstStream, spdyGoAway:
	case spdyPing:
		return g.ping(header, length)
	default:
		return fmt.Errorf("the server sent a frame of kind %d, which no command has", kind)
	}
	if length > longestControl || g.replies > mostReplies {
		return fmt.Errorf("the server sent a frame of kind %d with %d bytes, the %d. reply to a stream", kind, length, g.replies)
	}
	g.ready, g.pass = header, length
	return nil
}

// ping lets each answer to a ping of ours through once. Ours have odd numbers, which
// rise.
func (g *spdyGuard) ping(header []byte, length int) error {
	var number [4]byte
	if length != len(number) {
		return fmt.Errorf("the server sent a ping of %d bytes", length)
	}
	if _, err := io.ReadFull(g.from, number[:]); err != nil {
		return err
	}
	if n := binary.BigEndian.Uint32(number[:]); n%2 == 1 {
		if n <= g.pinged {
			return fmt.Errorf("the server answered ping %d twice", n)
		}
		g.pinged = n
	}
	g.ready = append(header, number[:]...)
	return nil
}
