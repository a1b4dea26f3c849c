"""What the command `harness` says of itself: one text for each of its commands.

Room: pure; the command line comes in.
"""

OVERVIEW = """\
usage: harness COMMAND [options]

commands:
  run TASK    give the agent one task in this folder and print its answer
  sdk         serve a program that embeds the agent: JSON-RPC, an object a line
  acp         serve an editor or automation: Agent Client Protocol
  sessions    list stored sessions, show one, salvage a damaged one
  attachments sweep   remove stored pictures that no session names

options:
  -h, --help  show this text, or a command's with: harness COMMAND --help
  --version   show the version

example:
  OPENAI_API_KEY=... harness run "fix the failing test and say what was wrong"
"""

RUN_HELP = """\
usage: harness run [options] [TASK ...]      a piped task needs no TASK, or -

Give the agent one task in a folder and print its answer.

  --model NAME           model to ask                       HARNESS_MODEL
  --provider NAME        openai, deepseek or custom         HARNESS_PROVIDER
  --base-url URL         address of the model's service     HARNESS_BASE_URL
  --session-root FOLDER  where session logs are kept        HARNESS_SESSION_ROOT
  --cwd FOLDER           folder to work in; this one unless told otherwise
  --resume ID            go on with a stored session; also --session-id
  --timeout SECONDS      give up after that long
  --max-steps N          model requests in one turn at most, 50
  --retry-base-ms MS     first wait between two attempts, 500
  --compact-at TOKENS    summarise old history from there   HARNESS_COMPACT_AT
  --delegation-depth N   let it give work to children, N deep; 0
  --mcp FILE             tools of MCP servers, named in JSON or TOML
  --json                 print the log's events and a result, an object a line
  --verbose              session id and progress on standard error
  -h, --help             this text
keys: OPENAI_API_KEY, DEEPSEEK_API_KEY, HARNESS_API_KEY (custom); local: none
exit codes: 0 completed, 1 failed, 2 usage, 3 cut at a limit, 4 aborted or
  blocked, 5 no turn ran, 6 resume refused, 124 timeout, 130 SIGINT, 143 SIGTERM
example:
  harness run --cwd ~/project --timeout 600 "fix the failing test"
"""
SDK_HELP = """\
usage: harness sdk [options]

Serve one client over standard input and output: JSON-RPC, an object a line.
Ends with status 0 when the client says shutdown or closes its end.

  --provider NAME, --model NAME, --base-url URL, --session-root FOLDER, --cwd FOLDER,
  --max-steps N, --retry-base-ms MS, --compact-at TOKENS, --delegation-depth N,
  --mcp FILE              as of: harness run; the client's own choice goes before
  --max-tokens-as-success a child that was cut at its token limit counts as ok
  -h, --help              this text
"""
ACP_HELP = """\
usage: harness acp [options]

Serve one client of the Agent Client Protocol over standard input and output.
Ends with status 0 when the client closes its end.

  --provider NAME, --model NAME, --base-url URL, --session-root FOLDER,
  --max-steps N, --retry-base-ms MS, --compact-at TOKENS, --delegation-depth N,
  --mcp FILE              as of: harness run
  --ask                   ask the client before a tool changes something
  --live                  tell it of thoughts and tool calls, too
  --stored-sessions       let it list, load, resume and close sessions
  --tell-max-tokens       tell it of turns that were cut at a limit
  -h, --help              this text
"""
SWEEP_HELP = """\
usage: harness attachments sweep [options]

Remove the stored pictures that no session names. Nothing is removed while any
session of the folder cannot be read, for it may name them.

  --dry-run              only say what would be removed
  --grace-hours HOURS    how old a picture has to be, 24
  --session-root FOLDER  where session logs are kept        HARNESS_SESSION_ROOT
  -h, --help             this text
exit codes: 0 swept, 1 a session cannot be read, 2 usage
"""
