_codex_py() {
    local program=$1 word
    [[ $program == /* ]] ||
        while read -r program && [[ $program != /* ]]; do :; done < <(type -aP codex-py)
    COMPREPLY=()
    [[ $program ]] || return
    while IFS= read -r word; do
        printf -v word %q "$word"
        COMPREPLY+=("$word")
    done < <("$program" completion --candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _codex_py codex-py
