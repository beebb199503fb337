// SPDX-License-Identifier: Apache-2.0
//
// The only source that includes ncurses.
#include "cli/top/live_terminal.h"

#include <langinfo.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
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

EndSignals::EndSignals() {
  sigset_t mine;
  ::sigemptyset(&mine);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction now{};
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::sigaddset(&mine, number);
  }
  ::sigprocmask(SIG_BLOCK, &mine, &before_);
  descriptor_ = ::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
}

EndSignals::~EndSignals() {
  if (descriptor_ >= 0) ::close(descriptor_);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int EndSignals::take() const {
  signalfd_siginfo info{};
  const bool has_come = ::read(descriptor_, &info, sizeof info) == sizeof info;
  return has_come ? static_cast<int>(info.ssi_signo) : 0;
}

LiveTerminal::LiveTerminal() : is_ascii_(is_ascii_locale()) {
  const char* remedy = "use --once or --csv where there is no such terminal";
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    throw Failure("top: standard input and output are no terminal", remedy);
  SCREEN* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr)
    throw Failure("top: the terminal that TERM names is not known, or cannot do it", remedy);
  screen_ = screen;
  const char* const move_cursor = ::tigetstr("cup");
  if (move_cursor == nullptr || move_cursor == reinterpret_cast<const char*>(-1)) {
    ::endwin();
    ::delscreen(screen);
    throw Failure("top: the terminal that TERM names has no cursor that can be moved", remedy);
  }
  inbox_ = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int source : {STDIN_FILENO, signals_.descriptor()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(inbox_, EPOLL_CTL_ADD, source, &event);
  }
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
  ::close(inbox_);
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
  if (const int key = take_key(); key != kNone) return key;
  // A change of the size ends this, too: getch() hears of it.
  pollfd inbox{inbox_, POLLIN, 0};
  (void)::poll(&inbox, 1, milliseconds);
  return take_key();
}

int LiveTerminal::take_key() {
  if (const int signal = signals_.take(); signal != 0) {
    end_signal_ = signal;
    return kEnded;
  }
  ::timeout(0);
  const int key = ::getch();
  if (key == KEY_RESIZE) return kResized;
  if (key != ERR) return key;
  // getch() says the same where no key came and where the terminal has gone.
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool is_closed = ::poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR)) != 0;
  return is_closed ? kClosed : kNone;
}

}  // namespace cairn::cli
