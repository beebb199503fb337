// SPDX-License-Identifier: Apache-2.0
// What most unit tests include, precompiled (cmake/cairn_module.cmake). A test still includes what
// it uses: the preset `debug` compiles without this.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>
