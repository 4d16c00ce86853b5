// Command podagent runs stages inside a job's Pod; the work is in
// kube/stream/agent. The driver carries it and sends it into each Pod.
package main

import (
	"os"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

func main() {
	if err := agent.Main(os.Args); err != nil {
		_, _ = os.Stderr.WriteString("podagent: " + err.Error() + "\n")
		os.Exit(1)
	}
}
