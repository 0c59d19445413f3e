// Package actions makes tools of what operators define in a file.
package actions
