package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

const (
	// probeTimeout bounds a look at a server that does not let the caller in.
	probeTimeout = 5 * time.Second
	// toleratedSkew is how far two clocks may be apart without a word.
	toleratedSkew = time.Minute
)

// probed is what a server shows also to those whom it does not let in.
type probed struct {
	// date is the server's clock, zero if it did not answer.
	date time.Time
	// authorities are those whose client certificates the server takes.
	authorities []string
	// version is what the server says of itself, "" if it does not.
	version string
	// chain is the server's, where it is of the CA.
	chain []*x509.Certificate
	// stranger is true if the caller's certificate is of none of them.
	stranger bool
}

// probe asks the server who it is. The certificate of the server has to be of
// the CA, but its time may have passed or not have come: perhaps it is this
// host's clock that is wrong.
func probe(ctx context.Context, found Config, secrets credentials, now func() time.Time) (probed, error) {
	var seen probed
	address, err := url.Parse(found.URL)
	if err != nil {
		return seen, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(secrets.ca))
	config := &tls.Config{
		// VerifyConnection does it, but for the time.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(state tls.ConnectionState) error {
			err := verifyButTime(state.PeerCertificates, address.Hostname(), roots, now())
			if err == nil {
				seen.chain = state.PeerCertificates
			}
			return err
		},
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			seen.authorities = names(request.AcceptableCAs)
			pair, err := tls.X509KeyPair([]byte(secrets.cert), []byte(secrets.key))
			if err != nil {
				return &tls.Certificate{}, nil // the caller has none
			}
			if request.SupportsCertificate(&pair) != nil {
				seen.stranger = len(seen.authorities) > 0
				return &tls.Certificate{}, nil
			}
			return &pair, nil
		},
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: config, Proxy: noProxy, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, found.URL+"/version", nil)
	if err != nil {
		return seen, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return seen, err // what was seen of the handshake stays
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	text, _ := bounded.ReadAll(response.Body, bounded.Short)
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	if response.StatusCode == http.StatusOK && json.Unmarshal(text, &answer) == nil {
		seen.version = answer.GitVersion
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		seen.date = date
	}
	return seen, nil
}

// verifyButTime verifies a chain at a time when its first certificate is
// valid.
func verifyButTime(chain []*x509.Certificate, host string, roots *x509.CertPool, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("the server has no certificate")
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), DNSName: host, CurrentTime: now}
	if now.Before(chain[0].NotBefore) {
		options.CurrentTime = chain[0].NotBefore
	} else if now.After(chain[0].NotAfter) {
		options.CurrentTime = chain[0].NotAfter
	}
	for _, cert := range chain[1:] {
		options.Intermediates.AddCert(cert)
	}
	_, err := chain[0].Verify(options)
	return err
}

// names are authorities as people write them.
func names(raw [][]byte) []string {
	var all []string
	for _, der := range raw {
		var sequence pkix.RDNSequence
		var name pkix.Name
		if _, err := asn1.Unmarshal(der, &sequence); err == nil {
			name.FillFromRDNSequence(&sequence)
			all = append(all, name.String())
		}
	}
	return all
}

// diagnose says why a server at the right place does not let the caller in,
// nil if it cannot tell.
func diagnose(ctx context.Context, found Config, secrets credentials, now func() time.Time) error {
	// An error leaves less to go by: a server that takes no strangers ends the
	// connection without an answer.
	seen, _ := probe(ctx, found, secrets, now)
	if skew := skewOf(seen, now()); skew != 0 {
		return errors.New(skewText(skew))
	}
	own := certificates(secrets.cert)
	if len(own) == 0 {
		return nil
	}
	issuer := own[0].Issuer.String()
	if seen.stranger {
		return &FileError{Path: found.CertFile, Err: fmt.Errorf("it is signed by %q, and the cluster takes certificates signed by %s alone: have it issued by the cluster's CA",
			issuer, strings.Join(quoted(seen.authorities), ", "))}
	}
	if err := namesake(own[0], certificates(secrets.ca)); err != nil {
		return &FileError{Path: found.CertFile, Err: fmt.Errorf("it is signed by %q, which is not the CA of that name in %s: the cluster's CA was replaced, have the certificate issued again (%w)",
			issuer, found.CAFile, err)}
	}
	return nil
}

// namesake says that a certificate was signed by a CA that has the name of one
// of the authorities and another key. Nothing is known where no name fits: a
// cluster may have one CA for servers and another for clients. A cluster may
// also take an old and a new one, so it is asked first.
func namesake(leaf *x509.Certificate, authorities []*x509.Certificate) error {
	var failed error
	for _, authority := range authorities {
		if !bytes.Equal(authority.RawSubject, leaf.RawIssuer) {
			continue
		}
		if failed = leaf.CheckSignatureFrom(authority); failed == nil {
			return nil
		}
	}
	return failed
}

func quoted(list []string) []string {
	all := make([]string, len(list))
	for i, text := range list {
		all[i] = fmt.Sprintf("%q", text)
	}
	return all
}

// clockSkew is how far the cluster's clock is ahead of this host's, by the
// Date of an answer; 0 if that is little or not known.
func clockSkew(ctx context.Context, found Config, now func() time.Time) time.Duration {
	ca, err := readPEM(found.CAFile, "CERTIFICATE")
	if err != nil {
		return 0
	}
	seen, err := probe(ctx, found, credentials{ca: ca}, now)
	if err != nil {
		return 0
	}
	return skewOf(seen, now())
}

func skewOf(seen probed, now time.Time) time.Duration {
	if seen.date.IsZero() {
		return 0
	}
	skew := seen.date.Sub(now).Round(time.Second)
	if skew.Abs() <= toleratedSkew {
		return 0
	}
	return skew
}

func skewText(skew time.Duration) string {
	direction := "behind"
	if skew < 0 {
		direction = "ahead of"
	}
	return fmt.Sprintf("this host's clock is %s %s the cluster's: set it right", skew.Abs(), direction)
}
