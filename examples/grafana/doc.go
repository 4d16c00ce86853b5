// Package grafana is a dashboard for the driver's metrics, and the test of its
// queries by Prometheus' own engine. It is a module of its own: the driver needs
// none of that.
package grafana
