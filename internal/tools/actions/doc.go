// Package actions makes tools of what operators define in a file: the few things that a team's agent is really for, each
// with a name, typed inputs and the exact program that runs.
//
// # The life of an action
//
//  1. [Parse] reads the file, strictly: what isn't understood is an error with its line, and all errors are told at once.
//     Nothing outside the file is looked at, so a file can be checked on another machine than the one that will run it.
//  2. [File.Prepare] looks at this machine: each program is found and pinned by its path, each directory and each secret
//     has to be there. An action that wasn't prepared runs nothing.
//  3. A model calls the [Action] as any tool. What it may choose is the inputs, which its schema binds; the program, the
//     options, the directory and the environment are the operator's. [Action.Describe] shows the arguments that will be
//     passed, and [Action.Call] passes exactly those: one function makes them for both.
//  4. The file is read again when approvalbot is restarted, and only then.
//
// # One element, one argument
//
// There is no shell between an action and its program. Each text of `run` is one argument, whatever the values in it are:
// a value never begins, ends or splits an argument. A list in `run` is a group that is there as a whole or not at all, and
// a list of values gives one argument each. What a program itself makes of an argument is another matter, so that
//
//   - the program is never an input;
//   - a value that begins an argument may not begin with a dash, where it would be an option, unless the operator wrote
//     the dash down (in an enum, a const, at the beginning of a pattern, as a negative minimum) or a "--" comes before;
//   - a value may not stand in text that the program runs as code: the script of `sh -c`, of `python -c`;
//   - a pattern has to say where the text begins and ends, else it would fit whatever merely contains it;
//   - an input that would have no effect is refused rather than dropped.
//
// # Where it runs
//
// With an environment made from nothing (PATH, HOME, TMPDIR and a few more), the action's own `env` and its secrets. In
// the directory / unless another is named: the workspace is the agent's to write, and programs believe what they find
// where they are run (.git/config, .npmrc, a Makefile). For the same reason HOME is never the workspace, and no program
// may be in it.
//
// # Secrets
//
// An action names where a secret is, never the secret. It is read when the action is prepared, so that a missing one
// stops the start, and again for each call, so that a rotated file counts. It goes to the program, in an environment
// variable, and nowhere else: it isn't an argument, and what the program writes passes a [scrubber] before anything of it
// is kept, which knows the usual ways to encode it. Errors name the secret and where it should be, never what it is.
package actions
