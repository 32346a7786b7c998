package command

import "github.com/spf13/cobra"

// usageTemplate is cobra's usage template. It lists the commands in their groups. Instead of the list of global flags,
// it has one line.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{if eq (len .Groups) 0}}

Available Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if .LocalNonPersistentFlags.HasAvailableFlags}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{else}}
{{end}}
Use "{{.Root.CommandPath}} options" for a list of global flags, which every command takes.
`

const optionsTemplate = `These flags can be passed to any command:

{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
`

func newOptions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "options",
		Short: "List the global flags, which every command takes",
		Args:  arguments(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Usage() },
	}
	cmd.SetUsageTemplate(optionsTemplate)
	return cmd
}
