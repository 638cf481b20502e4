"""What `--help` prints. Written by hand for 80 columns; a test compares it with the options there are."""

TOP = """\
A streaming coding agent for the terminal and for CI, compatible with Codex.

Usage: codex-py [OPTIONS] [PROMPT]
       codex-py [OPTIONS] COMMAND [ARGS]

Without a command it is the interactive terminal, which begins with PROMPT.

Commands:
  resume [SESSION]    Go on with an earlier session in the terminal, or --last
  fork [SESSION]      Go on with a copy of a session
  exec, e             Work on one prompt without asking anything, and exit
  exec resume         Go on with an earlier session
  apply, a [FILE]     Apply a patch: an envelope or a unified diff
  undo [ID]           Bring back what a patch replaced
  sandbox [MODE] CMD  Run a command in the sandbox, as the model's commands are
  execpolicy check    Say what the rule files decide about a command
  mcp COMMAND         Add, list, remove, try and log in to MCP servers
  mcp-server          Run an MCP server whose tools are this agent
  demo                Show a session that needs no key and no network
  config explain KEY  Say what a setting is, and which file or option set it
  help [COMMAND]      Print the help of a command

Options:
  -h, --help          Print help
  -V, --version       Print the version

The terminal takes the options of `exec` that say what to work with: -m, -c, -p,
-s, -a POLICY, -C, --add-dir, --trust, --oss, --allow-unenforced. They may stand
before a command too: `codex-py -m MODEL exec PROMPT`.
"""

EXEC = """\
Work on one prompt without asking anything, and exit.

Usage: codex-py exec [OPTIONS] [PROMPT]
       codex-py exec [OPTIONS] resume [SESSION | --last] [PROMPT]

Arguments:
  PROMPT   What to do. Without it, or with `-`, the prompt is read from standard
           input; with it, what is piped in is added as a `<stdin>` block,
           unless the pipe stays silent for half a second
  SESSION  Id or name of a session

Model:
  -m, --model MODEL         Model to use
      --oss                 Use a model served on this machine
      --local-provider NAME Which server, with --oss: lmstudio, ollama
      --search              Let the model search the web live
  -i, --image FILE...       Attach images; takes all words up to the next option
                            (end the list with `--`), or names split by commas

What it may do:
  -s, --sandbox MODE        read-only, workspace-write, danger-full-access
      --add-dir DIR         One more folder that may be written to (repeatable)
  -C, --cd DIR              Folder to work in
      --skip-git-repo-check Work outside a git repository too
      --trust               Remember this project as trusted
  -a, --ask-for-approval P  Accepted for compatibility: exec never asks
      --full-auto           Old spelling of --sandbox workspace-write
      --dangerously-bypass-approvals-and-sandbox
                            No sandbox at all. Only for machines that are one
      --fail-on denied      Exit with 5 if a call was refused

Output:
      --json                Print events to standard output, one JSON line each
  -o, --output-last-message FILE
                            Write the last message to FILE
      --output-schema FILE  JSON Schema that the last message must satisfy
      --color WHEN          always, never, auto (the default)

Configuration:
  -c, --config KEY=VALUE    Override a setting; VALUE is TOML, or else a string:
                            -c model_reasoning_effort=high
                            -c 'sandbox_workspace_write.network_access=true'
  -p, --profile NAME        Add $CODEX_HOME/NAME.config.toml
      --enable FEATURE      The same as -c features.FEATURE=true (repeatable)
      --disable FEATURE     The same as -c features.FEATURE=false (repeatable)
      --strict-config       Unknown settings are errors
      --ignore-user-config  Leave out $CODEX_HOME/config.toml
      --ignore-rules        Leave out the files of command rules
      --dangerously-bypass-hook-trust
                            Accepted for compatibility: hooks are not run
      --allow-unenforced KEY
                            Start although this version does not enforce the
                            setting KEY, which protects (repeatable)

Session:
      --ephemeral           Write no session file
      --last                With resume: the newest session of this folder
      --all                 With resume: sessions of every folder
      --record TAPE         Keep the exchange with the model in a file
      --replay TAPE         Answer from such a file, without a network
      --no-alt-screen, --no-daemon
                            Accepted for compatibility: there is neither
      --thread-source NAME  Accepted for compatibility
      --cyber-access-program NAME
                            Accepted for compatibility: standard, daybreak_blue,
                            daybreak_red

  -h, --help                Print help
  -V, --version             Print the version

Exit codes: 0 done; 1 the turn failed; 2 usage; 4 the answer breaks the schema;
5 refused; 6 no sandbox; 53 more than 1,000 responses in a turn; 69 the provider
is unavailable; 75 try later; 77 authentication; 78 configuration; 129, 130 and
143 interrupted.
"""

CONFIG = """\
Say what a setting is, and which file or option set it.

Usage: codex-py config explain [OPTIONS] KEY

KEY is a dotted path, such as `model` or `sandbox_workspace_write.network_access`.
The options -c, -p, -C, --enable, --disable and --ignore-user-config count as they
do for `exec`.
"""

UNDO = """\
Bring back what a patch replaced: all of it or nothing.

Usage: codex-py undo [OPTIONS] [ID]

Without ID, the last patch that was made in this folder or below it and is not
undone yet. An undo is kept like a patch: `codex-py undo` with its ID does the
patch again.

Options:
      --list     List the patches that are kept, the newest first
      --show     Show what the patch changed, as a diff
      --force    Bring back even files that were edited since
      --json     Print JSON, one line for each patch
  -C, --cd DIR   Folder to look from
  -h, --help     Print help

A file that was edited since the patch stops the undo: the edits are printed as
a diff. Patches are kept for 30 days, up to 500 of them and 256 MB.

Exit codes: 0 done; 1 nothing to undo; 2 usage; 7 edited since, or could not be
written.
"""

APPLY = """\
Apply a patch to the files of this folder: all of it or nothing.

Usage: codex-py apply [OPTIONS] [FILE]

FILE holds an envelope (`*** Begin Patch`), a unified diff, or text with one of
them in it, such as a model's message. Without it, or with `-`, the patch is
read from standard input; on a terminal, FILE left out means the last patch of
the session that was held last in this folder.

Options:
      --check          Only say whether it fits
  -R, --reverse        Undo a unified diff
  -p, --strip N        Leave out N leading folders of the names in a diff (by
                       default what its names and the files suggest)
      --directory DIR  Put DIR in front of all names
      --strict         Refuse what does not fit exactly, or in several places
  -3, --3way           Merge where a file is not as the diff has it, if git has
                       the version that the diff was made from
      --partial        Apply what fits, and keep the rest in .rej files
      --convert KIND   Print the patch as an `envelope` or a `unified` diff, for
                       the files as they are, and change nothing
      --json           Print one JSON object
  -C, --cd DIR         Folder to work in
  -h, --help           Print help

What is outside of the folder, in its .codex, .agents or .aws, or in any .git,
is refused. What a patch replaced can be brought back: see `codex-py help undo`.

Started by the name `apply_patch`, through a symbolic link, codex-py takes an
envelope as its one argument or from standard input, and prints what the tool of
Codex prints.

Exit codes: 0 done; 1 a file could not be read or written; 2 usage, or FILE
cannot be read; 7 does not fit, or not all of it, or files of it may not be
written; 65 there is no patch in it, or several, or a damaged one.
"""

SANDBOX = """\
Run a command in the sandbox, as the model's commands are, or test the sandbox.

Usage: codex-py sandbox [OPTIONS] [MODE] [--] COMMAND [ARGS]
       codex-py sandbox --test

MODE is read-only, workspace-write or danger-full-access; without it, what the
configuration says. The exit code is that of the command.

Options:
      --test             Try all known ways out on every backend that works on
                         this machine, and print which of them it prevents
      --add-dir DIR      One more folder that may be written to (repeatable)
  -C, --cd DIR           Folder to work in
  -P, --permission-profile NAME
                         Hold it to this profile: `:read-only`, `:workspace`,
                         `:danger-full-access`, or one of the configuration
  -p, --profile NAME     Add $CODEX_HOME/NAME.config.toml
  -c, --config KEY=VALUE Override a setting; likewise --enable and --disable
      --allow-unenforced KEY
                         As for `exec` (repeatable)
  -h, --help             Print help

Exit codes: 6 nothing on this machine can hold a command; 125 the command could
not be confined, and was not run; 126 and 127 it cannot be run.
"""

EXECPOLICY = """\
Say what files of rules decide about a command. Nothing is run.

Usage: codex-py execpolicy check [OPTIONS] --rules FILE -- COMMAND [ARGS]

Options:
  -r, --rules FILE   A .rules file (repeatable; read in this order)
      --pretty       Print JSON on several lines
      --resolve-host-executables
                     A rule for `git` also holds for /usr/bin/git
  -h, --help         Print help

Prints one JSON object: `decision`, which is allow, prompt or forbidden and left
out where no rule decides, and `matchedRules`. The script of `bash -lc SCRIPT`
is read as it is in a session.

Exit codes: 0 whatever the decision; 2 usage; 78 a file of rules is wrong.
"""

MCP = """\
Add, list, remove, try and log in to MCP servers.

Usage: codex-py mcp [OPTIONS] COMMAND

Commands:
  add NAME [--env KEY=VALUE]... -- COMMAND [ARGS]
                     Add a server that is a program, or replace the one of that
                     name
  add NAME --url URL Add a server at an address (Streamable HTTP)
  list               List the servers, and how we stand with each
  get NAME           Show the settings of one
  remove NAME        Remove one from $CODEX_HOME/config.toml
  test NAME          Start one, list its tools, and say what is wrong if it fails
  login NAME         Log in to one with OAuth
  logout NAME        Forget that login

Options of `add`:
      --env KEY=VALUE           A variable for the program (repeatable)
      --bearer-token-env-var VAR
                                Send the token that the variable holds
      --oauth-client-id ID      A client that is registered already
      --oauth-resource URL      What the login is for

Options of `login`:
      --scopes A,B              Ask for these scopes
      --no-browser              Open no browser: only print the address

Options:
      --json                    With list, get and test: print JSON
  -c, --config KEY=VALUE        Override a setting
      --enable, --disable FEATURE
                                The same as -c features.FEATURE=true, =false
  -h, --help                    Print help

A login waits on 127.0.0.1 for the browser, for five minutes; if yours is on
another machine, paste the address that it ends at. It is kept in
$CODEX_HOME/codex-py, or in the keyring where the package `keyring` is installed.

Exit codes: 0 done; 1 no such server, it is not ready, or there is no login; 2
usage; 78 the configuration is wrong, and nothing was changed.
"""

MCP_SERVER = """\
Run an MCP server whose tools are this agent.

Usage: codex-py mcp-server [OPTIONS]

A client starts it, and speaks with it over standard input and output. The tool
`codex` works on a task in a folder, `codex-reply` goes on with one. What needs
a yes is put to the user of the client, where it can be (MCP elicitation), and
is refused where not. It ends when the client leaves.

Options, which count where a call says nothing else:
  -m, --model MODEL         Model to use
  -s, --sandbox MODE        read-only, workspace-write, danger-full-access
  -a, --ask-for-approval P  untrusted, on-failure, on-request, never
      --dangerously-bypass-approvals-and-sandbox
                            No sandbox at all. Only for machines that are one
  -C, --cd DIR              Folder to work in
      --add-dir DIR         One more folder that may be written to (repeatable)
  -c, --config KEY=VALUE    Override a setting
  -p, --profile NAME        Add $CODEX_HOME/NAME.config.toml
      --allow-unenforced KEY
                            As for `exec` (repeatable)
  -h, --help                Print help

Exit codes: 0 the client has left; 2 usage, or no such folder; 78 configuration;
129, 130 and 143 interrupted.
"""
