function __codex_py
    set -l words (commandline -opc) (commandline -ct)
    set -l found
    for program in (string match -- '/*' $words[1]) (string match -- '/*' $PATH)/codex-py
        if test -f $program -a -x $program
            set found ($program completion --candidates -- $words[2..-1] 2>/dev/null)
            break
        end
    end
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c codex-py -f -a '(__codex_py)'
