package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a command line that cannot be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// misused makes a usageError of what cobra has refused before any command ran.
func misused(root *cobra.Command, args []string, err error) error {
	var usage *usageError
	if errors.As(err, &usage) {
		return err
	}
	found, _, _ := root.Find(args)
	var word string
	if _, no := fmt.Sscanf(err.Error(), "unknown command %q", &word); no != nil || found == nil {
		return &usageError{err}
	}
	return noCommand(found, word)
}

// noCommand says that a command has none of a name.
func noCommand(c *cobra.Command, word string) error {
	near := orNearest(word, commandsOf(c))
	if near == "" {
		near = ";"
	}
	return &usageError{fmt.Errorf("there is no command %q%s %s --help lists the commands", word, near, c.CommandPath())}
}

// refuseStrangers has each command that is but a name for others refuse what is
// none of them; cobra would print its help and be content.
func refuseStrangers(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			refuseStranger(c)
		}
	}
}

func refuseStranger(c *cobra.Command) {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return noCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func commandsOf(c *cobra.Command) []string {
	var names []string
	for _, one := range c.Commands() {
		if one.IsAvailableCommand() {
			names = append(names, one.Name())
		}
	}
	return names
}

// orNearest asks whether the most similar of names was meant, "" where none is
// similar.
func orNearest(word string, names []string) string {
	best, bestDistance := "", 1+len(word)/2
	for _, name := range names {
		distance := levenshtein.Distance(word, name, nil)
		if len(word) > 1 && strings.HasPrefix(name, word) {
			distance = 0
		}
		if distance < bestDistance {
			best, bestDistance = name, distance
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// flagError says what is wrong with a flag in words that name neither Go's types
// nor its functions.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
		if unknown.GetSpecifiedShortnames() != "" {
			err = fmt.Errorf("%s has no flag -%s; %s --help lists them", c.CommandPath(), name, c.CommandPath())
			break
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := orNearest(name, names); near != "" {
			err = fmt.Errorf("%s has no flag --%s%s", c.CommandPath(), name, strings.Replace(near, `"`, `"--`, 1))
		} else {
			err = fmt.Errorf("%s has no flag --%s; %s --help lists them", c.CommandPath(), name, c.CommandPath())
		}
	case errors.As(err, &value):
		f := value.GetFlag()
		err = fmt.Errorf("--%s is %q: write %s", f.Name, value.GetValue(), kindOf(f.Value.Type()))
	case errors.As(err, &missing):
		f := missing.GetFlag()
		what, _ := pflag.UnquoteUsage(f)
		err = fmt.Errorf("--%s needs a value: --%s %s", f.Name, f.Name, what)
	}
	return &usageError{err}
}

// kindOf is what a flag of a type takes.
func kindOf(kind string) string {
	switch kind {
	case "int", "int64", "uint":
		return "a whole number"
	case "bool":
		return "true or false"
	case "duration":
		return "a time such as 90s, 10m or 1h30m"
	}
	return "a " + kind
}
