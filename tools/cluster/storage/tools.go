//go:build tools

package storage

import _ "github.com/rancher/local-path-provisioner"
