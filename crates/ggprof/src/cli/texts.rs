//! What stands behind the options of each command, in `--help` and in its manual page: a line that
//! ends in a colon begins a section. Examples are tried by a test.

pub(super) const GGPROF: &str = "\
Examples:
  ggprof run -- llama-completion -m model.gguf -p \"Hello\"
  ggprof run -o profile.json --html timeline.html -- llama-server -m model.gguf
  ggprof run --max-size 200MB -- llama-server -m model.gguf     the newest 200 MB, for days
  ggprof ctl snapshot -o now.html                   what a running server did until now
  ggprof top                                        what it does, second by second
  ggprof doctor -- llama-server -m model.gguf       what can be recorded of it, and how
  ggprof profile.json                               summary of a recording
  ggprof explain profile.json                       where the time goes, why, what to change
  ggprof view profile.json                          its timeline, in the browser
  ggprof report profile.json --top-ops 10 --inefficiency
  ggprof report profile.json --by layer --format markdown
  ggprof report profile.json --chrome-trace trace.json --html-viewer timeline.html
  ggprof diff before.ggprof after.ggprof            what contributes to a change
  ggprof bench -- ./old -m model.gguf --vs -- ./new -m model.gguf
  ggprof index recordings                           tokens/s of many recordings, by commit
  ggprof convert profile.json -o profile.csv -o profile.txt
  ggprof merge client.ggprof server.ggprof -o both.html         both ends of RPC on one axis
  ggprof export ops profile.ggprof --top 20 -o ops.txt          for test-backend-ops --test-file
  ggprof ops bench profile.ggprof --top 10          its longest operations alone, warm and cold
  ggprof peaks                                      what this machine can do, for the reports
  zstd -dc profile.json.zst | ggprof report -

Exit codes:
  0  done
  1  failed; a file that could not be finished was not written. Also if `--fail-if` names a phase that
     there is not
  2  wrong command line
  3  done, but a recording is damaged, cut off or empty, or a run of `bench` failed: see the warnings
  4  done, and a change that `--fail-if` names was found
Of `run`, the command's own, whatever became of the recording (`--strict`: 3 or 1 instead of 0):
  128+n  signal n ended the command
  126    the command cannot be executed (also of `bench` and `doctor`)
  127    the command was not found (the same)";

pub(super) const RUN: &str = "\
Examples:
  ggprof run -- llama-bench -m model.gguf           a summary when it ends
  ggprof run -o profile.ggprof -- whisper-cli -m model.bin audio.wav
  ggprof run -o profile.json.gz -o profile.csv --html page.html -- llama-server -m model.gguf
  ggprof run --cuda full -- llama-bench -m model.gguf           every kernel
  ggprof run --max-size 200MB -- llama-server -m model.gguf     the newest 200 MB
  ggprof run --start-after 2min --duration 30s -- llama-server -m model.gguf
  ggprof run --graphs 1000..2000 -- llama-server -m model.gguf
  ggprof run --snapshot-when 'gap>500ms' -- llama-server -m model.gguf
  ggprof run --repeat 5 -o p.ggprof -- llama-bench -m model.gguf

Several processes:
  Each that uses ggml has a recording. If there are several, their files are told apart by the process
  id: -o profile.json writes profile.4242.json and so on. `-o -` prints one after the other.

Options of the command:
  --profile and --profile-output FILE, the options of ggml's in-tree profiler, are taken from the
  arguments of programs that have ggml inside or are linked with it, and obeyed by ggprof. All other
  programs (docker, scripts) keep them; give -o to ggprof instead.

Exit codes:
  1      ggprof failed before it could run the command
  2      wrong command line
  126    the command cannot be executed
  127    the command was not found
  128+n  signal n ended the command
  Any other is the command's own, whatever became of the recording. With --strict, 0 becomes 3 if the
  recording is damaged, cut off or empty, and 1 if it could not be written.";

pub(super) const ATTACH: &str = "\
Examples:
  ggprof attach 4242                                until Ctrl-C, then a summary
  ggprof attach 4242 --duration 30s -o now.html
  ggprof attach 4242 --max-size 200MB -o now.ggprof";

pub(super) const CTL: &str = "\
Examples:
  ggprof ctl status                                 what is being recorded
  ggprof ctl stop
  ggprof ctl start 4242
  ggprof ctl snapshot -o now.html
  ggprof ctl metrics";

pub(super) const CTL_START: &str = "\
Examples:
  ggprof ctl start
  ggprof ctl start 4242";

pub(super) const CTL_STOP: &str = "\
Examples:
  ggprof ctl stop
  ggprof ctl stop 4242";

pub(super) const CTL_SNAPSHOT: &str = "\
Examples:
  ggprof ctl snapshot                               a summary
  ggprof ctl snapshot -o now.html -o now.ggprof
  ggprof ctl snapshot 4242 -o now.json.gz";

pub(super) const CTL_METRICS: &str = "\
Examples:
  ggprof ctl metrics
  ggprof ctl metrics 4242";

pub(super) const CTL_STATUS: &str = "\
Examples:
  ggprof ctl status
  ggprof ctl status --format json";

pub(super) const TOP: &str = "\
Keys:
  q  quit
  s  sort operations by time, calls or GB/s
  f  freeze what is shown, and go on
  p  show operations of all steps, prompts, generation or mixed batches
  w  write a snapshot to the current directory, as `ggprof ctl snapshot -o snapshot-1.ggprof`

Examples:
  ggprof top
  ggprof top 4242
  ggprof top --json --count 60                      a minute, for a script";

pub(super) const DOCTOR: &str = "\
Examples:
  ggprof doctor                                     is everything there that recording needs?
  ggprof doctor -- llama-server -m model.gguf
  ggprof doctor --seconds 120 -- python3 serve.py";

pub(super) const ENV: &str = "\
Examples:
  eval \"$(ggprof env)\"
  GGML_PROFILE=profile.json llama-completion -m model.gguf -p \"Hello\"

Values of GGML_PROFILE:
  1, stdout or empty  prints a summary to standard output
  a path              writes what its name says, as `ggprof run -o`; without an extension, JSON

The first process that ends gets the file, others that were started by the same command get files with
their process id: profile.4242.json. %p in a path always stands for the process id.

The file is written when the program ends or frees its last scheduler, and again if it computes more. If
it cannot be, the recording is kept and named. A program that is killed leaves its recording in the
temporary directory; `ggprof doctor` names it.";

pub(super) const REPORT: &str = "\
Examples:
  ggprof report profile.ggprof
  ggprof report profile.json --top-ops 10 --inefficiency
  ggprof report profile.json --by layer --format markdown
  ggprof report profile.ggprof --by request --from 14:03 --to 14:05
  ggprof report profile.ggprof --phase tg --by shape -o shapes.csv
  ggprof report profile.json --chrome-trace trace.json.gz --html-viewer timeline.html
  ggprof report profile.ggprof --issue --since before.ggprof
  zstd -dc profile.json.zst | ggprof report -";

pub(super) const EXPLAIN: &str = "\
Examples:
  ggprof explain profile.ggprof
  ggprof explain profile.ggprof --phase tg
  ggprof explain profile.ggprof -o why.md";

pub(super) const INDEX: &str = "\
Examples:
  ggprof index recordings                           tokens/s by commit and device
  ggprof index recordings --phase tg --device H200
  ggprof index recordings --by commit,device,threads --since 2026-08-01 --format csv
  ggprof index recordings --by file --commit 7e467cc
  ggprof index recordings --html history.html       the same as a page, over time

The catalogue is the file .ggprof-index in the directory. Only recordings (*.ggprof, also .gz or .zst)
that are new or have changed are read. Speeds of different models or phases are never put together.
Speeds are medians of recordings. A change is one against the recordings before, back to the last change
that was certain; with ~ it may be noise.";

pub(super) const VIEW: &str = "\
Examples:
  ggprof view profile.ggprof
  ggprof view profile.json.gz --from 90s --to 2min
  ggprof view profile.ggprof --peaks peaks.json";

pub(super) const CONVERT: &str = "\
Formats:
  .json     all facts of the recording, as ggml's profiler writes them, and more
  .csv      a line for each op and copy
  .txt      the text report of ggml's profiler
  .md       the summary
  .html     the timeline, as one page
  .ggprof   the recording itself, from a recording
  .pftrace  Perfetto's own format, for ui.perfetto.dev and its trace processor
  .pb       the format of pprof, usually as .pb.gz, for `go tool pprof`, Pyroscope and Parca
  Each can have .gz or .zst behind it, and is compressed then.
  .parquet  the table of ops and copies, for DuckDB and the like; `--to parquet` writes all

Examples:
  ggprof convert profile.ggprof -o profile.json
  ggprof convert profile.json -o profile.csv -o profile.txt
  ggprof convert profile.ggprof --phase tg -o generation.json.zst
  ggprof convert profile.ggprof -o profile.ggprof.zst           the recording, smaller
  ggprof convert profile.ggprof -o trace.pftrace -o profile.pb.gz
  ggprof convert profile.ggprof -o -                            JSON to standard output
  ggprof convert *.ggprof --to parquet -o tables                tables of many recordings";

pub(super) const MERGE: &str = "\
Examples:
  ggprof run -o server.ggprof -- ggml-rpc-server --host 0.0.0.0       on each server
  ggprof run -o client.ggprof -- llama-bench -m m.gguf --rpc server:50052
  ggprof merge client.ggprof server.ggprof -o both.json               one trace of both
  ggprof merge client.ggprof server1.ggprof server2.ggprof -o all.html
  ggprof merge recordings/ -o all.pftrace                             all of a directory

What a server computed becomes a part of the client's graph run. Each graph that the client left to a
server is found there by the order of both, checked by its ops, names and shapes. Clocks of several
machines are brought together by what cannot be otherwise: no server computes before it was asked, and
no client has a result before it was computed. How exact that is, and how many moments contradict it,
is printed. `report`, `explain` and `view` do the same with several files.";

pub(super) const EXPORT: &str = "\
Examples:
  ggprof export ops profile.ggprof --top 20 -o ops.txt";

pub(super) const EXPORT_OPS: &str = "\
Examples:
  ggprof export ops profile.ggprof --top 20 -o ops.txt
  ggprof export ops profile.json --for build/bin/libggml-base.so -o ops.txt
  ggprof export ops profile.ggprof --phase tg --ids-of other.ggprof -o ops.txt

The lines hold the numbers that a ggml gives its ops and types, and these differ between versions. Name
the libggml-base that `test-backend-ops` is linked with, unless it is of the same version as the recorded
program. `test-backend-ops perf -b CPU --test-file ops.txt` then times them. What cannot be written is
listed with its reason.";

pub(super) const OPS: &str = "\
Examples:
  ggprof ops bench profile.ggprof --top 10";

pub(super) const OPS_BENCH: &str = "\
Examples:
  ggprof ops bench profile.ggprof --top 20
  ggprof ops bench profile.ggprof --phase tg --backend CUDA0
  ggprof ops bench profile.ggprof --ggml old/bin --ggml new/bin -o builds.md

Each operation runs in a process of its own, with random data, on the libraries that the recorded program
used. docs/ops.md says how to read the times.";

pub(super) const PEAKS: &str = "\
Examples:
  ggprof peaks
  ggprof peaks -o peaks.json                        to take to another machine
  ggprof report profile.ggprof --peaks peaks.json";

pub(super) const GENERATE: &str = "\
Examples:
  ggprof generate man --directory man1
  ggprof generate completions bash";

pub(super) const GENERATE_COMPLETIONS: &str = "\
Examples:
  ggprof generate completions bash > ~/.local/share/bash-completion/completions/ggprof
  ggprof generate completions zsh > _ggprof
  ggprof generate completions fish > ~/.config/fish/completions/ggprof.fish";

pub(super) const GENERATE_MAN: &str = "\
Examples:
  ggprof generate man | man -l -
  ggprof generate man run | man -l -
  ggprof generate man --directory ~/.local/share/man/man1";

pub(super) const DIFF: &str = "\
Examples:
  ggprof diff before.ggprof after.ggprof
  ggprof diff a?.ggprof --vs b?.ggprof              five or more a side tell a change from noise
  ggprof diff --phase tg --by op before.json after.json --format markdown

Times are per token of each phase. The rows add up to the change of the phase: a time in which several
things happen is divided among them, and what belongs to no op has rows of its own. A row with ~ may be
noise. docs/compare.md says how rows are matched and tested.";

pub(super) const BENCH: &str = "\
Examples:
  ggprof bench -- llama-bench -m model.gguf -fa 0 --vs -- llama-bench -m model.gguf -fa 1
  ggprof bench -- build-a/bin/llama-bench -m model.gguf --vs -- build-b/bin/llama-bench -m model.gguf
  ggprof bench -- llama-bench -m model.gguf --vs -- LD_LIBRARY_PATH=build-b/lib
  ggprof bench -- llama-bench -m model.gguf --vs -- GGML_CUDA_DISABLE_GRAPHS=1
  ggprof bench --fail-if 'tg > 3%' --baseline ~/.cache/ggprof -- ./old -m m.gguf --vs -- ./new -m m.gguf
  ggprof bench -- llama-bench -m model.gguf         against itself: how noisy is this machine?

A side begins with variables of its environment, if it needs any. A second side of nothing else is the
first command with these variables. The two run in turns: A B, B A, A B. The first run of each is left
out. After `--pairs` pairs, more follow until each phase has changed for certain, or a change of 1%
(or what `--fail-if` asks about) would have been seen; at most `--max-pairs`. Looking several times
does not make an alarm by chance more likely: each look has its part of the 2%, the last one too. So
five pairs can tell something only with `--max-pairs 5`.";
