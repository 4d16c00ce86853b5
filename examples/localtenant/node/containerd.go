package node

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed containerd.toml.tmpl
var containerdTemplate string

//go:embed cni.conflist.tmpl
var cniTemplate string

// Registry is where a node pulls from.
type Registry struct {
	// Addresses are the registries that speak plain HTTP.
	Addresses []string
	// PauseImage is the image of every Pod's sandbox.
	PauseImage string
}

// writeRuntime writes the configuration of containerd and of the Pod network.
func (n *Node) writeRuntime() error {
	certs := n.file("certs.d")
	for _, address := range n.registry.Addresses {
		dir := filepath.Join(certs, address)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("write containerd's registry: %w", err)
		}
		url := "http://" + address
		text := fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", url, url)
		if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write containerd's registry: %w", err)
		}
	}
	values := map[string]string{
		"Socket":     containerdSocket,
		"PauseImage": n.registry.PauseImage,
		"CNIBin":     cniBin,
		"CNIConf":    n.file("cni.d"),
		"Certs":      certs,
		"Name":       n.tenant.Name(),
		"Pods":       n.plan.Pods(n.slot).String(),
	}
	if err := os.MkdirAll(n.file("cni.d"), 0o755); err != nil {
		return fmt.Errorf("write the Pod network: %w", err)
	}
	if !n.withoutNetwork {
		if err := render(n.file("cni.d/10-bridge.conflist"), cniTemplate, values); err != nil {
			return err
		}
	}
	return render(n.file("containerd.toml"), containerdTemplate, values)
}

func render(path, text string, values map[string]string) error {
	parsed, err := template.New(filepath.Base(path)).Option("missingkey=error").Parse(text)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
