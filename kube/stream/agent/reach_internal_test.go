package agent

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers for the names that it is given, with junk before each answer:
// whoever can guess the port may send something.
func nameServer(t *testing.T, names map[string]string) uint16 {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := socket.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			var asked dnsmessage.Message
			if asked.Unpack(buffer[:n]) != nil {
				continue
			}
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: asked.ID, Response: true}, Questions: asked.Questions}
			q := asked.Questions[0]
			address, known := names[q.Name.String()]
			if !known {
				answer.RCode = dnsmessage.RCodeNameError
			} else if q.Type == dnsmessage.TypeA {
				alias, _ := dnsmessage.NewName("alias.example.")
				header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
				answer.Answers = []dnsmessage.Resource{
					{Header: header, Body: &dnsmessage.CNAMEResource{CNAME: alias}},
					{Header: header, Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}},
				}
			}
			text, err := answer.Pack()
			if err != nil {
				continue
			}
			_, _ = socket.WriteToUDP([]byte{^text[0], text[1], 1}, from)
			_, _ = socket.WriteToUDP(text, from)
		}
	}()
	return netip.MustParseAddrPort(socket.LocalAddr().String()).Port()
}

func TestResolver(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	port := nameServer(t, map[string]string{"git.example.com.": "10.1.2.3", "git.ci.svc.cluster.local.": "10.4.5.6"})
	r := &resolver{
		hosts: write("hosts", "127.0.0.1 localhost # git.example.com\n10.9.9.9 a B.example.com\nnonsense b\n"),
		conf:  write("resolv.conf", "search ci.svc.cluster.local\nnameserver 127.0.0.1\noptions ndots:2 timeout:1\n"),
		port:  port,
	}
	for host, want := range map[string]string{
		"git.example.com":  "10.1.2.3",
		"git.example.com.": "10.1.2.3",
		"git":              "10.4.5.6",
		"b.example.com":    "10.9.9.9",
		"localhost":        "127.0.0.1",
		"10.0.0.1":         "10.0.0.1",
		"fd00::1":          "fd00::1",
		"nosuch.example":   "",
		strings.Repeat("x", 300) + ".example.com": "",
	} {
		got := ""
		if found := r.lookup(host); len(found) > 0 {
			got = found[0].String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	for _, without := range []*resolver{{hosts: r.hosts, conf: folder + "/none", port: port}, {hosts: folder + "/none", conf: write("junk", "nameserver\nsearch\noptions ndots:x\n"), port: port}} {
		if found := without.lookup("git.example.com"); found != nil {
			t.Errorf("without a name server: %v", found)
		}
	}
}

// What answers an address is no matter: that it is refused shows the way, too.
func TestTry(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(listener.Addr().String()).Port()
	r := &resolver{hosts: "/dev/null", conf: "/dev/null"}
	if missing := r.try("127.0.0.1", port); missing != "" {
		t.Errorf("a listener: %s", missing)
	}
	_ = listener.Close()
	if missing := r.try("127.0.0.1", port); missing != "" {
		t.Errorf("a refusal: %s", missing)
	}
	if missing := r.try("nosuch.example", port); missing != "its name is not resolved" {
		t.Errorf("a name: %q", missing)
	}
}

func TestSplitAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a.example:443": "a.example 443", "[fd00::1]:22": "fd00::1 22", "a": "", ":1": "", "a:0": "", "a:65536": "", "a:x": ""} {
		host, port, err := splitAddress(text)
		if got := host + " " + itoa(port); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func itoa(port uint16) string {
	_, text, _ := strings.Cut(netip.AddrPortFrom(netip.IPv4Unspecified(), port).String(), ":")
	return text
}

// An answer is an attacker's: it is read to an end, whatever it holds.
func FuzzAddressesIn(f *testing.F) {
	f.Add([]byte{0, 1, 0x80, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 1, 0, 1})
	f.Fuzz(func(_ *testing.T, answer []byte) { addressesIn(answer) })
}
