// Real clients of the protobuf media type: client-go, and its codec by itself.
//
//	goclient live KUBECONFIG   exercises a server with clients that send and prefer protobuf; prints what failed
//	goclient codec             translates lines: a JSON object to protobuf in base64, and back
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "live" {
		os.Exit(live(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == "codec" {
		os.Exit(translate(os.Stdin, os.Stdout))
	}
	fmt.Fprintln(os.Stderr, "usage: goclient live KUBECONFIG | goclient codec")
	os.Exit(2)
}
