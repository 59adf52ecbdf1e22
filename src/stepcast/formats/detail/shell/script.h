// The command that a launch script runs, as far as a small part of the shell's language tells it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast::detail {

// Words of the command that trains: the one with a script in Python, of several the last whose name says that it trains
// (pretrain, ppo, grpo, dapo) or that has keys of an actor, or the last. A module that trains, `python -m
// verl.trainer.main_ppo`, is the script main_ppo.py. Without one all words, as of a line of flags. The part of Bash that is read (a word in quotes is itself, {x}
// is any number of x, [x] one or none):
//
//   script     = { command ( newline | ";" | "&" | "&&" | "||" | "|" ) }
//   command    = { assignment } { word | redirection }  |  "let" { NAME "=" sum }  |  "eval" command  |  "shift" [ sum ]
//              | [ "function" ] NAME [ "(" ")" ] "{" script "}"
//              | ( "export" | "local" | "declare" | "readonly" | "typeset" ) { flag } { assignment }
//              | "if" script "then" script { "elif" script "then" script } [ "else" script ] "fi"
//              | "case" word "in" { pattern { "|" pattern } ")" script ";;" } "esac"
//              | ( "for" | "while" | "until" ) script "do" script "done"  |  "{" script "}"  |  "(" script ")"
//   assignment = NAME ( "=" | "+=" ) ( word | "(" { word | newline } ")" )
//   word       = { character | "\\" character | "'" text "'" | '"' { character | expansion } '"' | expansion }
//   expansion  = "$" ( NAME | digit | "@" | "*" | "#" )  |  "$((" sum "))"  |  "$(" script ")"  |  "$(expr" sum ")"
//              | "`" script "`"
//              | "${" NAME [ "[" ( sum | "@" | "*" ) "]" ] [ ( ":-" | "-" | ":=" ) word ] "}"
//   sum        = whole numbers and NAMEs with + - * / % and brackets
//   redirection = [ digits ] ( ">" | ">>" | "<" | "<<" [ "-" ] | "&>" ) word  |  ">&" ( digits | "-" )
//
// A comment runs from "#" in front of a word to the end of the line; a backslash continues a line. Redirections, the
// documents of `<<`, what stands behind a pipe, and echo, printf and cat are left out, but for what a function or a
// condition in place of a word echoes; `bash -c "..."` is opened where the word holds a Python script. Conditions are
// decided where the script itself decides them (test.h). Nothing is run, and nothing comes from the environment but
// what `#SBATCH` lines say (SLURM_NNODES, SLURM_NTASKS and their kin, and `srun --ntasks=`); the script has no
// arguments, its functions have those of their calls. A script that runs no Python hands on the command line, or
// else the flags, that its variables hold. What is not known - a variable that the script does not set, or sets under
// a condition that it cannot decide, or in a loop (flags that are added so: what was known stays in front); the output
// of a command; an expansion of another kind - stays as it is written (`${NAME}`), for whoever reads the words to
// refuse where it matters. Errors: a quote, `${` or `$((` that is not closed, a zero byte, a script that grows without end.
[[nodiscard]] Result<std::vector<std::string>> launch_words(std::string_view script);

}  // namespace stepcast::detail
