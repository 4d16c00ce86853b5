package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Denied says whether the cluster refuses the caller: it does not know the
// certificate, does not grant the right, or is not the cluster whose CA the
// caller has.
func Denied(err error) bool {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var hostname x509.HostnameError
	var verification *tls.CertificateVerificationError
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || redirected(err) ||
		errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &hostname) ||
		errors.As(err, &verification) || alerted(err)
}

// alerted says whether the server ended the TLS handshake: it does not take
// the certificate. crypto/tls has no public type for that; it marks the
// operation. "internal error" is left out: a new kubelet sends it as long as
// its own certificate is not there.
func alerted(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && op.Err.Error() != "tls: internal error"
}

// Foreign says whether the server is not the one whose CA the caller has, or
// does not know the caller's certificate: perhaps another cluster listens at
// the port by now.
func Foreign(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	return errors.As(err, &verification) || errors.As(err, &authority) || alerted(err) || apierrors.IsUnauthorized(err) || anonymous(err)
}

// anonymous says whether the server has taken the caller for nobody: it did
// not accept the certificate, and lets requests without one in as far as
// authorization (k8s.io/apiserver/pkg/authentication/request/anonymous).
func anonymous(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "system:anonymous")
}

// Transient says whether the same request may succeed a little later: the
// apiserver restarts, is overloaded, or its store has no leader.
func Transient(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled), Denied(err), TooLarge(err):
		return false
	case apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsTooManyRequests(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), apierrors.IsUnexpectedServerError(err):
		return true
	}
	return Disconnected(err)
}

// TooLarge reports whether the cluster does not take an object of that size: the
// apiserver reads no more, or its store, whose answer the apiserver passes on as
// an internal error (etcd/server/etcdserver/v3_server.go, ErrRequestTooLarge),
// or the connection to that (google.golang.org/grpc, "larger than max"). It
// never will.
func TooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return false
	}
	text := status.Status().Message
	return strings.Contains(text, "request is too large") || strings.Contains(text, "message larger than max")
}

// nobody reports whether no server could be connected to.
func nobody(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Disconnected says whether the connection failed, so that nobody knows
// whether the request arrived.
func Disconnected(err error) bool {
	for _, cause := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, context.DeadlineExceeded,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network) && !redirected(err)
}
