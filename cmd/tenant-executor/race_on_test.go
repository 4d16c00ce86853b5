//go:build race

package main_test

// raceDetector says whether the program is to be built with the race detector,
// as the tests are.
const raceDetector = true
