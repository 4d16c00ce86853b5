package agent

import (
	"errors"
	"strconv"
	"strings"
)

// Request opens a session with the agent.
type Request struct {
	// Stage names the stage within the container: letters, digits, "-" and
	// "_". The same name always means the same run of the same script.
	Stage string
	// Size and Sum are the length and the SHA-256 (its 32 bytes) of the script
	// that follows. Without a script (Sum "") the session attaches to a stage
	// that runs or has run.
	Size int64
	Sum  string
	// Limit is how many bytes of output may wait for the driver; at the limit
	// the script waits.
	Limit int64
	// Silence is after how many seconds without a frame the other side counts
	// as gone.
	Silence int
	// Umask is the file mode mask of the script, -1 for the container's own.
	Umask int
	// Path is a folder to add at the end of PATH, "" for none.
	Path string
	// Apart has stdout and stderr of the script come through a pipe each, so that
	// they are told apart; they then come in the order in which they arrive.
	// Through one pipe they come in the order in which they were written.
	Apart bool
	// Look is a session of somebody who only looks: nothing that it is sent
	// counts as printed, so that the driver's own session misses nothing.
	Look bool
	// Owner is a session of the driver that started the stage. A stage that has
	// none any more is ended when the next one begins in its container.
	Owner bool
	// Now ends the session at the present end of the output, although the
	// stage goes on.
	Now bool
}

// Status is how a stage ended.
type Status struct {
	// Exit is the shell's exit code, where Signal is 0.
	Exit int
	// Signal is the number of the signal that ended the shell.
	Signal int
	// Stopped is true when the stage was ended on request.
	Stopped bool
	// OOM counts the processes of the container that the kernel killed for
	// want of memory while the stage ran.
	OOM int
	// Trouble is why the script did not run to its end, "" if it did: a
	// missing shell, a full disk, a supervisor that was killed.
	Trouble Trouble
	// Detail is the system's word on the trouble.
	Detail string
}

// Trouble names what kept a script from running to its end.
type Trouble string

// The kinds of trouble.
const (
	// TroubleNone: the script ran to its end, or was stopped.
	TroubleNone Trouble = ""
	// TroubleNoShell: the image has neither bash nor sh.
	TroubleNoShell Trouble = "no-shell"
	// TroubleStart: the shell could not be started.
	TroubleStart Trouble = "start"
	// TroubleDisk: the output could not be kept.
	TroubleDisk Trouble = "disk"
	// TroubleNoRoom: the disk is full, and the script has not begun.
	TroubleNoRoom Trouble = "no-room"
	// TroubleLost: the supervisor is gone without a word.
	TroubleLost Trouble = "lost"
)

var errRecord = errors.New("a record cannot be read")

// record is a list of named values, a line each. Values are quoted, so they
// may hold anything.
type record []struct{ name, value string }

func (r *record) add(name, value string) {
	*r = append(*r, struct{ name, value string }{name, value})
}

func (r record) bytes() []byte {
	var b []byte
	for _, field := range r {
		b = append(b, field.name...)
		b = append(b, '=')
		b = strconv.AppendQuote(b, field.value)
		b = append(b, '\n')
	}
	return b
}

// parseRecord reads what bytes wrote. Names that the reader does not know are
// for later versions.
func parseRecord(b []byte) (map[string]string, error) {
	fields := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, quoted, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		value, err := strconv.Unquote(quoted)
		if !found || err != nil {
			return nil, errRecord
		}
		fields[name] = value
	}
	return fields, nil
}

// numbers reads integers out of a record and remembers the first failure.
type numbers struct {
	fields map[string]string
	err    error
}

func (n *numbers) get(name string) int64 {
	value, err := strconv.ParseInt(n.fields[name], 10, 64)
	if err != nil {
		n.err = errRecord
	}
	return value
}

// Bytes is the Request as it goes over the wire.
func (r Request) Bytes() []byte {
	var rec record
	rec.add("stage", r.Stage)
	rec.add("size", strconv.FormatInt(r.Size, 10))
	rec.add("sum", r.Sum)
	rec.add("limit", strconv.FormatInt(r.Limit, 10))
	rec.add("silence", strconv.Itoa(r.Silence))
	rec.add("umask", strconv.Itoa(r.Umask))
	rec.add("path", r.Path)
	rec.add("apart", strconv.FormatBool(r.Apart))
	rec.add("look", strconv.FormatBool(r.Look))
	rec.add("owner", strconv.FormatBool(r.Owner))
	rec.add("now", strconv.FormatBool(r.Now))
	return rec.bytes()
}

// ParseRequest reads a Request and checks it.
func ParseRequest(b []byte) (Request, error) {
	fields, err := parseRecord(b)
	if err != nil {
		return Request{}, err
	}
	n := numbers{fields: fields}
	r := Request{
		Stage:   fields["stage"],
		Size:    n.get("size"),
		Sum:     fields["sum"],
		Limit:   n.get("limit"),
		Silence: int(n.get("silence")),
		Umask:   int(n.get("umask")),
		Path:    fields["path"],
		Apart:   fields["apart"] == "true",
		Look:    fields["look"] == "true",
		Owner:   fields["owner"] == "true",
		Now:     fields["now"] == "true",
	}
	switch {
	case n.err != nil:
		return Request{}, n.err
	case !ValidStage(r.Stage):
		return Request{}, errors.New("the stage's name is not valid")
	case r.Size < 0 || r.Limit < minLimit || r.Silence < 1:
		return Request{}, errors.New("a number of the request is out of range")
	}
	return r, nil
}

// minLimit is the least output that may wait, in bytes: one piece.
const minLimit = pieceSize

// ValidStage says whether name can name a stage: it becomes a folder.
func ValidStage(name string) bool {
	if name == "" || len(name) > 120 {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// Bytes is the Status as it goes over the wire and into its file.
func (s Status) Bytes() []byte {
	var rec record
	rec.add("exit", strconv.Itoa(s.Exit))
	rec.add("signal", strconv.Itoa(s.Signal))
	rec.add("stopped", strconv.FormatBool(s.Stopped))
	rec.add("oom", strconv.Itoa(s.OOM))
	rec.add("trouble", string(s.Trouble))
	rec.add("detail", s.Detail)
	return rec.bytes()
}

// ParseStatus reads a Status. A status that cannot be read is an error and
// never a success.
func ParseStatus(b []byte) (Status, error) {
	fields, err := parseRecord(b)
	if err != nil {
		return Status{}, err
	}
	n := numbers{fields: fields}
	s := Status{
		Exit:    int(n.get("exit")),
		Signal:  int(n.get("signal")),
		Stopped: fields["stopped"] == "true",
		OOM:     int(n.get("oom")),
		Trouble: Trouble(fields["trouble"]),
		Detail:  fields["detail"],
	}
	if n.err != nil || s.Exit < 0 || s.Exit > 255 || s.Signal < 0 || s.Signal > 127 {
		return Status{}, errRecord
	}
	return s, nil
}
