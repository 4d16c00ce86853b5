package images

import (
	"io/fs"
	"path/filepath"
	"time"
)

// nodeInfo shows a node as a fs.FileInfo, which is what archive/tar makes
// headers from.
type nodeInfo struct {
	name string
	node *node
}

func (i nodeInfo) Name() string       { return filepath.Base(i.name) }
func (i nodeInfo) Size() int64        { return int64(len(i.node.body)) }
func (i nodeInfo) Mode() fs.FileMode  { return i.node.mode }
func (i nodeInfo) ModTime() time.Time { return fixedTime() }
func (i nodeInfo) IsDir() bool        { return i.node.mode.IsDir() }
func (i nodeInfo) Sys() any           { return nil }
