//go:build race

package main_test

// raceDetector says whether the program is to be built with the race detector,
// as the tests are.
const raceDetector = true

// fewer is by how much less the tests do under the race detector, which slows
// the programs down.
const fewer = 5
