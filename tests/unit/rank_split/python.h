#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// Runs reference.py with `arguments`; `input` is its stdin. One vector of numbers a line.
inline std::vector<std::vector<int64_t>> ask_python(const std::string& arguments,
                                                    const std::string& input) {
  const std::filesystem::path questions =
      std::filesystem::path(testing::TempDir()) / ("rank_split." + std::to_string(::getpid()));
  std::ofstream(questions) << input;
  const std::string command =
      "python3 '" TALLY_REFERENCE "' " + arguments + " < '" + questions.string() + "'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("python3 could not be started");
  std::string output;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  const int status = ::pclose(pipe);
  std::filesystem::remove(questions);
  if (status != 0) throw std::runtime_error("python3 failed: " + command);

  std::vector<std::vector<int64_t>> lines;
  std::istringstream all(output);
  for (std::string line; std::getline(all, line);) {
    std::istringstream numbers(line);
    lines.emplace_back(std::istream_iterator<int64_t>(numbers), std::istream_iterator<int64_t>());
  }
  return lines;
}
