// What planted.py mutates. The comments name the mutants that its two tests
// must not notice; they must notice all others.
// clang-format off: a comment belongs to its line.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

enum class Shape { Round, Square };

static constexpr int kLimit = 10;

// Tested on either side of its limit.
static bool isLarge(int value) { return value > kLimit; }

// Called with 3 and 7 alone: the tests do not see where it changes.
static const char *sizeOf(int value) {
  if (value < 5) // SURVIVES value < 5 -> value <= 5; 5 -> 4; 5 -> 6
    return "small";
  return "big";
}

// Never called.
static int unused(int value) { return value + 1; } // SURVIVES value + 1 -> value - 1; 1 -> 0; 1 -> 2

// The call does nothing that can be seen.
static void remember(std::vector<int> &seen, int value) {
  seen.push_back(value); // SURVIVES drop seen.push_back(value);
}

static int subtract(int left, int right) {
  int result = left;
  result -= right;
  return result;
}

static int seven() { return subtract(9, 2); }

static const char *nameOf(Shape shape) {
  return shape == Shape::Round ? "round" : "square";
}

static bool isBetween(int value, int low, int high) {
  return value >= low && value <= high;
}

static int sumOf(const std::vector<int> &values) {
  int sum = 0;
  for (int value : values) {
    if (value < 0) {
      std::printf("negative\n");
      continue;
    }
    sum += value;
  }
  return sum;
}

static int at(const std::vector<int> &values, int i) { return values[i]; }

// C++ does not take these arguments swapped.
static int third(const std::vector<int> &values) { return at(values, 2); }

template <int N> static int scaled(int value) {
  int scale[2] = {N, N}; // A size of an array must stay constant.
  return std::max(value, 4) * scale[0]; // SURVIVES 0 -> 1
}

int main(int argc, char **argv) {
  std::string which = argv[argc - 1];
  std::vector<int> seen;
  if (which == "first") {
    remember(seen, 1);
    std::printf("%d %d %s %s\n", isLarge(10), isLarge(11), sizeOf(3), sizeOf(7));
    std::printf("%d %d\n", seven(), scaled<3>(5));
  } else if (which == "second") {
    std::printf("%s %s\n", nameOf(Shape::Round), nameOf(Shape::Square));
    std::printf("%d %d %d %d\n", isBetween(1, 1, 3), isBetween(3, 1, 3), isBetween(0, 1, 3), isBetween(4, 1, 3));
    std::printf("%d\n", third({5, 6, 8, 9}));
    std::printf("%d %d %d\n", sumOf({1, -2, 4}), sumOf({0}), scaled<1>(3));
  }
  return 0;
}
