#!/usr/bin/env python3
"""control.py: a machine goes on and answers the next one, whenever who asks is killed.

usage: control_test.py
"""
import socket
import tempfile
import threading
import unittest
from pathlib import Path

from yard import control


class Machine:
    def __init__(self):
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def status(self):
        return {}

    def answer_late(self):
        self.is_asked.set()
        self.may_answer.wait(60)
        return "x" * (1 << 20)


class Control(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path, self.machine = Path(folder) / "control.sock", Machine()
        self.server = threading.Thread(target=control.serve, args=(self.path, self.machine), daemon=True)
        self.server.start()
        while not self.path.exists():
            self.assertTrue(self.server.is_alive())
        self.addCleanup(self.end)

    def end(self):
        control.ask(self.path, "end")
        self.server.join(60)
        self.assertFalse(self.server.is_alive())

    def connected(self):
        connection = self.enterContext(socket.socket(socket.AF_UNIX))
        connection.connect(str(self.path))
        return connection

    def test_who_is_gone_before_asking_or_amid_the_question_is_forgotten(self):
        for said in (b"", b'{"do": "sta', b"\n", b"no question\n"):
            with self.subTest(said):
                connection = self.connected()
                connection.sendall(said)
                connection.close()
                self.assertEqual(control.ask(self.path, "status"), {})

    def test_who_is_gone_before_the_answer_does_not_end_the_machine(self):
        connection = self.connected()
        connection.sendall(b'{"do": "answer_late"}\n')
        self.assertTrue(self.machine.is_asked.wait(60))
        connection.close()
        self.machine.may_answer.set()
        self.assertEqual(control.ask(self.path, "status"), {})

    def test_served_is_where_somebody_answers_or_will(self):
        self.assertTrue(control.is_served(self.path))
        self.assertFalse(control.is_served(self.path.with_name("other.sock")))


if __name__ == "__main__":
    unittest.main()
