// SPDX-License-Identifier: Apache-2.0
//
// The only source that includes ncurses.
#include "cli/top/live_terminal.h"

#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <string_view>

#include <curses.h>

#include "base/check.h"
#include "cli/terminal/failure.h"

namespace cairn::cli {

bool is_ascii_locale() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(::nl_langinfo(CODESET)) != "UTF-8";
}

LiveTerminal::LiveTerminal() : is_ascii_(is_ascii_locale()) {
  const char* remedy = "use --once or --csv where there is no terminal";
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    throw Failure("top: standard input and output are no terminal", remedy);
  SCREEN* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr)
    throw Failure("top: the terminal that TERM names is not known, or cannot do it", remedy);
  screen_ = screen;
  ::raw();  // Ctrl-C is a key: no signal comes while the screen is painted
  ::noecho();
  ::keypad(stdscr, true);
  ::curs_set(0);
  ::set_escdelay(25);
}

LiveTerminal::~LiveTerminal() {
  CAIRN_CHECK(screen_ != nullptr);
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(screen_));
}

ScreenShape LiveTerminal::shape() const {
  ScreenShape shape;
  shape.columns = static_cast<unsigned>(std::max(1, getmaxx(stdscr)));
  shape.rows = static_cast<unsigned>(std::max(1, getmaxy(stdscr)));
  shape.is_ascii = is_ascii_;
  return shape;
}

void LiveTerminal::paint(const std::vector<ScreenLine>& lines) {
  ::erase();
  int row = 0;
  CAIRN_CHECK(lines.size() <= shape().rows);
  for (const ScreenLine& line : lines) {
    const attr_t style = line.style == ScreenStyle::kHead      ? A_REVERSE
                         : line.style == ScreenStyle::kTrouble ? A_BOLD
                                                               : A_NORMAL;
    ::attrset(static_cast<int>(style));
    ::mvaddstr(row++, 0, line.text.c_str());
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

int LiveTerminal::key(int milliseconds) {
  ::timeout(milliseconds);
  const int key = ::getch();
  if (key == KEY_RESIZE) return kResized;
  if (key != ERR) return key;
  // getch() says the same where no key came and where the terminal has gone.
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool is_closed = ::poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR)) != 0;
  return is_closed ? kClosed : kNone;
}

}  // namespace cairn::cli
