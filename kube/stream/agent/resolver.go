package agent

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Bounds of a resolver. What comes from the files and from the network is not to
// be trusted with more.
const (
	largestFile   = 64 << 10
	largestAnswer = 1500
	mostServers   = 3
	mostNames     = 8
	mostAddresses = 8
	answerLimit   = time.Second
	dnsPort       = 53
)

// resolver looks names up as the C library does: in a file of hosts, then by DNS.
// Package net would make the agent twice as large.
type resolver struct {
	// hosts and conf are the files, port is that of the name servers.
	hosts, conf string
	port        uint16
}

func systemResolver() *resolver {
	return &resolver{hosts: "/etc/hosts", conf: "/etc/resolv.conf", port: dnsPort}
}

// lookup gives the addresses of a host, none where its name is not resolved.
func (r *resolver) lookup(host string) []netip.Addr {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}
	}
	if found := r.fromFile(host); len(found) > 0 {
		return found
	}
	servers, names := r.plan(host)
	for _, name := range names {
		for _, server := range servers {
			if found := r.ask(server, name); len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// fromFile looks into the file of hosts.
func (r *resolver) fromFile(host string) []netip.Addr {
	var found []netip.Addr
	for fields := range linesOf(r.hosts) {
		if len(fields) < 2 || !slices.ContainsFunc(fields[1:], func(name string) bool { return strings.EqualFold(name, host) }) {
			continue
		}
		if address, err := netip.ParseAddr(fields[0]); err == nil && len(found) < mostAddresses {
			found = append(found, address)
		}
	}
	return found
}

// linesOf gives the fields of each line of a file, without comments.
func linesOf(path string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		file, err := os.Open(path)
		if err != nil {
			return
		}
		defer file.Close() //nolint:errcheck // it was read
		text := make([]byte, largestFile)
		n, _ := file.Read(text)
		for line := range strings.Lines(string(text[:n])) {
			line, _, _ = strings.Cut(line, "#")
			if fields := strings.Fields(line); len(fields) > 0 && !yield(fields) {
				return
			}
		}
	}
}

// plan is which name servers are asked for which names, as resolv.conf has it.
func (r *resolver) plan(host string) (servers []netip.Addr, names []string) {
	var search []string
	ndots := 1
	for fields := range linesOf(r.conf) {
		switch fields[0] {
		case "nameserver":
			if address, err := netip.ParseAddr(fields[len(fields)-1]); err == nil && len(servers) < mostServers {
				servers = append(servers, address)
			}
		case "search", "domain":
			search = fields[1:]
		case "options":
			for _, option := range fields[1:] {
				if text, found := strings.CutPrefix(option, "ndots:"); found {
					ndots, _ = strconv.Atoi(text)
				}
			}
		}
	}
	if strings.HasSuffix(host, ".") {
		return servers, []string{host}
	}
	for _, domain := range search[:min(len(search), mostNames)] {
		names = append(names, host+"."+strings.TrimSuffix(domain, ".")+".")
	}
	if strings.Count(host, ".") >= ndots {
		return servers, append([]string{host + "."}, names...)
	}
	return servers, append(names, host+".")
}

// ask asks a name server for the addresses of both kinds.
func (r *resolver) ask(server netip.Addr, name string) []netip.Addr {
	var found []netip.Addr
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		id := uint16(rand.Uint32())
		asked, err := dnsmessage.NewName(name)
		if err != nil {
			return nil
		}
		query := dnsmessage.Message{
			Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
			Questions: []dnsmessage.Question{{Name: asked, Type: kind, Class: dnsmessage.ClassINET}},
		}
		text, err := query.Pack()
		if err != nil {
			return nil
		}
		answer := exchange(server, r.port, text, id)
		if answer == nil {
			continue
		}
		found = append(found, addressesIn(answer)...)
	}
	return found[:min(len(found), mostAddresses)]
}

// exchange sends a question to a name server and gives its answer, nil if there is
// none in time.
func exchange(server netip.Addr, port uint16, question []byte, id uint16) []byte {
	family, to := sockaddr(server, port)
	socket, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(socket) //nolint:errcheck // it was read
	limit := syscall.NsecToTimeval(answerLimit.Nanoseconds())
	if err := syscall.SetsockoptTimeval(socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit); err != nil {
		return nil
	}
	if syscall.Connect(socket, to) != nil {
		return nil
	}
	if _, err := syscall.Write(socket, question); err != nil {
		return nil
	}
	answer := make([]byte, largestAnswer)
	for until := time.Now().Add(answerLimit); time.Now().Before(until); {
		n, err := syscall.Read(socket, answer)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil
		case n > 2 && bytes.Equal(answer[:2], []byte{byte(id >> 8), byte(id)}):
			return answer[:n]
		}
	}
	return nil
}

// addressesIn are the addresses in an answer.
func addressesIn(answer []byte) []netip.Addr {
	var parser dnsmessage.Parser
	if _, err := parser.Start(answer); err != nil || parser.SkipAllQuestions() != nil {
		return nil
	}
	var found []netip.Addr
	for {
		header, err := parser.AnswerHeader()
		if err != nil {
			return found // the end, or what is no answer
		}
		switch header.Type {
		case dnsmessage.TypeA:
			a, err := parser.AResource()
			if err != nil {
				return found
			}
			found = append(found, netip.AddrFrom4(a.A))
		case dnsmessage.TypeAAAA:
			a, err := parser.AAAAResource()
			if err != nil {
				return found
			}
			found = append(found, netip.AddrFrom16(a.AAAA))
		default:
			if parser.SkipAnswer() != nil {
				return found
			}
		}
	}
}
