// Package faultserver is a small apiserver for tests, and for nothing else: it
// keeps Pods and nodes in memory, demands a client certificate, upgrades exec
// for real, and fails in whatever way a test asks for.
//
// A test says beforehand what happens (OnCreate, OnExec, Fail, OnWatch) and
// looks afterwards at what was asked (Requests, Execs, Pods). Nothing in it
// waits for a time to pass.
package faultserver
