package server

import (
	"os"
	"os/exec"
	"syscall"
	_ "unsafe" // for go:linkname

	_ "k8s.io/apiserver/pkg/server"
)

// hostname is the variable of the generic API server that tests replace by SetHostnameFuncForTests. Servers of one host have different
// identities because of it.
//
//go:linkname hostname k8s.io/apiserver/pkg/server.hostnameFunc
var hostname func() (string, error)

// onHost returns the command of a program on a host with the name that the test has given to its server.
//
// The host is a UTS namespace of its own, in which a shell sets the name. Users other than root need a user namespace for that.
func onHost(program string, arguments []string) (*exec.Cmd, error) {
	own, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	name, err := hostname()
	if err != nil {
		return nil, err
	}
	if name == own {
		command := exec.Command(program, arguments...)
		command.SysProcAttr = &syscall.SysProcAttr{}
		return command, nil
	}
	command := exec.Command("/bin/sh", append([]string{"-c", `hostname "$0" && exec "$@"`, name, program}, arguments...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if user := os.Getuid(); user != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return command, nil
}
