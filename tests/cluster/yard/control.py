"""What is asked of a machine over a socket: one line of JSON there, one back, one question at a time."""
import json
import os
import socket
import subprocess


class Refused(Exception):
    """The answer to a question was no."""


class Programs:
    """The programs of one machine by name, each a kube.process.Process: what can be asked about any of them."""

    def __init__(self, programs):
        self.programs = programs

    def start(self, program):
        if not self._named(program).is_running():
            self._named(program).start()

    def stop(self, program):
        self._named(program).stop()

    def kill(self, program):
        self._named(program).kill()

    def pause(self, program):
        self._named(program).pause()

    def resume(self, program):
        self._named(program).resume()

    def status(self):
        return {name: program.is_running() for name, program in self.programs.items()}

    def run(self, command, timeout=120):
        """Runs it to its end, here; its output. Throws Refused where that is not 0."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Refused(str(error)) from error
        if done.returncode != 0:
            raise Refused(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def _named(self, program):
        if program not in self.programs:
            raise Refused(f"there is no program '{program}' here, but {', '.join(sorted(self.programs))}")
        return self.programs[program]


def serve(path, handler):
    """Answers with handler's methods until `end` is asked. In one thread: what it starts dies with that thread."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path) + ".part")
        os.chmod(str(path) + ".part", 0o600)
        listener.listen(16)
        os.rename(str(path) + ".part", path)
        while True:
            connection, _ = listener.accept()
            with connection:
                if _serve_one(connection, handler) == "end":
                    return


def _serve_one(connection, handler):
    """Answers one question, whether or not who asked is still there; what was to be done."""
    try:
        with connection.makefile("rb") as lines:
            question = json.loads(lines.readline() or b'{"do": ""}')
    except (OSError, ValueError):  # who asked was gone before it had asked
        return None
    do = question.pop("do")
    answer = _answer(handler, do, question)
    try:
        connection.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        pass
    return do


def _answer(handler, do, arguments):
    method = getattr(handler, do, None)
    if do == "end":
        return {"answer": None}
    if do.startswith("_") or not callable(method):
        return {"refused": f"it is not known here how to '{do}'"}
    try:
        return {"answer": method(**arguments)}
    except Exception as error:  # whatever it is, who asked is to know, and the machine goes on
        return {"refused": f"{error}"}


def ask(path, do, patience=180, **arguments):
    """The answer. Throws Refused, and OSError where nobody answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(patience)
        connection.connect(str(path))
        with connection.makefile("rwb") as lines:
            lines.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            lines.flush()
            answer = json.loads(lines.readline() or b'{"refused": "it ended before it answered"}')
    if "refused" in answer:
        raise Refused(answer["refused"])
    return answer["answer"]


def is_served(path):
    """Whether somebody answers there, or is at work and will."""
    try:
        ask(path, "status", patience=5)
    except TimeoutError:
        return True
    except (OSError, Refused):
        return False
    return True
