"""Make a client, and check its error where no service answers."""

import sys

import fairshield as fs

with fs.Client("http://127.0.0.1:1", retries=0) as client:
    try:
        client.streams()
    except ConnectionError as error:
        sys.stdout.write(type(error).__name__)
    else:
        raise AssertionError("somebody answered")
