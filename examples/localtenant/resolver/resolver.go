// Package resolver answers the nodes of a tenant that ask for names, as a resolver
// on the nodes of the market does: it is there before any Pod is.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone is the domain of the names that there are.
const Zone = "localtenant.internal"

// Host is the name of the machine itself, as nodes and Pods reach it.
const Host = "host." + Zone

// timeToLive is for how many seconds an answer holds.
const timeToLive = 5

// largest is the largest question that is read (RFC 1035, 4.2.1).
const largest = 512

// Server answers questions by UDP. There is no network outside, so what it does not
// know does not exist, and it says so at once.
type Server struct {
	conn  net.PacketConn
	names map[string]netip.Addr
	log   *slog.Logger
}

// Start listens on an address, and answers until ctx is over. Names are whole,
// without the dot at their end.
func Start(ctx context.Context, address string, names map[string]netip.Addr, log *slog.Logger) (*Server, error) {
	var config net.ListenConfig
	conn, err := config.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the nodes' questions: %w", err)
	}
	s := &Server{conn: conn, names: map[string]netip.Addr{}, log: log}
	for name, at := range names {
		s.names[strings.ToLower(name)] = at
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	go s.serve()
	return s, nil
}

// Addr is the address that it listens on.
func (s *Server) Addr() string { return s.conn.LocalAddr().String() }

func (s *Server) serve() {
	question := make([]byte, largest)
	for {
		n, from, err := s.conn.ReadFrom(question)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Debug("resolver: read", "error", err)
			continue
		}
		answer, err := s.answer(question[:n])
		if err != nil {
			s.log.Debug("resolver: a question that is none", "from", from, "error", err)
			continue
		}
		if _, err := s.conn.WriteTo(answer, from); err != nil && !errors.Is(err, net.ErrClosed) {
			s.log.Debug("resolver: answer", "to", from, "error", err)
		}
	}
}

// answer is the answer to a message with one question.
func (s *Server) answer(message []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	asked, err := parser.Start(message)
	if err != nil {
		return nil, err
	}
	if asked.Response {
		return nil, errors.New("it is an answer")
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(strings.TrimSuffix(question.Name.String(), "."))
	at, known := s.names[name]
	header := dnsmessage.Header{ID: asked.ID, Response: true, Authoritative: true, RecursionDesired: asked.RecursionDesired, RecursionAvailable: true}
	if !known {
		header.RCode = dnsmessage.RCodeNameError
	}
	builder := dnsmessage.NewBuilder(nil, header)
	builder.EnableCompression()
	err = errors.Join(builder.StartQuestions(), builder.Question(question), builder.StartAnswers())
	if known && question.Type == dnsmessage.TypeA && at.Is4() {
		err = errors.Join(err, builder.AResource(
			dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: timeToLive}, dnsmessage.AResource{A: at.As4()}))
	}
	if err != nil {
		return nil, err
	}
	return builder.Finish()
}
