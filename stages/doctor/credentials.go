package doctor

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// warnBefore is how long before the end of a certificate it is time to replace
// it.
const warnBefore = 14 * 24 * time.Hour

// tokenUsed says why there is nothing to look at.
const tokenUsed = "cluster.in_cluster: the service account's token takes its place"

func judgeCA(path string, f cluster.Files, now time.Time) Result {
	if f.CAErr != nil {
		return failed(f.CAErr.Error(), "put the cluster's CA there: certificate-authority-data of its kubeconfig, decoded")
	}
	usable := 0
	var until time.Time
	for _, cert := range f.CA {
		if cert.IsCA && !now.Before(cert.NotBefore) && !now.After(cert.NotAfter) {
			usable++
			until = later(until, cert.NotAfter)
		}
	}
	if usable == 0 {
		one := f.CA[0]
		if !one.IsCA {
			return warning(fmt.Sprintf("%s: %q is not the certificate of a CA", path, one.Subject), "put the cluster's CA there: certificate-authority-data of its kubeconfig, decoded")
		}
		return failed(fmt.Sprintf("%s: %q is valid from %s to %s", path, one.Subject, day(one.NotBefore), day(one.NotAfter)), "put the cluster's present CA there, or set this host's clock right")
	}
	if until.Sub(now) < warnBefore {
		return warning(fmt.Sprintf("%s: the CA expires on %s", path, day(until)), "have the cluster's CA renewed, and put it there")
	}
	return ok("%s, %q until %s", path, f.CA[0].Subject, day(until))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func judgeKey(path string, f cluster.Files) Result {
	if f.KeyErr != nil {
		return failed(f.KeyErr.Error(), "put the key of the client certificate there (PEM), with mode 0600, for the runner's user; run doctor as that user")
	}
	return ok("%s, for its owner alone", path)
}

func judgeCertificate(path string, f cluster.Files) Result {
	switch {
	case f.ClientErr != nil:
		return failed(f.ClientErr.Error(), "put the driver's client certificate there (PEM)")
	case f.PairErr != nil:
		return failed(f.PairErr.Error(), "put certificate and key of one issue there")
	}
	return ok("%s, %q, signed by %q", path, f.Client[0].Subject, f.Client[0].Issuer)
}

func judgeExpiry(what string, cert *x509.Certificate, now time.Time) Result {
	left := cert.NotAfter.Sub(now)
	switch {
	case now.Before(cert.NotBefore):
		return failed(fmt.Sprintf("%s is valid from %s on, and this host's clock says %s", what, day(cert.NotBefore), day(now)), "set this host's clock right, or wait")
	case left < 0:
		return failed(fmt.Sprintf("%s expired on %s", what, day(cert.NotAfter)), "replace it; the driver reads it again for each connection, so nothing has to be restarted")
	case left < warnBefore:
		return warning(fmt.Sprintf("%s expires on %s, in %s", what, day(cert.NotAfter), days(left)), "replace it before; the driver reads it again for each connection")
	}
	return ok("until %s, %s", day(cert.NotAfter), days(left))
}

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
