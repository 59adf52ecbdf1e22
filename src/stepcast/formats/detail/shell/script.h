// Finds the training command of a launch script by interpreting a small part of the shell language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast::detail {

// The words of the training command. It is a command with a Python script: the last one with a name that says it trains
// (pretrain, ppo, grpo, dapo) or with keys of an actor, else the last one. A module, `python -m verl.trainer.main_ppo`,
// counts as the script main_ppo.py. Without a Python script the result is all words, as for a line of flags.
//
// The supported part of Bash (text in quotes is literal, {x} is any number of x, [x] is an optional x):
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
// Comments begin with "#" before a word and end with the line; a backslash continues a line. Ignored are
// redirections, here-documents, commands after a pipe, and echo, printf and cat, except for the output of
// $(...). `bash -c "..."` is opened if its argument contains a Python script. Conditions are evaluated if the
// script itself determines them (arithmetic.h).
//
// Nothing is executed. The environment is empty, except for what `#SBATCH` lines imply (SLURM_NNODES, SLURM_NTASKS
// and similar ones, and `srun --ntasks=`). The script has no arguments; functions have the arguments of their
// calls. If no command runs Python, the result is the command line, or else the flags, in the script's variables.
//
// Unknown values stay as they are written (`${NAME}`), so that the caller can reject them where they matter:
// variables that the script does not set, or sets under an unknown condition or in a loop (known flags stay
// in front of added ones), output of commands, other expansions. Errors: an unclosed quote, `${` or `$((`, a
// zero byte, a script above the size limits.
[[nodiscard]] Result<std::vector<std::string>> launch_words(std::string_view script);

}  // namespace stepcast::detail
