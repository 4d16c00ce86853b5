// Package e2e tests the built driver on a real local tenant cluster: real
// apiserver, scheduler, kubelets and containers, and a gateway that boots and
// drops nodes. The tests need root and the build tag e2e; `make e2e` runs them.
package e2e
