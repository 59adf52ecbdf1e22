#include <cstdio>

#include "stepcast/base/version.h"

int main() {
  std::printf("built against stepcast %s\n", stepcast::version().data());
  return stepcast::version().empty() ? 1 : 0;
}
