#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a run in a browser: it loads without errors and asks for nothing. Needs Chromium."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from report_test import ReportTest, record_of, timeline_of

CHROMIUM = shutil.which("chromium")
SKIPPED = 77


class Browser(ReportTest):
    def load_in_browser(self, *flags):
        """Fails on errors of the console and on requests for anything but the page."""
        log = os.path.join(self.root, "net.json")
        result = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
             f"--user-data-dir={self.root}/browser", f"--log-net-log={log}", *flags, "--dump-dom",
             "file://" + self.page], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("</html>", result.stdout)
        self.assertNotIn("CONSOLE", result.stderr)
        with open(log, encoding="utf-8") as file:
            events = json.load(file)["events"]
        # The browser's own requests, for dictionaries and the like, come from no origin.
        asked = {event["params"]["url"] for event in events if event.get("params", {}).get("url") and
                 event["params"].get("initiator", "not an origin") != "not an origin"}
        self.assertEqual({url for url in asked if not url.startswith(("file:", "data:"))}, set())
        return result.stdout

    def test_in_a_browser(self):
        self.keep(record_of(timeline_of()))
        self.make()
        self.assertIn("Reads and writes over time", self.load_in_browser())


if __name__ == "__main__":
    if CHROMIUM is None:
        print("skipped: Chromium, which loads the page of a run, is not installed")
        sys.exit(SKIPPED)
    unittest.main(verbosity=1)
