#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node service that only talks: the control protocol without tiers, for the tests of the command line.

It listens on control.sock in a node directory, as the real service does, and answers every request of the
protocol. What it answers is set by a JSON file in the directory (behaviour.json), which a test may write at any
time:

  drain_steps   how many progress lines a drain sends before it is done (default 1)
  step_seconds  the pause before each (default 0.05)
  unstored      list of {path, dirty_bytes, error, ...}; not empty: nothing is ever wholly stored
  attached      whether a client library is said to have attached (default true)
  report        fields that replace those of the final report
  status        fields that replace those of the status
  explain       the reply to "explain"
  version       the version that status names
  hang_up       a command at which the connection is closed without an answer
  error         {"command", "message", "remedy"}: that command fails

Every request is appended to requests.jsonl, so that a test can see what the command line asked.
"""
import argparse
import json
import os
import signal
import socket
import threading
import time


class FakeNode:
    def __init__(self, directory, name):
        self.directory = directory
        self.name = name
        self.started = time.monotonic()
        self.ended = threading.Event()
        self.runs = {}
        self.lock = threading.Lock()

    def behaviour(self):
        try:
            with open(os.path.join(self.directory, "behaviour.json"), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def record(self, request):
        with self.lock, open(os.path.join(self.directory, "requests.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(request) + "\n")

    def status(self, behaviour):
        unstored = behaviour.get("unstored", [])
        status = {
            "version": behaviour.get("version", ""),
            "node": self.name,
            "service_pid": os.getpid(),
            "uptime_seconds": time.monotonic() - self.started,
            "directory": self.directory,
            "tiers": [{"name": "ram", "kind": "ram", "path": "", "capacity_bytes": 1 << 30,
                       "used_bytes": 1 << 20, "dirty_bytes": sum(f.get("dirty_bytes", 0) for f in unstored),
                       "huge_pages": False}],
            "backing": {"dirty_bytes": sum(f.get("dirty_bytes", 0) for f in unstored),
                        "dirty_files": len(unstored), "flushed_bytes": 0, "flush_rate_bytes_per_second": 0.0},
            "rates": {"read_bytes_per_second": 0.0, "write_bytes_per_second": 0.0},
            "counters": {"read_bytes": 0, "write_bytes": 0},
            "clients": [], "unstored": unstored, "unstored_total": len(unstored), "errors": [],
            "foreign": [], "runs": [{"run": run} for run in self.runs],
        }
        status.update(behaviour.get("status", {}))
        return status

    def drain(self, behaviour, send):
        unstored = behaviour.get("unstored", [])
        steps = behaviour.get("drain_steps", 1)
        for step in range(steps):
            send({"kind": "progress", "remaining_bytes": (steps - step) << 20, "remaining_files": 1,
                  "rate_bytes_per_second": 1 << 20, "file": "/store/step%d" % step})
            time.sleep(behaviour.get("step_seconds", 0.05))
        return {"kind": "done", "stored": not unstored, "unstored": unstored, "seconds": 0.1}

    def answer(self, request, send):
        behaviour = self.behaviour()
        command = request.get("command")
        error = behaviour.get("error")
        if error and error["command"] == command:
            return {"kind": "error", "message": error["message"], "remedy": error.get("remedy", "")}
        if command == "status":
            return {"kind": "done", "status": self.status(behaviour)}
        if command == "run-begin":
            self.runs[request["run"]] = time.monotonic()
            return {"kind": "done"}
        if command == "run-end":
            done = self.drain(behaviour, send)
            started = self.runs.pop(request["run"], self.started)
            report = {"wall_seconds": time.monotonic() - started, "io_seconds": 0.0, "read_bytes": 0,
                      "written_bytes": 0, "hit_bytes": {"ram": 0}, "miss_bytes": 0, "write_through_bytes": 0,
                      "flushed_bytes": 0, "drain_seconds": 0.0, "foreign": [], "clients_left": 0,
                      "attached": behaviour.get("attached", True)}
            report.update(behaviour.get("report", {}))
            return {**done, "report": report}
        if command == "drain":
            return self.drain(behaviour, send)
        if command == "explain":
            return {"kind": "done", **behaviour.get("explain", {"known": False})}
        if command == "config":
            return {"kind": "done", "options": [{"name": "ram.capacity", "value": "1G", "source": "default"}]}
        if command == "shutdown":
            self.ended.set()
            return {"kind": "done"}
        if command == "set":
            return {"kind": "done", "rules": 1}
        return {"kind": "error", "message": "unknown command", "remedy": ""}

    def serve(self, connection):
        def send(message):
            connection.sendall((json.dumps(message) + "\n").encode())

        with connection, connection.makefile("r", encoding="utf-8", errors="replace") as lines:
            try:
                for line in lines:
                    request = json.loads(line)
                    self.record(request)
                    if self.behaviour().get("hang_up") == request.get("command"):
                        return
                    send(self.answer(request, send))
            except OSError:
                pass

    def run(self, ready_descriptor):
        path = os.path.join(self.directory, "control.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(64)
        listener.settimeout(0.05)
        if ready_descriptor >= 0:
            os.write(ready_descriptor, b"ready\n")
            os.close(ready_descriptor)
        while not self.ended.is_set():
            try:
                connection, _ = listener.accept()
            except socket.timeout:
                continue
            connection.settimeout(None)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()
        time.sleep(0.05)
        listener.close()
        for name in ("control.sock", "behaviour.json", "requests.jsonl"):
            try:
                os.unlink(os.path.join(self.directory, name))
            except OSError:
                pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--ready-fd", type=int, default=-1)
    options = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    FakeNode(options.directory, options.name).run(options.ready_fd)


if __name__ == "__main__":
    main()
