"""Start a service, request its pages and stop it."""

import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

fairshield = Path(sys.executable).with_name("fairshield")
service = subprocess.Popen(
    [fairshield, "serve", "--db", "shield.db", "--port", "0"],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
)
try:
    assert service.stdout
    address = service.stdout.readline().split()[-1].rstrip("/")
    for path in ("/livez", "/", "/openapi.json", "/metrics"):
        with urlopen(address + path, timeout=30) as answer:
            assert answer.status == 200, path
finally:
    service.terminate()
    service.communicate(timeout=60)
assert service.returncode == 0, service.returncode
sys.stdout.write("serves its dashboard and stops in order")
