// Konnectivity's proxy server and agent in one program: the first argument is "server" or "agent".
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	agent "sigs.k8s.io/apiserver-network-proxy/cmd/agent/app"
	agentoptions "sigs.k8s.io/apiserver-network-proxy/cmd/agent/app/options"
	server "sigs.k8s.io/apiserver-network-proxy/cmd/server/app"
	serveroptions "sigs.k8s.io/apiserver-network-proxy/cmd/server/app/options"
)

func main() {
	command := &cobra.Command{Use: "konnectivity"}
	serverOptions := serveroptions.NewProxyRunOptions()
	serverCommand := server.NewProxyCommand(&server.Proxy{}, serverOptions)
	serverCommand.Use = "server"
	serverCommand.Flags().AddFlagSet(serverOptions.Flags())
	agentOptions := agentoptions.NewGrpcProxyAgentOptions()
	agentCommand := agent.NewAgentCommand(&agent.Agent{}, agentOptions)
	agentCommand.Use = "agent"
	agentCommand.Flags().AddFlagSet(agentOptions.Flags())
	command.AddCommand(serverCommand, agentCommand)
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
