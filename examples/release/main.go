// Command release tells what a release has to tell of the programs in it:
//
//	release licences PROGRAM        the licence of each module in the program, with its text
//	release vulnerabilities REPORT  what govulncheck has found, from its JSON
//
// `make release` and `make vulnerabilities` run it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: release licences PROGRAM | release vulnerabilities REPORT")
	}
	switch args[0] {
	case "licences":
		return licences(args[1], moduleFolder, out)
	case "vulnerabilities":
		report, err := os.Open(args[1])
		if err != nil {
			return err
		}
		defer report.Close() //nolint:errcheck // only read
		return vulnerabilities(report, out)
	}
	return fmt.Errorf("unknown verb %q: use licences or vulnerabilities", args[0])
}
