//go:build tools

// Package compose pins the plug-ins of Docker's command line that tools/compose.sh builds.
package compose

import (
	_ "github.com/docker/buildx/cmd/buildx"
	_ "github.com/docker/compose/v5/cmd"
)
