"""Run the commands of a first session."""

import subprocess
import sys
from pathlib import Path

fairshield = Path(sys.executable).with_name("fairshield")


def call(*words: str) -> str:
    return subprocess.run([fairshield, *words], check=True, capture_output=True, text=True).stdout


spec = ["--property", "demographic-parity", "--bound", "0.2", "--horizon", "4"]
call("synthesize", *spec, "--groups", "a=0.5,b=0.5", "-o", "loans.shield")
Path("requests.csv").write_text("group,proposed\na,1\nb,0\na,0\nb,1\n")
call("run", "loans.shield", "requests.csv", "-o", "decisions.csv")
assert "held" in call("audit", "decisions.csv", "--policy", "loans.shield")
sys.stdout.write(call("--version"))
