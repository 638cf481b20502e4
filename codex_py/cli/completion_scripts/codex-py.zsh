#compdef codex-py
_codex_py() {
    local -a found programs
    programs=(${words[1]:#[^/]*} ${^${(M)path:#/*}}/codex-py(N-*))
    (( $#programs )) && found=(${(f)"$($programs[1] completion --candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -V codex-py -- $found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _codex_py "$@"; else compdef _codex_py codex-py; fi
