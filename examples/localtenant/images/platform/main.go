// Command platform prints what it was compiled for, and its arguments.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	if _, err := fmt.Println(runtime.GOOS+"/"+runtime.GOARCH, os.Args[1:]); err != nil {
		os.Exit(1)
	}
}
