package settings

// Scheduling is where a Pod may run.
type Scheduling struct {
	NodeSelector map[string]string `toml:"node_selector" example:"kubernetes.io/arch=amd64" doc:"Labels that a node must have."`
}

func (s Scheduling) check() []error {
	return checkLabels("kubernetes.node_selector", s.NodeSelector)
}
