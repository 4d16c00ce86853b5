package stream

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
)

func guardOver(sent []byte) *spdyGuard {
	return newSPDYGuard(nil, bufio.NewReader(bytes.NewReader(sent)))
}

// control is a control frame, data a data frame of SPDY.
func control(kind byte, payload string) string {
	return string([]byte{0x80, spdyVersion, 0, kind, 0, 0, 0, byte(len(payload))}) + payload
}

func data(stream byte, flags byte, payload []byte) string {
	head := binary.BigEndian.AppendUint32([]byte{0, 0, 0, stream}, uint32(flags)<<24|uint32(len(payload)))
	return string(head) + string(payload)
}

// checkSPDY takes apart what has passed.
func checkSPDY(t *testing.T, sent, passed []byte) {
	t.Helper()
	if len(passed) > len(sent)+spdyHeader*(len(sent)/longestPart+1) {
		t.Fatalf("%d bytes became %d", len(sent), len(passed))
	}
	pinged, replies := uint32(0), 0
	for len(passed) >= spdyHeader {
		kind, length := binary.BigEndian.Uint32(passed), int(binary.BigEndian.Uint32(passed[4:])&0xffffff)
		payload := passed[spdyHeader:]
		payload = payload[:min(length, len(payload))]
		passed = passed[spdyHeader+len(payload):]
		switch {
		case kind>>31 == 0 && length > longestPart, kind>>31 == 1 && length > longestControl:
			t.Fatalf("a frame of %d bytes has passed", length)
		case kind>>31 == 0:
		case kind == 0x80030006 && len(payload) == 4:
			if n := binary.BigEndian.Uint32(payload); n%2 == 1 {
				if n <= pinged {
					t.Fatalf("ping %d was answered after %d", n, pinged)
				}
				pinged = n
			}
		case kind == 0x80030002:
			if replies++; replies > mostReplies {
				t.Fatal("too many streams have a reply")
			}
		case kind == 0x80030003, kind == 0x80030007:
		default:
			t.Fatalf("a frame of kind %x has passed", kind)
		}
	}
}

// What servers send passes as it is, however the network cuts it; a long data frame
// comes as several, and its end with the last of them.
func TestSPDYGuardPasses(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 3*longestPart/16)
	honest := control(spdySynReply, "reply") + control(spdyPing, "\x00\x00\x00\x01") + data(3, 0, []byte("abc")) + data(3, 0, nil) +
		control(spdyPing, "\x00\x00\x00\x02") + control(spdyPing, "\x00\x00\x00\x02") + control(spdyPing, "\x00\x00\x00\x03") +
		data(5, 1, long[:longestPart]) + control(spdyRstStream, "12345678")
	long = long[:2*longestPart+1]
	end := data(7, 1, long) + control(spdyGoAway, "12345678")
	want := honest + data(7, 0, long[:longestPart]) + data(7, 0, long[longestPart:2*longestPart]) + data(7, 1, long[2*longestPart:]) + control(spdyGoAway, "12345678")
	sent := honest + control(spdySettings, "12345678") + control(spdyWindowUpdate, "12345678") + end
	for name, r := range map[string]io.Reader{"whole": guardOver([]byte(sent)), "one byte": iotest.OneByteReader(guardOver([]byte(sent)))} {
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, want %d; %v", name, len(got), len(want), err)
		}
	}
}

func TestSPDYGuardRefuses(t *testing.T) {
	var replies string
	for range mostReplies + 1 {
		replies += control(spdySynReply, "reply")
	}
	for name, sent := range map[string]string{
		"two answers to a ping":    control(spdyPing, "\x00\x00\x00\x01") + control(spdyPing, "\x00\x00\x00\x01"),
		"an older answer":          control(spdyPing, "\x00\x00\x00\x03") + control(spdyPing, "\x00\x00\x00\x01"),
		"a ping of another size":   control(spdyPing, "\x00\x00\x00\x00\x01"),
		"a stream of the server's": control(1, "0123456789"),
		"headers":                  control(8, "0123"),
		"a kind that nobody knows": control(200, "0123"),
		"another version":          "\x80\x02\x00\x07\x00\x00\x00\x08" + "12345678",
		"a reply that is too long": "\x80\x03\x00\x02\x00\x00\x10\x01",
		"too many replies":         replies,
	} {
		if got, err := io.ReadAll(guardOver([]byte(sent))); err == nil {
			t.Errorf("%s: %d bytes have passed", name, len(got))
		}
	}
	if got, err := io.ReadAll(guardOver([]byte("\x80\x03\x00\x02\x00\x00\x10\x00" + string(make([]byte, longestControl))))); err != nil || len(got) != spdyHeader+longestControl {
		t.Errorf("the longest reply: %d bytes, %v", len(got), err)
	}
}
