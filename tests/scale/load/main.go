// Program load puts the requests of a Kubernetes cluster on an API server, without nodes. README.md describes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var commands = map[string]func(context.Context, *flag.FlagSet, []string) error{
	"cluster": runCluster,
	"watches": runWatches,
	"storm":   runStorm,
	"objects": runObjects,
	"drain":   runDrain,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: load cluster|watches|storm|objects|drain [flags]; load COMMAND --help lists the flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	if err := commands[os.Args[1]](ctx, set, os.Args[2:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}
