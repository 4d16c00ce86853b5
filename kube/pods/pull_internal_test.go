package pods

import "testing"

// The words of a pull that failed name the image once at most: whoever reads them
// knows it.
func TestPullReason(t *testing.T) {
	const image = "10.0.0.1:5000/group/app:9"
	for message, want := range map[string]string{
		`rpc error: code = NotFound desc = failed to pull and unpack image "` + image + `": failed to resolve reference "` + image + `": ` + image + `: not found`:                                                                                                                            "not found",
		`failed to pull and unpack image "` + image + `": failed to resolve image: Head "http://10.0.0.1:5000/v2/": dial tcp 10.0.0.1:5000: connect: connection refused`:                                                                                                                      `failed to resolve image: Head "http://10.0.0.1:5000/v2/": dial tcp 10.0.0.1:5000: connect: connection refused`,
		`rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/x:1": failed to resolve reference "docker.io/library/x:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
		`Back-off pulling image "` + image + `": ErrImagePull: failed to pull and unpack image "` + image + `": ` + image + `: not found`:                                                                                                                                                     `Back-off pulling image "` + image + `": ErrImagePull: not found`,
		"no match for platform in manifest: not found": "no match for platform in manifest: not found",
		"": "",
	} {
		if got := pullReason(message); got != want {
			t.Errorf("of %q is left %q, want %q", message, got, want)
		}
	}
}
