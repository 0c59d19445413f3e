// Package command tells what a shell command will run.
package command
