package pods

import (
	"regexp"
	"strings"
)

// pulling says whether the kubelet gives this reason for an image that it has
// not got (pkg/kubelet/images/types.go in Kubernetes).
func pulling(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
		"RegistryUnavailable", "SignatureValidationFailed", "ErrImageInspectError", "ImageInspectError":
		return true
	}
	return false
}

// pullWord is a word of an error by which a pull ends, in lower case, and what
// it means. The words are those of containerd, of the registry API's error
// codes, and of Go's network errors.
type pullWord struct {
	word string
	kind Kind
}

// pullWords are looked for in this order: a registry that is not well may refuse
// in the same breath, and a registry says "not found" of a manifest that it has
// for other machines.
func pullWords() []pullWord {
	words := func(kind Kind, all ...string) []pullWord {
		var list []pullWord
		for _, word := range all {
			list = append(list, pullWord{word, kind})
		}
		return list
	}
	var all []pullWord
	all = append(all, words(RegistryLimit, "toomanyrequests", "too many requests", "rate limit", "status code 429", " 429 ")...)
	all = append(all, words(RegistryDown,
		"dial tcp", "connection refused", "connection reset", "no such host", "no route to host", "network is unreachable",
		"i/o timeout", "tls handshake", "client.timeout exceeded", "context deadline exceeded", "request canceled", "unexpected eof", ": eof",
		"server error", "bad gateway", "service unavailable", "gateway timeout", "registryunavailable", "server misbehaving")...)
	all = append(all, words(ImagePlatform, "no match for platform", "no matching manifest", "does not match the specified platform")...)
	all = append(all, words(PullDenied,
		"unauthorized", "insufficient_scope", "authorization failed", "authentication required", "no basic auth credentials",
		"access denied", "denied", "forbidden", "repository does not exist")...)
	all = append(all, words(ImageInvalid, "invalid reference format", "couldn't parse image name", "failed to parse image name")...)
	all = append(all, words(ImageMissing, "not found", "manifest unknown", "name unknown", "unsupported media type")...)
	return all
}

// pullKind sorts the reasons for which an image is not there.
func pullKind(reason, message string) Kind {
	switch reason {
	case "InvalidImageName":
		return ImageInvalid
	case "ErrImageNeverPull":
		return ImageAbsent
	case "RegistryUnavailable":
		return RegistryDown
	}
	message = strings.ToLower(message)
	for _, w := range pullWords() {
		if strings.Contains(message, w.word) {
			return w.kind
		}
	}
	return PullFailing
}

// otherMachine says whether a container does not start because its program is
// made for another kind of machine.
func otherMachine(message string) bool { return strings.Contains(message, "exec format error") }

// wrapping is what containerd and the kubelet put before the reason of a failed
// pull: each of them names the image again.
func wrapping() *regexp.Regexp {
	return regexp.MustCompile(`rpc error: code = \w+ desc = |failed to (?:pull and unpack image|resolve image|resolve reference) "([^"]*)": `)
}

// waitingAgain is what the kubelet says between two tries of a pull, with the
// reason of the last one behind it.
func waitingAgain() *regexp.Regexp {
	return regexp.MustCompile(`^Back-off pulling image "[^"]*": (\w+): `)
}

// pullReason is the reason alone of a message by which a pull ends, the same in
// and between the tries. Whoever reads it knows the image.
func pullReason(reason, message string) (string, string) {
	if last := waitingAgain().FindStringSubmatch(message); last != nil {
		reason, message = last[1], message[len(last[0]):]
	}
	around := wrapping()
	text := around.ReplaceAllString(message, "")
	for _, named := range around.FindAllStringSubmatch(message, -1) {
		if name := named[1]; name != "" {
			text = strings.ReplaceAll(text, name+": ", "")
		}
	}
	return reason, localPort().ReplaceAllString(text, "$1->")
}

// localPort is the node's own end of a connection, whose port is another one each
// time: the same trouble has to have the same words.
func localPort() *regexp.Regexp {
	return regexp.MustCompile(`((?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-fA-F:]+\]):\d+->`)
}

// Unresolved reports whether the words of a failed pull are about the registry's
// name: then no registry was asked.
func (p Problem) Unresolved() bool {
	return p.Kind == RegistryDown && unresolved().MatchString(p.Message)
}

// unresolved are the words of Go's resolver.
func unresolved() *regexp.Regexp {
	return regexp.MustCompile(`lookup \S+( on \S+)?: |no such host|server misbehaving`)
}

// MayPullOtherwise says whether the problem is that an image is not there, so
// that another pull policy may help. No policy helps a name that is none.
func (p Problem) MayPullOtherwise() bool { return pulling(p.Reason) && p.Kind != ImageInvalid }

// pullFinal are the problems of a pull that another try does not mend.
func (k Kind) pullFinal() bool {
	switch k {
	case PullDenied, ImageMissing, ImageInvalid, ImageAbsent:
		return true
	}
	return false
}

// pullPassing are those that another try may mend.
func (k Kind) pullPassing() bool {
	switch k {
	case PullFailing, RegistryDown, RegistryLimit:
		return true
	}
	return false
}
