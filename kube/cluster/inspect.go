package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// Files are what is in the files of a Config, each looked at by itself. A
// caller without a client certificate has none in CertFile and KeyFile.
type Files struct {
	// CA and Client are the certificates in the files. The first of Client is
	// the caller's own, further ones are its chain.
	CA, Client []*x509.Certificate
	// CAErr, ClientErr and KeyErr are *FileErrors. PairErr is that the key is
	// not the certificate's.
	CAErr, ClientErr, KeyErr, PairErr error
}

// ReadFiles reads the files. What Connect would refuse is an error here as
// well, but for the time of certificates.
func ReadFiles(c Config) Files {
	var f Files
	var cert, key string
	var ca string
	if ca, f.CAErr = readPEM(c.CAFile, "CERTIFICATE"); f.CAErr == nil {
		f.CA = certificates(ca)
	}
	if c.TokenFile != "" {
		f.KeyErr = checkToken(c.TokenFile)
		return f
	}
	if cert, f.ClientErr = readPEM(c.CertFile, "CERTIFICATE"); f.ClientErr == nil {
		f.Client = certificates(cert)
	}
	if f.KeyErr = checkPrivate(c.KeyFile); f.KeyErr == nil {
		key, f.KeyErr = readPEM(c.KeyFile, "PRIVATE KEY")
	}
	if f.ClientErr == nil && f.KeyErr == nil {
		if _, err := tls.X509KeyPair([]byte(cert), []byte(key)); err != nil {
			f.PairErr = &FileError{Path: c.CertFile, Err: fmt.Errorf("with the key %s: %w", c.KeyFile, err)}
		}
	}
	return f
}

// Server is what an apiserver shows to whoever asks.
type Server struct {
	// Version is as the server tells it, "" where it tells it only to those it
	// knows.
	Version string
	// Date is the server's clock, to the second; zero where there was no answer.
	Date time.Time
	// Certificate is the server's own, of the caller's CA; nil where the server
	// has shown none of it. With an error beside it the server was reached, and
	// did not like the caller.
	Certificate *x509.Certificate
}

// Look asks a server who it is, without regard to the time of certificates:
// perhaps it is this host's clock that is wrong. What was seen is given also
// with an error.
func Look(ctx context.Context, c Config, now func() time.Time) (Server, error) {
	secrets := lenient(c)
	seen, err := probe(ctx, c, secrets, now)
	server := Server{Version: seen.version, Date: seen.date}
	if len(seen.chain) > 0 {
		server.Certificate = seen.chain[0]
	}
	if err != nil {
		return server, fmt.Errorf("asking %s for its version: %w", c.URL, err)
	}
	return server, nil
}

// Diagnose says why a server does not let the caller in, nil if it cannot tell.
func Diagnose(ctx context.Context, c Config, now func() time.Time) error {
	return diagnose(ctx, c, lenient(c), now)
}

// lenient reads what can be read of the files.
func lenient(c Config) credentials {
	var found credentials
	found.ca, _ = readPEM(c.CAFile, "CERTIFICATE")
	if c.TokenFile == "" {
		found.cert, _ = readPEM(c.CertFile, "CERTIFICATE")
		found.key, _ = readPEM(c.KeyFile, "PRIVATE KEY")
	}
	return found
}
