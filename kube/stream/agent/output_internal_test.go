package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// One of two outputs cannot be kept, while the other waits for room: nothing is
// written behind the end of the stage, and nobody waits on.
func TestNothingIsKeptBehindTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "status.new"), make([]byte, statusRoom), fileMode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ackName), make([]byte, 8), fileMode); err != nil {
		t.Fatal(err)
	}
	v := &supervisor{folder: stageFolder(dir), gone: make(chan struct{})}
	waits := make(chan struct{}, 1)
	v.spool = &spoolWriter{folder: dir, limit: pieceSize, apart: true, pause: func() bool {
		select {
		case waits <- struct{}{}:
		default:
		}
		return v.pause()
	}}
	if err := v.keep(Stdout, make([]byte, pieceSize)); err != nil {
		t.Fatal(err)
	}
	late := make(chan error, 1)
	go func() { late <- v.keep(Stderr, make([]byte, 1000)) }()
	<-waits
	v.muted.Store(true) // as run does when an output cannot be kept
	if err := v.end(Status{Trouble: TroubleDisk}); err != nil {
		t.Fatal(err)
	}
	if err := writeAck(dir, pieceSize); err != nil { // now there would be room
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
	total, _, ended, err := v.folder.status()
	if written := (&Front{folder: v.folder}).written(); err != nil || !ended || total != pieceSize || written != total {
		t.Errorf("%d bytes are there, and the status tells of %d (%t, %v)", written, total, ended, err)
	}
}
