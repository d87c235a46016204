"""Completion in shells: the script that each of them needs, and where it is installed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from vgae.errors import InputError

_BASH = """\
_vgae_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" \\
        _VGAE_COMPLETE=complete_bash "$1" 2>/dev/null))
}
complete -o default -F _vgae_completion vgae
"""

_ZSH = """\
#compdef vgae
_vgae_completion() {
    local -a offered
    offered=("${(@f)$(env _TYPER_COMPLETE_ARGS="${words[1,CURRENT]}" _VGAE_COMPLETE=complete_zsh vgae 2>/dev/null)}")
    if [[ -n "${offered[1]}" ]]; then
        _describe -V vgae offered
    else
        _files
    fi
}
if [[ "${zsh_eval_context[-1]}" == loadautofunc ]]; then
    _vgae_completion "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _vgae_completion vgae
fi
"""

_FISH = """\
function _vgae_completion
    set --local offered (env _TYPER_COMPLETE_ARGS=(commandline -cp | string collect --no-trim-newlines) \\
        _VGAE_COMPLETE=complete_fish vgae 2>/dev/null)
    if test (count $offered) -gt 0
        printf '%s\\n' $offered
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command vgae --no-files --arguments '(_vgae_completion)'
"""

SHELLS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
OWN = "own"  # the shell that $SHELL names


def script(shell: str) -> str:
    """What a shell has to run for completion to work in it."""
    return SHELLS[shell].rstrip("\n")


def named_shell(given: str, option: str) -> str:
    """A shell by its name, or the user's own."""
    name = Path(os.environ.get("SHELL", "")).name if given == OWN else given
    if name in SHELLS:
        return name
    found = f"{name!r} is not one of {', '.join(SHELLS)}" if name else "$SHELL does not name your shell"
    raise InputError(f"{option}: {found}; name one of them, such as {option} bash.")


def install(shell: str) -> list[Path]:
    """Write the script where the shell finds it, twice without harm; returns the files that were written to."""
    if shell == "fish":
        place = _folder("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "vgae.fish"
        _write(place, shell)
        return [place]
    place = _folder("XDG_DATA_HOME", ".local/share") / "vgae" / f"completion.{shell}"
    _write(place, shell)
    start = Path(os.environ.get("ZDOTDIR") or Path.home()) / ".zshrc" if shell == "zsh" else Path.home() / ".bashrc"
    quoted = shlex.quote(str(place))
    line = f"[ -f {quoted} ] && . {quoted}  # completion of vgae"
    before = start.read_text(encoding="utf-8", errors="surrogateescape") if start.exists() else ""
    if line in before.splitlines():
        return [place]
    with start.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n" if before and not before.endswith("\n") else f"{line}\n")
    return [place, start]


def _folder(variable: str, default: str) -> Path:
    given = os.environ.get(variable, "")
    return Path(given) if Path(given).is_absolute() else Path.home() / default


def _write(path: Path, shell: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{script(shell)}\n", encoding="utf-8")
