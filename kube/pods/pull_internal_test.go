package pods

import "testing"

// The words of a pull that failed name the image once at most: whoever reads them
// knows it.
func TestPullReason(t *testing.T) {
	const image = "10.0.0.1:5000/group/app:9"
	for message, want := range map[string]string{
		`rpc error: code = NotFound desc = failed to pull and unpack image "` + image + `": failed to resolve reference "` + image + `": ` + image + `: not found`:                                                                                                                            "ErrImagePull: not found",
		`failed to resolve image: Head "http://10.0.0.1:5000/v2/": dial tcp 10.0.0.1:5000: connect: connection refused`:                                                                                                                                                                       `ErrImagePull: failed to resolve image: Head "http://10.0.0.1:5000/v2/": dial tcp 10.0.0.1:5000: connect: connection refused`,
		`rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/x:1": failed to resolve reference "docker.io/library/x:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: "ErrImagePull: pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
		// Whichever port the node asks from.
		`failed to resolve image: Head "https://r.example/v2/": dial tcp: lookup r.example: read udp 10.202.0.2:34537->10.202.0.1:53: i/o timeout`: `ErrImagePull: failed to resolve image: Head "https://r.example/v2/": dial tcp: lookup r.example: read udp 10.202.0.2->10.202.0.1:53: i/o timeout`,
		`read tcp [fd00::2]:40001->[fd00::1]:443: connection reset by peer`:                                                                        "ErrImagePull: read tcp [fd00::2]->[fd00::1]:443: connection reset by peer",
		"no match for platform in manifest: not found":                                                                                             "ErrImagePull: no match for platform in manifest: not found",
		"": "ErrImagePull",
	} {
		tried := Problem{Reason: "ErrImagePull", Message: message}
		if got := tried.Words(); got != want {
			t.Errorf("of %q is left %q, want %q", message, got, want)
		}
		if message == "" {
			continue
		}
		waits := Problem{Reason: "ImagePullBackOff", Message: `Back-off pulling image "` + image + `": ErrImagePull: ` + message}
		if got := waits.Words(); got != want {
			t.Errorf("between two tries of %q is left %q, want %q", message, got, want)
		}
	}
	const bare = `Back-off pulling image "` + image + `"`
	if got := (Problem{Reason: "ImagePullBackOff", Message: bare}).Words(); got != "ImagePullBackOff: "+bare {
		t.Errorf("without a reason: %q", got)
	}
}
